"""When descent with a small penalty memorizes and generalizes, by Notsawo et al. 2025."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import finite_array, one_of, positive, regression_data
from penchant.door import Invalid, door
from penchant.records import Record
from penchant.solvers.least_squares import error_floor, nearest_point, steps_to_level


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
    t1 = steps_to_level(X, y, learning_rate, positive("level", level), zero)
    gap = (nearest_point(X, y, zero) - truth.ravel()).reshape(truth.shape)
    distance = float(np.linalg.norm(gap, np.inf if norm == "l1" else 2))
    return Delay(t1, t1 + distance / rate, distance, rate, error_floor(X, truth.ravel()))
