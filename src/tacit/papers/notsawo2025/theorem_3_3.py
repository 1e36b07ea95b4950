"""Theorem 3.3 (ii): when sparse recovery with the l1 penalty recovers the truth, and how well."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit.evidence.evidence import Evidence
from tacit.papers.experiment import Experiment
from tacit.papers.notsawo2025.delays import Words, cell, evidence
from tacit.solvers.slow_flow import slow_flow
from tacit.studies.sizes import sized

if TYPE_CHECKING:
    import xarray

N = {"kind": "sparse", "samples": 30, "dimension": 100, "few": 5}
GIVEN = N | {"level": 0.01, "relative": False}  # |a - a*|^2 = 1e-4 at t2
BETAS = [1e-3, 1e-4, 1e-5]
study = sized(
    "N-T33",
    function=cell,
    arguments=GIVEN | {"step": 0.1, "noise": 0.0},
    grid={"beta": BETAS},
    seeds=[1, 3, 4],
    standard={"seeds": [0, 1, 3, 4, 6]},
    full={"grid": {"beta": [*BETAS, 1e-6]}, "seeds": 10},
)
noise = sized(
    "N-T33-noise",
    function=cell,
    arguments=GIVEN | {"step": 0.1},
    grid={"noise": [1e-8, 1e-4, 1e-3, 1e-2], "beta": BETAS[1:]},
    seeds=[1],
    standard={"grid": {"beta": BETAS}},
    full={"grid": {"beta": [*BETAS, 1e-6]}},
)
steps = sized(
    "N-T33-step",
    function=cell,
    arguments=GIVEN | {"beta": 1e-4, "noise": 0.0},
    grid={"step": [0.1, 0.03, 0.01]},
    seeds=[1],
    full={"grid": {"step": [0.1, 0.03, 0.01, 0.003]}},
)


def corner(epsilon: float) -> tuple[float, float]:
    """tau and |a_hat - a*|_inf for X = (1, eps - 1), y = -1: the truth (-1, 0) is hardly best."""
    X = np.array([[1.0, epsilon - 1]])
    hat = np.linalg.pinv(X) @ [-1.0]
    return slow_flow(X, hat).time, float(np.abs(hat - [-1.0, 0.0]).max())


def check(dataset: xarray.Dataset, noise: xarray.Dataset, steps: xarray.Dataset) -> Evidence:
    """The delay on several problems, and what is left over beta, over the step and with noise."""
    tau, gap = corner(0.01)
    return evidence(
        Words("a", "|a_hat - a*|_inf", "1", "a_beta"),
        [dataset],
        noise.isel(seed=0),
        steps.isel(seed=0),
        0.05,
        ran=f"sparse recovery (100, 5, 30): {dataset.sizes['seed']} problems without noise, step"
        f" 0.1, beta {float(dataset.beta[0]):g} to {float(dataset.beta[-1]):g}; one of them with"
        " signal-to-noise ratios of 1e8 and 1e4 to 1e2, and at beta = 1e-4 with steps of 0.1 to"
        f" {float(steps.step[-1]):g}; t2 at |a - a*|^2 = 1e-4",
        counterexample={
            "no constant": f"X = (1, -0.99), y = -1, a* = (-1, 0): tau = {tau:.4g} ="
            f" {tau / gap:.0f} |a_hat - a*|_inf, and it grows like 2/eps for X = (1, eps - 1)",
        },
    )


experiment = Experiment(
    "N-T33",
    statement="After t1, |a(t) - a*|_1 = O(step beta) if and only if t >= t1 + |a_hat - a*|_inf/"
    "(step beta), for suitable X; t2 is proportional to |a_hat - a*|_inf/(step beta) and the error"
    " at t2 to step beta.",
    place="Sparsity, Theorems 3.1 and 3.3 (ii); Figures 6 and 7",
    study=(study, noise, steps),
    check=check,
    title="The slow phase tells when a sparse vector is found; the error left is of the order beta",
    ours="the seeds, the strengths, and the noise beside that of the source",
    seconds=6,
)
