"""Norms of predictors, and how far one exceeds the least possible."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from tacit.arguments import finite_array


def norm_l1(beta: ArrayLike) -> float:
    """Sum of |beta_i|."""
    return float(np.abs(finite_array("norm_l1", "beta", beta, ndim=1)).sum())


def norm_l2(beta: ArrayLike) -> float:
    """Euclidean length of beta, also where its squares would over- or underflow."""
    beta = np.abs(finite_array("norm_l2", "beta", beta, ndim=1))
    largest = float(beta.max())
    return largest * float(np.sqrt(np.sum((beta / largest) ** 2))) if largest > 0 else 0.0


def excess(norm: Callable[[ArrayLike], float], beta: ArrayLike, best: ArrayLike) -> float:
    """norm(beta) - norm(best), where `best` has the least norm (W figure 1b)."""
    return norm(beta) - norm(best)
