"""What a solver returns: the selected predictor with its certificate."""

from __future__ import annotations

import dataclasses

import numpy as np

from tacit.arguments import Array
from tacit.bias.regularizer import Regularizer
from tacit.records import Outcome, Record


@dataclasses.dataclass(frozen=True, repr=False)
class Solution(Record):
    """A constrained minimiser and the numbers that prove it.

    `residual` is max|X beta - y| / max|y|. `kkt` is the largest distance of a pair
    (beta_i, (X^T dual)_i) from the graph of the gradient, along the nearer of the two axes,
    each axis in units of its largest entry. Both are computed from `beta` and `dual` as returned.
    """

    beta: Array
    dual: Array
    value: float
    residual: float
    kkt: float
    iterations: int
    outcome: Outcome


def kkt_residual(regularizer: Regularizer, beta: Array, s: Array) -> float:
    """Distance of (beta, s) from the graph s = gradient(beta), relative, worst coordinate."""
    with np.errstate(over="ignore", invalid="ignore"):
        along_dual = np.abs(s - regularizer.dual_of(beta)) / max(np.abs(s).max(), 1e-300)
        along_primal = np.abs(beta - regularizer.primal_of(s)) / max(np.abs(beta).max(), 1e-300)
    distance = np.fmin(along_dual, along_primal)  # fmin: an overflow on one axis is no verdict
    return float(np.max(np.nan_to_num(distance, nan=np.inf)))


def primal_residual(X: Array, y: Array, beta: Array) -> float:
    """max|X beta - y| relative to max|y|."""
    scale = float(np.abs(y).max())
    return float(np.abs(X @ beta - y).max() / (scale if scale > 0 else 1.0))
