"""What one-hidden-layer ReLU nets of one input can learn at least: splines, bends and weights."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, finite_array
from penchant.door import Invalid, door
from penchant.problems.regression import Regression
from penchant.records import NumericalError
from penchant.regularizers.norms import L1
from penchant.solvers.interpolate import interpolate

Function = Callable[[ArrayLike], Array]


@door
def linear_spline(problem: Regression) -> Function:
    """The function that is linear between neighbouring data points, and constant beyond the last.

    Between the data it is what a univariate ReLU net of least weights learns.

    A closed formula in float64: it carries no certificate.

    Parameters
    ----------
    problem
        Points of one feature, no two at one place.

    Returns
    -------
    function
        Of an array of points.

    References
    ----------
    Savarese et al. (2019), How do infinite width bounded norm networks look in function space?

    Examples
    --------
    >>> import penchant
    >>> line = penchant.solvers.linear_spline(penchant.problems.zigzag())
    >>> line([-1.0, 0.0]).shape
    (2,)
    """
    x, y = _points(problem)
    return lambda points: np.interp(np.asarray(points, float), x, y)


@door
def cubic_spline(problem: Regression) -> Function:
    """The natural cubic spline of the data.

    A closed formula in float64: it carries no certificate.

    Parameters
    ----------
    problem
        Points of one feature, no two at one place.

    Returns
    -------
    function
        Of an array of points.

    Examples
    --------
    >>> import penchant
    >>> problem = penchant.Regression([[-1.0], [0.0], [1.0]], [0.0, 1.0, 0.0])
    >>> penchant.solvers.cubic_spline(problem)([0.5]).round(4)
    array([0.6875])
    """
    from scipy.interpolate import CubicSpline

    x, y = _points(problem)
    spline = CubicSpline(x, y, bc_type="natural")
    return lambda points: np.asarray(spline(np.asarray(points, float)))


@door
def least_bend(problem: Regression) -> float:
    """The least second-order total variation of an interpolating function, the integral of |f''|.

    It is that of the linear spline: the sum of the changes of its slope.

    A closed formula in float64: it carries no certificate.

    Parameters
    ----------
    problem
        Points of one feature, no two at one place.

    Returns
    -------
    float
        The least integral.

    References
    ----------
    Savarese et al. (2019), How do infinite width bounded norm networks look in function space?

    Examples
    --------
    >>> import penchant
    >>> penchant.solvers.least_bend(penchant.Regression([[-1.0], [0.0], [1.0]], [0.0, 1.0, 0.0]))
    2.0
    """
    x, y = _points(problem)
    return float(np.abs(np.diff(np.diff(y) / np.diff(x))).sum())


@door
def least_weights(problem: Regression, knots: ArrayLike) -> float:
    """The least sum of |(w, b)| |v| of units v relu(w x + b) that interpolate and turn at `knots`.

    Half the least squared norm of w, b and v together, the output bias free: the least l1 norm of
    an interpolation, certified as that of `interpolate`.

    Parameters
    ----------
    problem
        Points of one feature, no two at one place.
    knots
        Where units may turn on or off.

    Returns
    -------
    float
        The least sum; infinite if no sum of these units interpolates.

    Raises
    ------
    NumericalError
        The sum cannot be certified.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> problem = penchant.Regression([[-1.0], [0.0], [1.0]], [0.0, 1.0, 0.0])
    >>> round(penchant.solvers.least_weights(problem, np.linspace(-1, 1, 21)), 4)
    2.0
    """
    (x, y), turns = _points(problem), finite_array("knots", knots, ndim=1)
    right = np.maximum(x[:, None] - turns, 0) / np.sqrt(1 + turns**2)
    left = np.maximum(turns - x[:, None], 0) / np.sqrt(1 + turns**2)
    units = np.concatenate([right, left], axis=1)
    try:  # the bias takes one sample out
        solution = interpolate(units[1:] - units[0], y[1:] - y[0], L1(), throw=False)
    except ValueError:
        return np.inf
    if not solution.outcome.ok:
        raise NumericalError("least_weights", solution.outcome)
    return solution.value


def _points(problem: Regression) -> tuple[Array, Array]:
    if not isinstance(problem, Regression) or problem.dimension != 1:
        seen = f"{problem.dimension} features" if isinstance(problem, Regression) else repr(problem)
        raise Invalid(f"problem must be a Regression with one feature, got {seen:.80}")
    order = np.argsort(problem.X[:, 0])
    x, y = problem.X[order, 0], problem.y[order]
    if len(x) < 2 or not (np.diff(x) > 0).all():
        raise Invalid("problem must have two points or more, no two at one place")
    return x, y
