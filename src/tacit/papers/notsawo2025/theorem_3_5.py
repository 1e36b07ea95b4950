"""Theorem 3.5 (ii): when low-rank recovery with the nuclear norm finds the truth, and how well."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tacit.evidence.evidence import Evidence
from tacit.papers.experiment import Experiment
from tacit.papers.notsawo2025.delays import Words, cell, evidence, in_beta
from tacit.studies.sizes import sized

if TYPE_CHECKING:
    import xarray

SMALL = {"samples": 24, "dimension": 6, "few": 1}
PRINTED = {"samples": 70, "dimension": 10, "few": 2}  # N's size
GIVEN = {"level": 0.1, "relative": True}  # relative error at t2, steps in units of the largest
KINDS = ["completion", "sensing"]
BETAS = [1e-2, 1e-3, 1e-4]
study = sized(
    "N-T35",
    function=cell,
    arguments=SMALL | GIVEN | {"step": 0.75, "noise": 0.0},
    grid={"kind": KINDS, "beta": [1e-2, 3e-3, 1e-3]},
    seeds=[2],
    standard={"grid": {"beta": BETAS}},
    full={"grid": {"beta": [*BETAS, 1e-5]}, "seeds": [1, 2]},
)
printed = sized(
    "N-T35-printed",
    function=cell,
    arguments=PRINTED | GIVEN | {"step": 0.75, "noise": 0.0},
    grid={"kind": KINDS, "beta": [1e-3]},
    seeds=[2],
    full={"seeds": [1, 2]},
)
noise = sized(
    "N-T35-noise",
    function=cell,
    arguments=SMALL | GIVEN | {"step": 0.25, "kind": "completion"},
    grid={"noise": [1e-8, 1e-4, 1e-3, 1e-2], "beta": [1e-2, 1e-3]},
    seeds=[2],
    standard={"grid": {"beta": [3e-2, 1e-2, 3e-3, 1e-3]}},
    full={"grid": {"beta": [3e-2, 1e-2, 3e-3, 1e-3]}},
)
steps = sized(
    "N-T35-step",
    function=cell,
    arguments=SMALL | GIVEN | {"beta": 1e-2, "noise": 0.0, "kind": "completion"},
    grid={"step": [0.25, 0.075, 0.025]},
    seeds=[2],
    full={"grid": {"step": [0.25, 0.075, 0.025, 0.0075]}},
)


def corner(a: float, b: float, c: float, until: float) -> float:
    """tau at which the unknown entry x of [[a, b], [c, x]] has come from 0 to `until`, exactly.

    For 0 <= until <= bc/a < a, where |A|_* = sqrt((a - x)^2 + (b + c)^2) falls in x.
    """
    w = b + c

    def antiderivative(u: float) -> float:  # of sqrt(u^2 + w^2)/u = 1/speed with u = a - x
        return math.hypot(u, w) - w * math.asinh(w / u)

    return antiderivative(a) - antiderivative(a - until)


def check(
    dataset: xarray.Dataset,
    printed: xarray.Dataset,
    noise: xarray.Dataset,
    steps: xarray.Dataset,
) -> Evidence:
    """The delay on several problems, and what is left over beta, over the step and with noise."""
    tight = corner(1.001, 1.0, 1.0, 1 / 1.001)
    worst = max(float((one.noise_error / one.of_truth).max()) for one in (dataset, printed))
    return evidence(
        Words("A", "|A_hat - A*|_op", "*", "A_beta"),
        [dataset, printed],
        noise.isel(seed=0),
        steps.isel(seed=0),
        0.1,
        ran=f"completions and Gaussian sensings, {len(in_beta(dataset.tau))} 6 x 6 of rank 1 from"
        f" 24 numbers with beta {float(dataset.beta[0]):g} to {float(dataset.beta[-1]):g} and"
        f" {printed.tau.size} 10 x 10 of rank 2 from 70 with beta = 1e-3, steps of 3/4 of the"
        " largest; one completion with signal-to-noise ratios of 1e8 and 1e4 to 1e2, and at beta ="
        " 1e-2 with smaller steps; t2 at a relative error of 0.1",
        premises={"suitable X: the nuclear norm finds the truth": (worst < 1e-6, worst)},
        counterexample={
            "no constant": "[[a, 1], [1, x]] with x unknown, a = 1.001, A* of rank 1 and least"
            f" nuclear norm: tau = {tight:.4g} = {tight * 1.001:.3g} |A_hat - A*|_op exactly, and"
            " it grows like 2 log(1/(a - 1))",
        },
    )


experiment = Experiment(
    "N-T35",
    statement="After t1, |A(t) - A*|_* = O(step beta) if and only if t >= t1 + |A_hat - A*|_op/"
    "(step beta), for suitable X; t2 is proportional to |A_hat - A*|_op/(step beta) and the error"
    " at t2 to step beta.",
    place="Low-rankness, Theorems 3.4 and 3.5 (ii); Figure 6",
    study=(study, printed, noise, steps),
    check=check,
    title="The slow phase tells when a matrix is found; the error left is of the order beta",
    ours="the small matrices, the seeds, the strengths and the noise",
    seconds=8,
)
