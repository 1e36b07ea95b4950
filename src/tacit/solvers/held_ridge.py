"""Least squares on a sphere: the minimiser of |X a - y|^2 with |a|_2 held, by the SVD of X."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from tacit.arguments import Array, finite_array, positive, regression_data

WHO = "held_ridge"


def held_ridge(X: ArrayLike, y: ArrayLike, size: float, free: ArrayLike | None = None) -> Array:
    """Where descent on |X a - y|^2 held at |a|_2 = size ends.

    Below the norm of a_hat = X^+ y it is the ridge point (X^T X + mu)^-1 X^T y whose mu > 0 gives
    this norm. Above, every interpolator of that norm is a minimiser. Descent cannot see what lies
    in the null space of X and stretching keeps its direction, so from a start with the null-space
    part u it ends at a_hat + c u/|u|; `free` is that start.
    """
    X, y = regression_data(WHO, X, y)
    size = positive(WHO, "size", size)
    left, values, right = np.linalg.svd(X, full_matrices=False)
    kept = values > values.max() * max(X.shape) * np.finfo(float).eps
    values, right, pull = values[kept], right[kept], (left.T @ y)[kept]
    shortest = right.T @ (pull / values)
    spare = size**2 - float(shortest @ shortest)
    if spare <= 0:
        mu = _multiplier(values * pull, values**2, size)
        return np.asarray(right.T @ (values * pull / (values**2 + mu)))
    return np.asarray(shortest + math.sqrt(spare) * _unseen(right, free, X.shape[1]))


def _multiplier(numerators: Array, squares: Array, size: float) -> float:
    """mu >= 0 with |numerators / (squares + mu)| = size, which falls in mu."""
    from scipy.optimize import brentq

    def excess(mu: float) -> float:
        return float(np.linalg.norm(numerators / (squares + mu))) / size - 1

    top = float(np.linalg.norm(numerators)) / size  # there the norm is below `size`
    return 0.0 if excess(0.0) <= 0 else float(brentq(excess, 0.0, top, xtol=1e-300, rtol=1e-14))


def _unseen(right: Array, free: ArrayLike | None, dimension: int) -> Array:
    """The unit vector along the part of `free` that X does not see."""
    if free is None:
        raise ValueError(
            f"{WHO}: beyond the norm of X^+ y the end depends on the start; give it as free="
        )
    start = finite_array(WHO, "free", free, ndim=1)
    if len(start) != dimension:
        raise ValueError(f"{WHO}: free must have {dimension} entries, got {len(start)}")
    unseen = start - right.T @ (right @ start)
    size = float(np.linalg.norm(unseen))
    if size <= 1e-12 * float(np.linalg.norm(start)):
        raise ValueError(
            f"{WHO}: free has no part in the null space of X, so no interpolator of this norm is "
            "reached from it; give another start"
        )
    return np.asarray(unseen / size)


def held_best(X: ArrayLike, truth: ArrayLike, free: ArrayLike) -> tuple[float, float]:
    """The held norm from which `held_ridge` comes nearest to the truth, and |a - truth|^2 there.

    Exact for labels y = X truth. With u the unit null-space part of the start `free` and t that of
    the truth, the error at the squared norm |a_hat|^2 + c^2 is |t - c u|^2, least at c =
    max(<t, u>, 0); below |a_hat| nothing of t is found and the ridge adds to the error.
    """
    X = finite_array("held_best", "X", X, ndim=2)
    truth = finite_array("held_best", "truth", truth, ndim=1)
    values, right = np.linalg.svd(X, full_matrices=False)[1:]
    right = right[values > values.max() * max(X.shape) * np.finfo(float).eps]
    seen = right.T @ (right @ truth)
    unseen = truth - seen
    along = max(float(unseen @ _unseen(right, free, X.shape[1])), 0.0)
    return math.sqrt(float(seen @ seen) + along**2), float(unseen @ unseen) - along**2
