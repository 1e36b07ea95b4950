"""Where descent on (1/2)|X a - y|^2 + beta |a|_2^2 goes, and how fast.

The theory of Notsawo et al. 2025. Gradient descent memorizes first: it goes
to the least squares point nearest to its start. Then the penalty takes over: beta |a|_2^2 leads to
the ridge point, which contains nothing of the part of the truth that X does not measure.

How it works. Everything follows from one singular value decomposition. Points are certified by
their gradient, computed from the data, and refused where it may lead further than 1e-7 of them. So
are rows of which float64 cannot tell whether they depend on each other, where that matters. Powers
of factors near one are taken by log1p: 1 - 1e-10 in float64 is off by 1e-7 of what a step moves.
"""

from __future__ import annotations

import bisect
import dataclasses

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import (
    Array,
    entries,
    finite_array,
    not_negative,
    positive,
    real,
    regression_data,
)
from penchant.door import Invalid, door
from penchant.records import Kind, Outcome, Record, Unsolved
from penchant.solvers import exact
from penchant.solvers.certificate import TOLERANCE, Certificate

EPS = float(np.finfo(float).eps)
NONE = 8 * EPS  # times the larger side of X, of the largest singular value: rounding of zero
CLEAR = 1e-9  # of the largest: a singular value that is none of rounding
SQUARES = 1e-140, 1e140  # singular values whose squares and their quotients are in float64
LONGEST = 2**62  # steps


@dataclasses.dataclass(frozen=True)
class Decomposed:
    """X = left diag(sizes) right, without what is rounding of zero."""

    left: Array
    sizes: Array
    right: Array

    @property
    def squares(self) -> Array:
        largest = float(self.sizes[0])
        if not SQUARES[0] < largest < SQUARES[1]:
            raise Invalid(
                f"X must have squares within float64, got a largest singular value of {largest:.3g}"
                "; rescale X"
            )
        return np.asarray(self.sizes**2)


def decomposed(X: Array, *, ranked: bool = True) -> Decomposed:
    """The decomposition of X; with `ranked` only if the rank is beyond doubt.

    Rows that depend on each other to rounding count as dependent.
    """
    power = int(np.frexp(np.abs(X).max())[1])
    left, sizes, right = np.linalg.svd(np.ldexp(X, -power), full_matrices=False)
    if sizes[0] == 0:
        raise Invalid(f"X must not be all zero, got {len(X)} rows of zeros")
    kept = sizes > NONE * max(X.shape) * sizes[0]
    least = float(sizes[kept][-1] / sizes[0])
    if ranked and least < CLEAR:
        text = f"float64 does not tell whether the rows of X depend on each other: {least:.2g} of"
        text += " the largest singular value; drop rows that nearly depend on others"
        raise Unsolved(Outcome(Kind.STALLED, text))
    with np.errstate(over="ignore", under="ignore"):
        return Decomposed(left[:, kept], np.ldexp(sizes[kept], power), right[kept])


def fitted(parts: Decomposed, X: Array, y: Array, penalty: float = 0.0) -> Array:
    """The least |X a - y|^2 + penalty |a|^2 nearest to zero, certified."""
    power = int(np.frexp(np.abs(y).max(initial=0.0))[1])
    y = np.ldexp(y, -power)
    seen, curvatures = parts.left.T @ y, parts.squares + penalty
    dual = parts.left @ (seen / curvatures)
    with np.errstate(all="ignore"):
        if penalty and len(y) > len(seen):
            dual = dual + (y - parts.left @ seen) / penalty
        inner = parts.right.T @ (parts.sizes * seen / curvatures)
        certificate = certify(parts, X, y, inner, dual, penalty)
        point = np.ldexp(inner, power)
    if not certificate.ok:
        text = f"{certificate}, above the tolerance {TOLERANCE:g}; drop rows that nearly depend on"
        raise Unsolved(Outcome(Kind.APPROXIMATE, f"{text} others, or take a larger penalty"))
    if not np.isfinite(point).all():
        raise Unsolved(Outcome(Kind.OUT_OF_RANGE, "the point is beyond float64; rescale X or y"))
    return np.asarray(point)


def certify(
    parts: Decomposed, X: Array, y: Array, point: Array, dual: Array, penalty: float
) -> Certificate:
    """How far the point is from the minimiser, from the data; of X the singular values are used.

    With r = y - X a and any u the gradient is X^T (r - penalty u) + penalty (X^T u - a): the least
    squares point of (r - penalty u) and X^T u - a are what is left to go. Without a penalty that
    of r is, at most |r| over the least singular value and |X^T r| over its square, and the part of
    a outside the rows.
    """
    missing, curvatures = exact.missing(X, point, y), parts.squares + penalty
    outside = float(np.linalg.norm(point - dual @ X))
    if penalty:
        most = float((parts.sizes / curvatures).max())
        away = float(np.linalg.norm(missing - penalty * dual)) * most
    else:
        least = float(parts.sizes.min())
        away = min(float(np.linalg.norm(part)) for part in (missing, missing @ X / least)) / least
    return Certificate((away + outside) / (float(np.linalg.norm(point)) or 1.0), "estimate")


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class LinearLimit(Record):
    """Where gradient descent ends and how fast: |a(t) - point| <= rate^t |a(0) - point|.

    `step_bound` is the learning rate from which it no longer converges.
    """

    point: Array
    rate: float
    step_bound: float


@door
def least_squares_limit(
    X: ArrayLike, y: ArrayLike, learning_rate: float, start: ArrayLike = 0.0
) -> LinearLimit:
    """The least squares point nearest to `start`, and the rate of gradient descent towards it.

    The point (X^T X)^+ X^T y is this one only if the start has no part outside the row space of X.

    Its relative error is estimated, and above 1e-7 it is refused. Rows that depend on each other to
    rounding count as dependent.

    Parameters
    ----------
    X
        The samples, one row each.
    y
        One label per sample.
    learning_rate
        The learning rate.
    start
        Where descent starts: a vector, or one number for all entries.

    Returns
    -------
    LinearLimit
        The `point`, the `rate` with |a(t) - point| <= rate^t |a(0) - point| after t steps, and the
        learning rate `step_bound` from which descent no longer converges.

    Raises
    ------
    NumericalError
        Rounding may move the point, or float64 does not tell whether rows depend on each other.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> limit = penchant.solvers.least_squares_limit(np.array([[1.0, 2.0]]), np.array([5.0]), 0.1)
    >>> limit.point.round(6), round(limit.rate, 6), round(limit.step_bound, 6)
    (array([1., 2.]), 0.5, 0.4)
    """
    X, y = regression_data(X, y)
    origin, parts = _origin(start, X.shape[1]), decomposed(X)
    return _towards(_nearest(parts, X, y, origin), parts.squares, learning_rate)


def nearest_point(X: Array, y: Array, origin: Array) -> Array:
    """The least squares point nearest to `origin`."""
    return _nearest(decomposed(X), X, y, origin)


def _nearest(parts: Decomposed, X: Array, y: Array, origin: Array) -> Array:
    return np.asarray(origin + fitted(parts, X, y - X @ origin))


def _towards(point: Array, curvatures: Array, learning_rate: float) -> LinearLimit:
    """Descent towards a point, where the objective has these curvatures."""
    rate = np.exp(_decays(curvatures, learning_rate)[0].max())
    return LinearLimit(point, float(rate), 2 / float(curvatures.max()))


def _decays(curvatures: Array, learning_rate: float) -> tuple[Array, Array]:
    """The logarithm of what a step multiplies the distance by, along each direction, its sign."""
    rate, bound = positive("learning_rate", learning_rate), 2 / float(curvatures.max())
    if rate >= bound:
        rule = f"learning_rate must be below {bound:.6g}, 2 over the largest curvature"
        raise Invalid(f"{rule} of the objective, got {rate:g}; take a smaller one")
    steps = rate * curvatures
    with np.errstate(divide="ignore"):  # a step that arrives at once
        logs = np.where(steps < 1, np.log1p(-np.minimum(steps, 1)), np.log(np.abs(1 - steps)))
    return logs, np.where(steps > 1, -1.0, 1.0)


@door
def ridge_limit(X: ArrayLike, y: ArrayLike, learning_rate: float, beta: float) -> LinearLimit:
    """The minimiser of (1/2)|X a - y|^2 + beta |a|_2^2, and the rate of descent towards it.

    The gradient of the penalty is 2 beta a, so 2 beta stands where Notsawo et al. 2025, theorem
    3.6, print beta: in the point, in the rate and in the bound of the learning rate.

    The relative error of the point is estimated, and above 1e-7 it is refused.

    Parameters
    ----------
    X
        The samples, one row each.
    y
        One label per sample.
    learning_rate
        The learning rate.
    beta
        The weight of the penalty.

    Returns
    -------
    LinearLimit
        The `point`, the `rate` with |a(t) - point| <= rate^t |a(0) - point| after t steps, and the
        learning rate `step_bound` from which descent no longer converges.

    Raises
    ------
    NumericalError
        Rounding may move the point.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> X, y = np.array([[1.0, 2.0]]), np.array([5.0])
    >>> penchant.solvers.ridge_limit(X, y, learning_rate=0.1, beta=0.5).point.round(4)
    array([0.8333, 1.6667])
    """
    X, y = regression_data(X, y)
    beta = not_negative("beta", beta)
    parts = decomposed(X, ranked=not beta)
    curvatures = parts.squares + 2 * beta
    if len(curvatures) < X.shape[1]:  # in a direction that X does not measure, the penalty acts
        positive("beta", beta)
        curvatures = np.append(curvatures, 2 * beta)
    return _towards(fitted(parts, X, y, 2 * beta), curvatures, learning_rate)


@door
def descent_points(
    X: ArrayLike,
    y: ArrayLike,
    learning_rate: float,
    beta: float,
    start: ArrayLike,
    steps: ArrayLike,
) -> Array:
    """The iterates of descent on (1/2)|X a - y|^2 + beta |a|_2^2 after so many `steps`.

    A closed formula in float64: it carries no certificate. It refuses rows of which float64 does
    not tell whether they depend on each other.

    Parameters
    ----------
    X
        The samples, one row each.
    y
        One label per sample.
    learning_rate
        The learning rate.
    beta
        The weight of the penalty.
    start
        Where descent starts.
    steps
        The numbers of steps, however large: no step is taken.

    Returns
    -------
    array
        One row for every number of steps.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> X, y, zero = np.array([[1.0, 2.0]]), np.array([5.0]), np.zeros(2)
    >>> penchant.solvers.descent_points(X, y, 0.1, 0.0, zero, [0, 1, 100]).round(6)
    array([[0. , 0. ],
           [0.5, 1. ],
           [1. , 2. ]])
    """
    X, y = regression_data(X, y)
    beta, counts = not_negative("beta", beta), finite_array("steps", steps, ndim=1)
    if counts.min() < 0:
        raise Invalid(f"steps must be >= 0, got {counts.min():g}")
    if not X.any() and not beta:
        raise Invalid("X must not be all zero where beta is 0")
    start = _origin(start, X.shape[1])
    if not X.any():
        logs, signs = _decays(np.array([2 * beta]), learning_rate)
        return np.asarray(_powers(logs, signs, counts)[0] * start)
    parts = decomposed(X)
    curvatures = np.append(parts.squares + 2 * beta, 2 * beta)
    logs, signs = _decays(curvatures, learning_rate)
    left, gone = _powers(logs, signs, counts)
    origin = parts.right @ start
    goal = parts.sizes * (parts.left.T @ y) / curvatures[:-1]
    # what X does not measure only decays
    unseen = start - parts.right.T @ origin
    return np.asarray(
        (left[:, :-1] * origin + gone[:, :-1] * goal) @ parts.right + left[:, -1:] * unseen
    )


def _powers(logs: Array, signs: Array, counts: Array) -> tuple[Array, Array]:
    """(f^t, 1 - f^t) for the factors f = sign e^log, one row for each t."""
    with np.errstate(invalid="ignore"):
        exponents = np.where(counts[:, None] == 0, 0.0, counts[:, None] * logs)
    turned = np.where(signs < 0, np.where(counts[:, None] % 2 == 1, -1.0, 1.0), 1.0)
    left = turned * np.exp(exponents)
    return left, np.where(turned < 0, 1 - left, -np.expm1(exponents))


@door
def error_floor(X: ArrayLike, truth: ArrayLike) -> float:
    """The least squared error |(I - X^+ X) truth|^2 of any point in the row space of X.

    A closed formula in float64: it carries no certificate. It refuses rows of which float64 does
    not tell whether they depend on each other.

    Parameters
    ----------
    X
        The samples, one row each.
    truth
        The vector that the error is taken to.

    Returns
    -------
    float
        The squared length of what X does not measure of the truth.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> round(penchant.solvers.error_floor(np.array([[1.0, 2.0]]), [1.0, 0.0]), 6)
    0.8
    """
    X = finite_array("X", X, ndim=2)
    truth = entries("truth", truth, X.shape[1], "one entry per column of X")
    right = decomposed(X).right
    return float(np.sum((truth - right.T @ (right @ truth)) ** 2))


@door
def memorization_steps(
    X: ArrayLike, y: ArrayLike, learning_rate: float, level: float, start: ArrayLike = 0.0
) -> int:
    """The first step of plain gradient descent with (1/2)|X a - y|^2 <= level.

    It carries no certificate: the losses before and after are computed in float64, which knows
    the number of steps to about 15 digits.

    Parameters
    ----------
    X
        The samples, one row each.
    y
        One label per sample.
    learning_rate
        The learning rate.
    level
        The loss at which training counts as solved.
    start
        Where descent starts: a vector, or one number for all entries.

    Returns
    -------
    int
        The number of steps.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> penchant.solvers.memorization_steps(np.array([[1.0, 2.0]]), np.array([5.0]), 0.1, 1e-4)
    9
    """
    X, y = regression_data(X, y)
    level = positive("level", level)
    return steps_to_level(X, y, learning_rate, level, _origin(start, X.shape[1]))


def steps_to_level(X: Array, y: Array, learning_rate: float, level: float, origin: Array) -> int:
    parts = decomposed(X)
    logs = _decays(parts.squares, learning_rate)[0]
    residual = X @ origin - y
    seen = parts.left.T @ residual
    with np.errstate(over="ignore"):
        never = 0.5 * float(np.sum((residual - parts.left @ seen) ** 2))
    if level <= never:
        raise Invalid(f"level must be above {never:g}, the least loss, got {level:g}")

    def solved(t: int) -> bool:
        left = np.exp(t * logs) * seen if t else seen
        with np.errstate(over="ignore"):
            return never + 0.5 * float(np.sum(left**2)) <= level

    steps = bisect.bisect_left(range(LONGEST), True, key=solved)
    if steps == LONGEST:
        raise Invalid(f"level {level:g} is not reached in 2^62 steps; take a larger learning_rate")
    return steps


def _origin(start: ArrayLike, dimension: int) -> Array:
    """The start as a vector; one number stands for all of its entries."""
    if np.isscalar(start) or (isinstance(start, np.ndarray) and start.ndim == 0):
        return np.broadcast_to(real("start", start), dimension)
    return entries("start", start, dimension, "one entry per column of X")
