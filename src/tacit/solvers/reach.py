"""Whether targets can be fitted at all by predictors inside the open range of a regularizer."""

from __future__ import annotations

import numpy as np

from tacit.arguments import Array
from tacit.regularizers.regularizer import Regularizer


def margin(regularizer: Regularizer, X: Array, y: Array) -> float:
    """How far inside its range a predictor with X beta = y can stay; inf if there are no ends.

    Zero or less means that no predictor in the open range fits y.
    """
    from scipy.optimize import linprog

    dimension = X.shape[1]
    low, high = predictor_range(regularizer, dimension)
    bounded = np.flatnonzero(np.isfinite(low)), np.flatnonzero(np.isfinite(high))
    if not bounded[0].size and not bounded[1].size:
        return np.inf
    size = float(np.abs(y).max()) or 1.0
    rows, right = [], []
    for sign, which, end in ((-1.0, bounded[0], low), (1.0, bounded[1], high)):
        block = np.zeros((which.size, dimension + 1))
        block[np.arange(which.size), which] = sign
        block[:, -1] = 1.0
        rows.append(block)
        right.append(sign * end[which] / size)
    result = linprog(
        np.append(np.zeros(dimension), -1.0),  # the largest margin
        A_ub=np.vstack(rows),
        b_ub=np.concatenate(right),
        A_eq=np.column_stack([X, np.zeros(len(X))]),
        b_eq=y / size,
        bounds=[(None, None)] * dimension + [(None, 1.0)],
    )
    if result.status != 0:
        return np.inf  # the solver could not tell
    best = float(-result.fun)
    return size * best if best > 1e-9 else min(size * best, 0.0)


def predictor_range(regularizer: Regularizer, dimension: int) -> tuple[Array, Array]:
    """(lowest, highest) predictor of every coordinate: as the regularizer says, or probed."""
    if hasattr(regularizer, "range"):
        low, high = regularizer.range
        return np.broadcast_to(low, dimension), np.broadcast_to(high, dimension)
    return probed(regularizer, dimension, -1.0), probed(regularizer, dimension, 1.0)


def probed(regularizer: Regularizer, dimension: int, sign: float) -> Array:
    """The limit of b(s) on one side, taken as infinite unless it stopped moving."""
    with np.errstate(all="ignore"):
        far, farther = (
            regularizer.primal_of(np.full(dimension, sign * size)) for size in (1e100, 1e200)
        )
        settled = np.isfinite(farther) & (np.abs(farther - far) <= 1e-9 * np.abs(farther))
    return np.where(settled, farther, sign * np.inf)
