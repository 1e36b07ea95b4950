"""Misgrokking: a dense classifier of wide l2 margin that weight decay forgets."""

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
from tacit.problems.population import wide_margin
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
    gamma: float,
    end: float,
    t_first: float,
    points_per_decade: int,
    rtol: float,
) -> dict[str, Any]:
    """The curves of the run, what was foreseen and when it fell."""
    problem = wide_margin(samples, dimension, gamma=gamma, seed=seed)
    recorded: dict[str, Any] = {"end": end, "t_first": t_first}
    recorded |= {"points_per_decade": points_per_decade, "rtol": rtol}
    return transition(problem, norm, rate, **recorded)


study = sized(
    "L-F2",
    title="Misgrokking: the kernel's classifier is forgotten when the start has decayed",
    function=cell,
    arguments={"samples": 32, "dimension": 2000, "gamma": 8.0, **GIVEN},
    grid={"norm": [64.0], "rate": [1e-3]},
    seeds=[0],
    dims=DIMS,
    labels=LABELS,
    full={
        "arguments": {"gamma": 25.0, "dimension": 100_000, "points_per_decade": 10},
        "grid": {"norm": [128.0]},
    },
)


def check(dataset: xarray.Dataset) -> Evidence:
    """Right in the kernel phase, and much of it lost at the end, all samples right throughout."""
    run = run_of(dataset)
    before = at(run, "test_accuracy", float(run.forecast) / 2)
    checks, controls, premises = two_biases(run)
    falls = Check(
        "fall of the test accuracy from half of the forecast to the end",
        before - float(run.test_accuracy[-1]),
        0.15,
        kind="at least",
    )
    return Evidence(
        ran="a diagonal net of depth 2 under weight decay 1e-3 by the exact flow, labels of a"
        " linear classifier in general position with a gap between the classes",
        checks=[falls, *checks],
        controls={
            "a fall before the transition: the same up to the forecast": falls.control(
                before - at(run, "test_accuracy", float(run.forecast))
            ),
            **controls,
        },
        premises=premises,
        findings=[
            f"the test accuracy goes from {before:.3f} to {float(run.test_accuracy[-1]):.3f}, half"
            f" of it by lambda t = {float(run.jump * run.decay):.2f}, while the predictor turns at"
            f" {float(run.forecast * run.decay):.2f} as foreseen: a wide gap forgives the turning"
            " at first; tacit.grokking calls the run " + str(run.kind.values),
        ],
    )


experiment = Experiment(
    "L-F2",
    statement="On labels of a linear classifier with a large l2 margin weight decay does harm: the"
    " test accuracy is high in the kernel phase, that of the l2 max margin, and falls late to that"
    " of the l1 max margin.",
    place="Example: two-layer diagonal nets, misgrokking",
    study=study,
    check=check,
    draw=draw,
    title="Misgrokking: the kernel's classifier is right, and is lost when the start has decayed",
    ours="the seed and the start; at the size quick also the size of the data and the gap",
    seconds=2,
)
