"""Sparse linear classification: a majority of three coordinates, learned late."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tacit.evidence.evidence import Check, Evidence
from tacit.papers.experiment import Experiment
from tacit.papers.lyu2023.transitions import (
    DIMS,
    GIVEN,
    LABELS,
    at,
    draw,
    run_of,
    transition,
    two_biases,
)
from tacit.problems.population import majority
from tacit.studies.sizes import sized

if TYPE_CHECKING:
    import xarray


def cell(
    norm: float,
    rate: float,
    seed: int,
    *,
    samples: int,
    dimension: int,
    relevant: int,
    end: float,
    t_first: float,
    points_per_decade: int,
    rtol: float,
) -> dict[str, Any]:
    """The curves of the run, what was foreseen and when it jumped."""
    problem = majority(samples, dimension, seed=seed, relevant=relevant)
    recorded: dict[str, Any] = {"end": end, "t_first": t_first}
    recorded |= {"points_per_decade": points_per_decade, "rtol": rtol}
    return transition(problem, norm, rate, **recorded)


study = sized(
    "L-F1",
    title="Grokking: the kernel's classifier first, the sparse one when the start has decayed",
    function=cell,
    arguments={"samples": 100, "dimension": 2000, "relevant": 3, **GIVEN},
    grid={"norm": [64.0], "rate": [1e-3]},
    seeds=[0],
    dims=DIMS,
    labels=LABELS,
    full={
        "arguments": {"samples": 256, "dimension": 100_000, "points_per_decade": 10},
        "grid": {"norm": [128.0]},
    },
)


def check(dataset: xarray.Dataset) -> Evidence:
    """Chance or little more in the kernel phase, and right at the end, at the time foreseen."""
    run = run_of(dataset)
    half = float(run.forecast) / 2
    checks, controls, premises = two_biases(run)
    solved = Check(
        "test accuracy at twice the forecast",
        at(run, "test_accuracy", 2 * float(run.forecast)),
        0.99,
        kind="at least",
    )
    return Evidence(
        ran="a diagonal net of depth 2 under weight decay 1e-3 by the exact flow, labels the"
        " majority of three coordinates of a cube's corners",
        checks=[solved, *checks],
        controls={
            "the test follows training: accuracy at half of the forecast": solved.control(
                at(run, "test_accuracy", half)
            ),
            **controls,
        },
        premises=premises,
        findings=[
            f"the test accuracy goes from {at(run, 'test_accuracy', half):.3f} to"
            f" {float(run.test_accuracy[-1]):.5f}, half of it by lambda t ="
            f" {float(run.jump * run.decay):.2f}, foreseen {float(run.forecast * run.decay):.2f}",
            "the poster prints Sparse Linear Regression over this experiment, but its labels are"
            " signs and its theorem is that of margins: it is a classification, and so it is here",
        ],
    )


experiment = Experiment(
    "L-F1",
    statement="On labels that three coordinates make, a diagonal net from a large start under a"
    " small weight decay groks: its test accuracy is first that of the l2 max margin, near chance,"
    " and late that of the l1 max margin, near 1.",
    place="Example: two-layer diagonal nets, printed as sparse linear regression; its labels are"
    " signs, so it is a classification",
    study=study,
    check=check,
    draw=draw,
    title="Grokking: the kernel's classifier first, the sparse one when the start has decayed",
    ours="the seed; at the size quick also the size of the data and the start",
    seconds=3,
)
