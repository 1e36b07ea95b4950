"""Gradient flow beside that of the tangent model of its start, in time.

How it works. Both are integrated as displacements from the start: from a large start the
parameters themselves lose the digits of a small displacement, and for models with a separable
linear predictor the change of the predictor is computed without cancellation. The twin moves with
the features of the start. `train` with a `ParameterFlow` follows one model as far as you like, in
its loss; this follows two at equal times, with the outputs at any points.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, finite_array, positive
from penchant.door import Invalid, door
from penchant.models.model import Model, Separable
from penchant.problems.classification import Classification
from penchant.problems.regression import Regression
from penchant.records import Kind, NumericalError, Outcome, Record

FAR_BACK = -50.0  # margins of trial steps that are far off are cut here


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class TangentTwin(Record):
    """A flow and its tangent twin at equal times, from equal starts.

    Attributes
    ----------
    times
        The times.
    outputs
        f(theta(t), x) - f(theta(0), x), one row per time and one column per point.
    tangent
        The same of the twin.

    Examples
    --------
    >>> import penchant
    >>> line = penchant.Classification([[1.0, 2.0]], [1])
    >>> pair = penchant.solvers.tangent_twin(penchant.DiagonalNet(alpha=2.0), line, [0.0, 1.0])
    >>> pair.distance.shape, bool(pair.distance[0] == 0)
    ((2,), True)
    """

    times: Array
    outputs: Array
    tangent: Array

    @property
    def distance(self) -> Array:
        """The largest distance of both rows up to each time."""
        apart = np.linalg.norm(self.outputs - self.tangent, axis=1)
        return np.asarray(np.maximum.accumulate(apart))


@door
def tangent_twin(
    model: Model,
    problem: Classification | Regression,
    times: ArrayLike,
    points: ArrayLike | None = None,
    *,
    rtol: float = 1e-11,
) -> TangentTwin:
    """Gradient flow of a model and of its tangent at the start, side by side in time.

    It integrates in time and carries no certificate: the tolerance is that of a step.

    Parameters
    ----------
    model
        The model.
    problem
        The data; the loss is theirs.
    times
        The times, rising from 0 or later.
    points
        Where the outputs are wanted, one row each; the samples by default. The unit vectors give
        the predictor of a linear model.
    rtol
        The relative tolerance of the integration.

    Returns
    -------
    TangentTwin
        The outputs of both, less those of the start.

    References
    ----------
    .. [1] Chizat et al. (2019), On Lazy Training in Differentiable Programming.
    .. [2] Moroshko et al. (2020), Implicit Bias in Deep Linear Classification, Theorem 1.

    Examples
    --------
    >>> import penchant
    >>> line = penchant.Classification([[1.0, 2.0]], [1])
    >>> for alpha in (1.0, 10.0):
    ...     net = penchant.DiagonalNet(2, alpha=alpha)
    ...     pair = penchant.solvers.tangent_twin(net, line, [0.0, 1.0])
    ...     print(pair.outputs[-1].round(4), pair.tangent[-1].round(4))
    [3.8431] [3.7136]
    [8.2944] [8.2943]
    """
    if not isinstance(model, Model):
        raise Invalid(f"model must be a Model, got {type(model).__name__}")
    if not isinstance(problem, Classification | Regression):
        raise Invalid(
            f"problem must be a Classification or a Regression, got {type(problem).__name__}"
        )
    clock = finite_array("times", times, ndim=1)
    if len(clock) == 0 or clock[0] < 0 or (np.diff(clock) <= 0).any():
        raise Invalid("times must rise, from 0 or later")
    where = problem.X if points is None else finite_array("points", points, ndim=2)
    if where.shape[1] != problem.dimension:
        raise Invalid(
            f"points must have {problem.dimension} columns like the samples, got {where.shape[1]}"
        )
    rtol = positive("rtol", rtol)
    outputs, tangent = (
        _followed(model, problem, clock, where, linear, rtol) for linear in (False, True)
    )
    return TangentTwin(clock, outputs, tangent)


def _followed(
    model: Model,
    problem: Classification | Regression,
    times: Array,
    points: Array,
    linear: bool,
    rtol: float,
) -> Array:
    from scipy.integrate import solve_ivp

    X, pull = problem.X, _pull(problem)
    start = model.start(problem.dimension)
    features, features_there = model.jacobian(start, X), model.jacobian(start, points)
    begin, begin_there = model.predict(start, X), model.predict(start, points)

    def moved(displacement: Array, rows: Array, slopes: Array, before: Array) -> Array:
        if linear:
            return np.asarray(slopes @ displacement)
        if isinstance(model, Separable):
            return np.asarray(rows @ model.change(start, displacement))
        return np.asarray(model.predict(start + displacement, rows) - before)

    def velocity(_: float, displacement: Array) -> Array:
        pulled = pull(begin + moved(displacement, X, features, begin))
        if linear:
            return np.asarray(features.T @ pulled)
        return model.pullback(start + displacement, X, pulled)

    at_rest = np.zeros_like(start)
    solution = solve_ivp(
        velocity,
        (0.0, float(times[-1])),
        at_rest,
        method="LSODA",
        t_eval=times,
        rtol=rtol,
        atol=1e-14,
        first_step=_first_step(features, times),
    )
    if not solution.success:
        raise NumericalError("tangent_twin", Outcome(Kind.STALLED, str(solution.message)))
    rows = [moved(each, points, features_there, begin_there) for each in solution.y.T]
    return np.array(rows)


def _first_step(features: Array, times: Array) -> float | None:
    """Far below the shortest time of the kernel of the start; the integrator's own may pass it."""
    fastest = float(np.linalg.norm(features, 2)) ** 2
    end = float(times[-1])
    return min(1e-6 / fastest, end) if fastest > 0 and end > 0 else None


def _pull(problem: Classification | Regression) -> Callable[[Array], Array]:
    """Minus the gradient of the loss in the outputs."""
    y = problem.y
    if isinstance(problem, Regression):
        twice = 2 * float(np.exp(problem.log_factor))
        return lambda outputs: twice * (y - outputs)

    def pull(outputs: Array) -> Array:
        margins = np.maximum(y * outputs, FAR_BACK)
        weights = np.exp(-margins if problem.loss == "exp" else -np.logaddexp(0.0, margins))
        return np.asarray(y * weights / len(y))

    return pull
