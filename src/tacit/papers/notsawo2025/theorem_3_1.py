"""Theorem 3.1 (i): sparse recovery with the l1 penalty first goes to the least squares point."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit.evidence.evidence import Check, Evidence
from tacit.papers.experiment import Experiment
from tacit.papers.notsawo2025.memorization import BETAS, NOISES, cell, evidence, far_cell
from tacit.studies.sizes import sized

if TYPE_CHECKING:
    import xarray

GIVEN = {"kind": "sparse", "samples": 30, "dimension": 100, "few": 5, "step": 0.1}
LATE = 400
study = sized(
    "N-T31",
    function=cell,
    arguments={**GIVEN, "late": LATE},
    grid={"noise": NOISES, "beta": BETAS},
    seeds=[0, 1],
    dims={"steps": ["record"], "G": ["record"], "H": ["record"]},
    tiny={"seeds": [1]},
    full={"grid": {"noise": [0.0, *NOISES]}, "seeds": 6},
)
far = sized(
    "N-T31-far",
    function=far_cell,
    arguments=GIVEN,
    grid={"noise": NOISES},
    seeds=[0, 1],
    tiny={"seeds": [1]},
    full={"grid": {"noise": [0.0, *NOISES]}, "seeds": 6},
)


def check(dataset: xarray.Dataset, far: xarray.Dataset) -> Evidence:
    """t1, the distance to a_hat and the norms of both gradients."""
    off = float(np.abs(dataset.t1 - dataset.t1_foreseen).max())
    time = Check("largest |t1 - prediction| in steps", off, tolerance=1)
    return evidence(dataset, far, "sparse recoveries (100, 5, 30)", "a", time, LATE)


experiment = Experiment(
    "N-T31",
    statement="With f = (1/2)|X a - y|^2 + beta |a|_1 the iterates first move near the least"
    " squares solution (X^T X)^+ X^T y, at a step t1 < infinity; G dominates beta H until t1.",
    place="Sparsity, Theorem 3.1 (i); Figure 5",
    study=(study, far),
    check=check,
    title="Sparse recovery first goes to the least squares point, where the loss gives way",
    ours="the seeds, the strengths and the noise beside that of the source",
    seconds=2,
)
