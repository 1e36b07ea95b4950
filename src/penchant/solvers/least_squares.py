"""Where descent on (1/2)|X a - y|^2 + beta h(a) goes, how fast, and when it may generalize.

The theory of Notsawo et al. 2025, with g = (1/2) sum r^2. Gradient descent memorizes first: it goes
to the least squares point nearest to its start. Then the penalty takes over: beta |a|_2^2 leads to
the ridge point, which contains nothing of the part of the truth that X does not measure.
"""

from __future__ import annotations

import bisect
import dataclasses
import math

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import (
    Array,
    entries,
    finite_array,
    not_negative,
    one_of,
    positive,
    real,
    regression_data,
)
from penchant.door import Invalid, door
from penchant.records import Record

WHO, RIDGE = "predicted_delay", "held_ridge"


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

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> limit = penchant.solvers.least_squares_limit(np.array([[1.0, 2.0]]), np.array([5.0]), 0.1)
    >>> limit.point.round(6), round(limit.rate, 6), round(limit.step_bound, 6)
    (array([1., 2.]), 0.5, 0.4)
    """
    X, y = regression_data(X, y)
    return _limit(X, y, learning_rate, _origin(start, X.shape[1]))


def _limit(X: Array, y: Array, learning_rate: float, origin: Array) -> LinearLimit:
    sizes = _spectrum(X)
    bound = 2 / float(sizes.max())
    rate = float(np.abs(1 - _stable(learning_rate, bound) * sizes).max())
    return LinearLimit(origin + np.linalg.pinv(X) @ (y - X @ origin), rate, bound)


@door
def ridge_limit(X: ArrayLike, y: ArrayLike, learning_rate: float, beta: float) -> LinearLimit:
    """The minimiser of (1/2)|X a - y|^2 + beta |a|_2^2, and the rate of descent towards it.

    The gradient of the penalty is 2 beta a, so 2 beta stands where Notsawo et al. 2025, theorem
    3.6, print beta: in the point, in the rate and in the bound of the learning rate.

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
    sizes = _spectrum(X) + 2 * beta
    if len(sizes) < X.shape[1]:  # in a direction that X does not measure, only the penalty acts
        positive("beta", beta)
        sizes = np.append(sizes, 2 * beta)
    bound = 2 / float(sizes.max())
    rate = float(np.abs(1 - _stable(learning_rate, bound) * sizes).max())
    gram = X.T @ X + 2 * beta * np.eye(X.shape[1])
    return LinearLimit(np.asarray(np.linalg.solve(gram, X.T @ y), dtype=float), rate, bound)


@door
def descent_points(
    X: ArrayLike,
    y: ArrayLike,
    learning_rate: float,
    beta: float,
    start: ArrayLike,
    steps: ArrayLike,
) -> Array:
    """The iterates of descent on (1/2)|X a - y|^2 + beta |a|_2^2 after so many `steps`, exactly.

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
    start = _origin(start, X.shape[1])
    values, basis = np.linalg.eigh(X.T @ X)
    sizes = np.maximum(values, 0.0) + 2 * beta
    if sizes.max() == 0:
        raise Invalid("X must not be all zero where beta is 0")
    rate = _stable(learning_rate, 2 / float(sizes.max()))
    origin, pull = basis.T @ start, basis.T @ (X.T @ y)
    # components along eigenvectors with eigenvalue zero do not move without decay
    still = sizes <= 1e-14 * sizes.max()
    point = np.where(still, origin, pull / np.where(still, 1.0, sizes))
    factors = np.where(still, 1.0, 1 - rate * sizes)
    powers = np.abs(factors) ** counts[:, None] * np.where(
        factors < 0, (-1.0) ** counts[:, None], 1
    )
    return np.asarray((point + powers * (origin - point)) @ basis.T)


@door
def error_floor(X: ArrayLike, truth: ArrayLike) -> float:
    """The least squared error |(I - X^+ X) truth|^2 of any point in the row space of X.

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
    return float(np.sum((truth - np.linalg.pinv(X) @ (X @ truth)) ** 2))


@door
def memorization_steps(
    X: ArrayLike, y: ArrayLike, learning_rate: float, level: float, start: ArrayLike = 0.0
) -> int:
    """The first step of plain gradient descent with (1/2)|X a - y|^2 <= level, exactly.

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
    return _memorized(X, y, learning_rate, level, _origin(start, X.shape[1]))


def _memorized(X: Array, y: Array, learning_rate: float, level: float, origin: Array) -> int:
    sizes = _spectrum(X)
    left = np.linalg.svd(X, full_matrices=False)[0][:, : len(sizes)]
    factors = np.abs(1 - _stable(learning_rate, 2 / float(sizes.max())) * sizes)
    residual = X @ origin - y
    seen = left.T @ residual
    never = 0.5 * float(np.sum((residual - left @ seen) ** 2))
    if level <= never:
        raise Invalid(f"level must be above {never:g}, the least loss, got {level:g}")

    def solved(t: int) -> bool:
        return never + 0.5 * float(np.sum((factors**t * seen) ** 2)) <= level

    return bisect.bisect_left(range(2**62), True, key=solved)


@dataclasses.dataclass(frozen=True, repr=False)
class Delay(Record):
    """The predicted steps at which a run memorizes and generalizes, and its errors.

    Notsawo et al. 2025 give orders, not constants: see `penchant.solvers.slow_flow` for an exact
    t2.

    Attributes
    ----------
    t1
        The steps until training is solved.
    t2
        The steps until the test is solved.
    distance
        The numerator of t2 - t1 = distance / (learning_rate beta).
    error
        The order learning_rate * beta of the error at t2.
    floor
        The least error that a run without the right penalty can reach.

    References
    ----------
    .. [1] Notsawo et al. (2025), Grokking Beyond the Euclidean Norm of Model Parameters.

    Examples
    --------
    >>> import penchant
    >>> delay = penchant.forecasts.Delay(t1=10, t2=110.0, distance=0.1, error=1e-3, floor=0.5)
    >>> print(delay)
    Delay
      t1        10
      t2        110
      distance  0.1
      error     0.001
      floor     0.5
    """

    t1: int
    t2: float
    distance: float
    error: float
    floor: float

    @property
    def delay(self) -> float:
        return self.t2 - self.t1


@door
def predicted_delay(
    X: ArrayLike,
    y: ArrayLike,
    truth: ArrayLike,
    learning_rate: float,
    beta: float,
    norm: str = "l1",
    level: float = 1e-4,
) -> Delay:
    """t1, t2 and the errors that Notsawo et al. 2025 predict for descent from (nearly) zero.

    The objective is (1/2)|X a - y|^2 + beta |a|.

    Parameters
    ----------
    X
        The samples, one row each.
    y
        One label per sample.
    truth
        The vector or matrix that generated the labels. Its distance from the least squares point
        is measured in the dual norm of the penalty: the largest entry for "l1" (theorems 3.1 and
        3.3), the operator norm for "nuclear" (theorems 3.4 and 3.5). For "nuclear" it is a matrix,
        and X has a column for each of its entries, row after row.
    learning_rate
        The learning rate.
    beta
        The weight of the penalty, as in `train(..., penalty=beta * L1())`.
    norm
        "l1" or "nuclear".
    level
        Training is solved at (1/2)|X a - y|^2 <= level.

    Returns
    -------
    Delay
        The predicted steps and errors.

    References
    ----------
    .. [1] Notsawo et al. (2025), Grokking Beyond the Euclidean Norm of Model Parameters.

    Examples
    --------
    >>> import penchant
    >>> problem = penchant.problems.sparse_recovery(20, 40, sparsity=2, seed=0)
    >>> X, y, truth = problem.X, problem.y, problem.truth
    >>> delay = penchant.forecasts.predicted_delay(X, y, truth, learning_rate=0.1, beta=1e-4)
    >>> delay.t1 < delay.t2
    True
    """
    one_of("norm", norm, ("l1", "nuclear"))
    X, y = regression_data(X, y)
    truth = finite_array("truth", truth, ndim=1 if norm == "l1" else 2)
    if truth.size != X.shape[1]:
        rule = f"truth must have one entry per column of X ({X.shape[1]})"
        raise Invalid(f"{rule}, got {truth.size}")
    rate = positive("learning_rate", learning_rate) * positive("beta", beta)
    zero = np.zeros(X.shape[1])
    t1 = _memorized(X, y, learning_rate, positive("level", level), zero)
    end = _limit(X, y, learning_rate, zero).point
    gap = (end - truth.ravel()).reshape(truth.shape)
    distance = float(np.linalg.norm(gap, np.inf if norm == "l1" else 2))
    return Delay(t1, t1 + distance / rate, distance, rate, error_floor(X, truth.ravel()))


def _origin(start: ArrayLike, dimension: int) -> Array:
    """The start as a vector; one number stands for all of its entries."""
    if np.isscalar(start) or (isinstance(start, np.ndarray) and start.ndim == 0):
        return np.broadcast_to(real("start", start), dimension)
    return entries("start", start, dimension, "one entry per column of X")


def _spectrum(X: Array) -> Array:
    sizes = np.linalg.svd(X, compute_uv=False)
    if sizes[0] == 0:
        raise Invalid(f"X must not be all zero, got {len(X)} rows of zeros")
    return np.asarray(sizes[sizes > 1e-12 * sizes[0]] ** 2)


def _stable(learning_rate: float, bound: float) -> float:
    """`learning_rate`, which must be below the bound where descent stops converging."""
    rate = positive("learning_rate", learning_rate)
    if rate >= bound:
        rule = f"learning_rate must be below {bound:.6g}, 2 over the largest curvature"
        raise Invalid(f"{rule} of the objective, got {rate:g}; take a smaller one")
    return rate


@door
def held_ridge(X: ArrayLike, y: ArrayLike, size: float, free: ArrayLike | None = None) -> Array:
    """Where descent on |X a - y|^2 held at |a|_2 = size ends.

    Below the norm of a_hat = X^+ y it is the ridge point (X^T X + mu)^-1 X^T y whose mu > 0 gives
    this norm. Above, every interpolator of that norm is a minimiser. Descent does not change the
    part in the null space of X and stretching keeps its direction, so from a start with the
    null-space part u it ends at a_hat + c u/|u|.

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
    left, values, right = np.linalg.svd(X, full_matrices=False)
    significant = values > values.max() * max(X.shape) * np.finfo(float).eps
    values, right, pull = values[significant], right[significant], (left.T @ y)[significant]
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
    values, right = np.linalg.svd(X, full_matrices=False)[1:]
    right = right[values > values.max() * max(X.shape) * np.finfo(float).eps]
    seen = right.T @ (right @ truth)
    unseen = truth - seen
    along = max(float(unseen @ _unseen(right, free, X.shape[1])), 0.0)
    return math.sqrt(float(seen @ seen) + along**2), float(unseen @ unseen) - along**2
