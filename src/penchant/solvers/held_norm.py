"""Where descent on |X a - y|^2 ends whose parameters are held at one norm."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, entries, finite_array, positive, regression_data
from penchant.door import Invalid, door
from penchant.solvers.least_squares import decomposed, fitted


@door
def held_ridge(X: ArrayLike, y: ArrayLike, size: float, free: ArrayLike | None = None) -> Array:
    """Where descent on |X a - y|^2 held at |a|_2 = size ends.

    Below the norm of a_hat = X^+ y it is the ridge point (X^T X + mu)^-1 X^T y whose mu > 0 gives
    this norm. Above, every interpolator of that norm is a minimiser. Descent does not change the
    part in the null space of X and stretching keeps its direction, so from a start with the
    null-space part u it ends at a_hat + c u/|u|.

    The relative error of a_hat, and of the ridge point for its mu, is estimated, and above 1e-7
    it is refused.

    Parameters
    ----------
    X
        The samples, one row each.
    y
        One label per sample.
    size
        The norm at which the parameters are held.
    free
        The start, which is needed where the size is above the norm of a_hat.

    Returns
    -------
    array
        The end of descent.

    Raises
    ------
    NumericalError
        Rounding may move the end, or float64 does not tell whether rows depend on each other.

    Examples
    --------
    >>> import penchant
    >>> X, y = [[1.0, 2.0]], [5.0]
    >>> penchant.solvers.held_ridge(X, y, size=1.0).round(4)
    array([0.4472, 0.8944])
    >>> penchant.solvers.held_ridge(X, y, size=3.0, free=[1.0, 0.0]).round(4)
    array([2.7889, 1.1056])
    """
    X, y = regression_data(X, y)
    size = positive("size", size)
    parts = decomposed(X)
    shortest = fitted(parts, X, y)
    length = float(np.linalg.norm(shortest))
    if size <= length:
        mu = _multiplier(parts.sizes * (parts.left.T @ y), parts.squares, size)
        return fitted(parts, X, y, mu)
    spare = math.sqrt(size - length) * math.sqrt(size + length)
    return np.asarray(shortest + spare * _unseen(parts.right, free, X.shape[1]))


def _multiplier(numerators: Array, squares: Array, size: float) -> float:
    """mu >= 0 with |numerators / (squares + mu)| = size, which falls in mu."""
    from scipy.optimize import brentq

    def excess(mu: float) -> float:
        return float(np.linalg.norm(numerators / (squares + mu))) / size - 1

    top = float(np.linalg.norm(numerators)) / size  # there the norm is below `size`
    return 0.0 if excess(0.0) <= 0 else float(brentq(excess, 0.0, top, xtol=1e-300, rtol=1e-14))


def _unseen(right: Array, free: ArrayLike | None, dimension: int) -> Array:
    """The unit vector along the part of `free` in the null space of X."""
    if free is None:
        raise Invalid("beyond the norm of X^+ y the end depends on the start; give it as free=")
    start = finite_array("free", free, ndim=1)
    if len(start) != dimension:
        raise Invalid(f"free must have {dimension} entries, got {len(start)}")
    unseen = start - right.T @ (right @ start)
    size = float(np.linalg.norm(unseen))
    if size <= 1e-12 * float(np.linalg.norm(start)):
        raise Invalid(
            "free has no part in the null space of X, so no interpolator of this norm is "
            "reached from it; give another start"
        )
    return np.asarray(unseen / size)


@door
def held_best(X: ArrayLike, truth: ArrayLike, free: ArrayLike) -> tuple[float, float]:
    """The held norm from which `held_ridge` comes nearest to the truth, and |a - truth|^2 there.

    Exact for labels y = X truth. With u the unit null-space part of the start `free` and t that of
    the truth, the error at the squared norm |a_hat|^2 + c^2 is |t - c u|^2, least at c =
    max(<t, u>, 0); below |a_hat| nothing of t is found and the ridge adds to the error.

    A closed formula in float64: it carries no certificate. It refuses rows of which float64 does
    not tell whether they depend on each other.

    Parameters
    ----------
    X
        The samples, one row each.
    truth
        The vector that made the labels.
    free
        The start.

    Returns
    -------
    tuple of two floats
        The norm, and the squared error of descent held at it.

    Examples
    --------
    >>> import penchant
    >>> size, error = penchant.solvers.held_best([[1.0, 2.0]], truth=[1.0, 0.0], free=[1.0, 1.0])
    >>> round(size, 6), abs(error) < 1e-12
    (1.0, True)
    """
    X = finite_array("X", X, ndim=2)
    truth = entries("truth", truth, X.shape[1], "one entry per column of X")
    right = decomposed(X).right
    seen = right.T @ (right @ truth)
    unseen = truth - seen
    along = max(float(unseen @ _unseen(right, free, X.shape[1])), 0.0)
    return math.sqrt(float(seen @ seen) + along**2), float(unseen @ unseen) - along**2
