"""Theorem 3.4 (i): low-rank recovery with the nuclear norm first goes to least squares."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit.evidence.evidence import Check, Evidence
from tacit.papers.experiment import Experiment
from tacit.papers.notsawo2025.memorization import BETAS, NOISES, cell, evidence, far_cell
from tacit.studies.sizes import sized

if TYPE_CHECKING:
    import xarray

GIVEN = {"samples": 70, "dimension": 10, "few": 2, "step": 0.1}
LATE = 5000
study = sized(
    "N-T34",
    function=cell,
    arguments={**GIVEN, "late": LATE},
    grid={"kind": ["completion", "sensing"], "noise": NOISES, "beta": BETAS},
    seeds=[2],
    dims={"steps": ["record"], "G": ["record"], "H": ["record"]},
    full={"grid": {"noise": [0.0, *NOISES]}, "seeds": 4},
)
far = sized(
    "N-T34-far",
    function=far_cell,
    arguments=GIVEN,
    grid={"kind": ["completion", "sensing"], "noise": NOISES},
    seeds=[2],
    full={"grid": {"noise": [0.0, *NOISES]}, "seeds": 4},
)


def check(dataset: xarray.Dataset, far: xarray.Dataset) -> Evidence:
    """t1, the distance to A_hat and the norms of both gradients."""
    ran = "completions and Gaussian sensings, 10 x 10 of rank 2 from 70 numbers"
    off = float(np.abs(dataset.t1 / dataset.t1_foreseen - 1).max())
    time = Check("largest |t1/t1 without a penalty - 1|", off, tolerance=0.05)
    return evidence(dataset, far, ran, "A", time, LATE)


experiment = Experiment(
    "N-T34",
    statement="Subgradient descent on (1/2)|X vec(A) - y|^2 + beta |A|_* first goes near"
    " vec(A_hat) = (X^T X)^+ X^T y, at a finite step t1; until then G dominates beta H, and"
    " from then on it does not.",
    place="Low-rankness, Theorems 3.4 and 3.5 (i); Figure 5",
    study=(study, far),
    check=check,
    title="Low-rank recovery first goes to the least squares point, where the loss gives way",
    ours="the seeds, the strengths and the noise",
    seconds=3,
)
