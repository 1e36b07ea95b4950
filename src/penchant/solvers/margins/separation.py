"""Whether labelled points can be separated by a plane through the origin, with a certificate."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, classification_data, finite_array
from penchant.door import Invalid, door
from penchant.records import Kind, Outcome, Record, Unsolved
from penchant.regularizers.arrays import length
from penchant.solvers.continuation import Failed
from penchant.solvers.exact import separates
from penchant.solvers.margins.active_set import Unbounded, least_squares
from penchant.solvers.margins.rows import scaled_rows
from penchant.solvers.pivots import balanced
from penchant.solvers.sparse_rows import SparseRows
from penchant.threads import one_blas_thread

OPPOSITE = 1e-14  # unit rows whose sum is shorter than this are opposite


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Separation(Record):
    """Separable or not, and the convex combination of the signed rows y_n x_n that proves it.

    No margin of a unit vector can be larger than `residual`. When the points are separable it
    equals `margin`; when they are not it is zero to rounding, and `margin` and `direction` are
    zero. If float64 cannot represent the best unit vector, `direction` is another one that
    separates, and `margin`, which belongs to it, is below `residual`.

    Attributes
    ----------
    separable
        Whether a plane through zero separates the points.
    margin
        The largest margin min_n y_n <x_n, direction> of any unit vector.
    direction
        That unit vector.
    weights
        Nonnegative numbers with sum one.
    residual
        The length of the combination sum_n weights_n y_n x_n.

    Examples
    --------
    >>> import penchant
    >>> verdict = penchant.solvers.separation([[2.0, 0.0], [-1.0, 0.0]], [1, -1])
    >>> verdict.direction.round(6), verdict.weights.round(6)
    (array([1., 0.]), array([0., 1.]))
    """

    separable: bool
    margin: float
    direction: Array
    weights: Array
    residual: float


@door
def separation(X: ArrayLike, y: ArrayLike) -> Separation:
    """The separation of the points X by the labels y of -1 and +1.

    Parameters
    ----------
    X
        The samples, one row each.
    y
        The labels, -1 or +1.

    Returns
    -------
    Separation
        Whether they can be separated, and the proof.

    Examples
    --------
    >>> import penchant
    >>> verdict = penchant.solvers.separation([[2.0, 0.0], [-1.0, 0.0]], [1, -1])
    >>> verdict.separable, round(verdict.margin, 6)
    (True, 1.0)
    """
    X, y = classification_data(X, y)
    with one_blas_thread():
        return separated(X * y[:, None])


def require_separable(Z: ArrayLike) -> None:
    """Raises a ValueError that says why, unless the signed rows Z have a positive margin."""
    signed = finite_array("Z", Z, ndim=2)
    with one_blas_thread():
        refuse_inseparable(signed)


def refuse_inseparable(Z: Array) -> None:
    """Raises the ValueError; for signed rows that are checked already."""
    refuse_zero_rows(Z)
    verdict = separated(Z)
    if not verdict.separable:
        raise Invalid(f"{why_not(Z, verdict)}; drop or relabel a point, or {OTHER_WAY}")


OTHER_WAY = "fit the labels as targets with interpolate()"


def refuse_zero_rows(Z: Array) -> None:
    """Raises a ValueError that names a zero row, where there is one."""
    zero = np.flatnonzero(~Z.any(axis=1))
    if zero.size:
        raise Invalid(
            f"row {zero[0]} of X is zero, so its margin is zero for every predictor; drop that row"
        )


def why_not(Z: Array, verdict: Separation) -> str:
    if (pair := opposite_rows(Z)) is not None:
        first, second = pair
        return (
            "the data are not linearly separable, because rows"
            f" {first} and {second} are the same point (up to a factor) with opposite labels"
        )
    count = int(np.sum(verdict.weights > 0))
    return (
        f"the data are not linearly separable: a convex combination of {count} of the"
        f" y_n x_n has length {verdict.residual:.1e}, zero to rounding, which no margin can exceed"
    )


def opposite_rows(Z: Array) -> tuple[int, int] | None:
    if isinstance(Z, SparseRows):
        Z = Z.dense
        if Z is None:
            return None
    unit = Z / np.abs(Z).max(axis=1)[:, None]
    unit /= np.linalg.norm(unit, axis=1)[:, None]
    for first, row in enumerate(unit):
        near = first + 1 + np.flatnonzero(unit[first + 1 :] @ row < -1 + 1e-9)
        for second in near[np.linalg.norm(unit[near] + row, axis=1) < OPPOSITE]:
            return first, int(second)
    return None


TOO_CLOSE = "a predictor with positive margins exists, but the largest margin is too small"


def separated(Z: Array) -> Separation:
    zero = ~Z.any(axis=1)
    if zero.any():
        return Separation(False, 0.0, np.zeros(Z.shape[1]), zero / zero.sum(), 0.0)
    try:
        with np.errstate(over="raise"):
            rows = scaled_rows(Z)
    except FloatingPointError:
        raise Invalid("a row of X is below 1e-300 throughout; rescale it") from None
    try:
        _, minimum, _ = least_squares(rows, np.ones(Z.shape[1]))
    except Unbounded as reason:
        if separating(Z) is not None:
            text = f"{TOO_CLOSE} for double precision; rescale the columns of X"
            raise Unsolved(Outcome(Kind.STALLED, text)) from None
        weights = convex(times(reason.weights, rows.factors))
        return Separation(False, 0.0, np.zeros(Z.shape[1]), weights, length(weights @ Z))
    except Failed as reason:
        if (pair := opposite_rows(Z)) is not None and separating(Z) is None:
            weights = np.zeros(len(Z))
            weights[list(pair)] = 1 / np.abs(Z[list(pair)]).max(axis=1)
            weights = convex(weights)
            return Separation(False, 0.0, np.zeros(Z.shape[1]), weights, length(weights @ Z))
        text = f"the points are too close to inseparable for double precision: {reason}"
        raise Unsolved(Outcome(Kind.STALLED, text)) from None
    weights = convex(times(minimum.nu, rows.factors))
    direction = minimum.b / length(minimum.b)
    if not separates(Z, direction):  # it rounds off what the largest columns need
        beta = separating(Z)
        if beta is None:
            text = "the points are too close to inseparable for double precision"
            raise Unsolved(Outcome(Kind.STALLED, f"{text}; rescale the columns of X"))
        direction = beta / length(beta)
    return Separation(True, float((Z @ direction).min()), direction, weights, length(weights @ Z))


def separating(Z: Array) -> Array | None:
    """A beta with positive margins Z beta, proven; None if a linear program finds none."""
    from scipy.optimize import linprog

    if isinstance(Z, SparseRows):
        Z = Z.dense
        if Z is None:
            return None
    factors, columns = balanced(Z)
    A = Z * factors[:, None] * columns
    samples, dimension = A.shape
    cost = np.append(np.zeros(dimension), -1.0)  # the least margin, of entries within [-1, 1]
    bounds = [(-1.0, 1.0)] * dimension + [(0.0, None)]
    optimum = linprog(
        cost, A_ub=np.hstack([-A, np.ones((samples, 1))]), b_ub=np.zeros(samples), bounds=bounds
    )
    if optimum.status != 0:
        return None
    beta = columns * optimum.x[:dimension]
    return beta if beta.any() and np.isfinite(beta).all() and separates(Z, beta) else None


def times(weights: Array, factors: Array) -> Array:
    """The products in a unit of their own, in which none overflows."""
    (parts, powers), (others, more) = np.frexp(weights), np.frexp(factors)
    powers = powers + more
    top = int(powers[weights != 0].max(initial=-(2**20)))
    with np.errstate(under="ignore"):
        return np.ldexp(parts * others, powers - top)


def convex(weights: Array) -> Array:
    weights = weights / weights.max()
    return weights / weights.sum()
