"""Minimisers at falling scales, each computed when it is asked for, and the first that recovers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, finite_array, integer, positive, regression_data
from penchant.door import Invalid, door, speaking_as
from penchant.records import NumericalError
from penchant.regularizers.q import Q
from penchant.solvers import continuation
from penchant.solvers.accuracy import Given
from penchant.solvers.constraints import reduce
from penchant.solvers.interpolate import arrived, certified
from penchant.solvers.solution import Solution


@door
def minimisers(X: ArrayLike, y: ArrayLike, depth: int, log_mus: ArrayLike) -> Iterator[Array]:
    """The minimisers of Q^D at falling log alpha^D, one after the other, NaN where one failed.

    None is computed before it is asked for: of a path some points are needed, and two of them
    decide. A predictor whose certified error misses the tolerance of `interpolate` failed.

    Parameters
    ----------
    X
        Samples in the rows.
    y
        Targets.
    depth
        The depth D of the diagonal net.
    log_mus
        Falling values of log alpha^D.

    Returns
    -------
    iterator
        One predictor after the other.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> X, y = np.array([[1.0, 2.0]]), np.array([2.0])
    >>> wide, narrow = penchant.solvers.minimisers(X, y, 2, np.log([100.0, 1e-6]))
    >>> wide.round(2).tolist(), narrow.round(2).tolist()
    ([0.4, 0.8], [0.0, 1.0])
    """
    followed = _followed(*regression_data(X, y), *_falling(depth, log_mus))
    return (s.beta if s.outcome.ok else np.full_like(s.beta, np.nan) for s in followed)


@door
def recovery_scale(
    X: ArrayLike,
    y: ArrayLike,
    truth: ArrayLike,
    depth: int,
    log_mus: ArrayLike,
    *,
    error: float,
) -> float:
    """The largest log alpha^D from which a diagonal net ends near the truth.

    Near is a squared distance of at most `error`, the population error for x ~ N(0, I). Between the
    last scale that fails and the first that succeeds, the logarithm of the error is taken as linear
    in the logarithm of the scale. The ends are certified as those of `interpolate`; the number has
    no certificate of its own, since the scales between are not tried.

    Parameters
    ----------
    X
        Samples in the rows.
    y
        Targets.
    truth
        The predictor that is to be recovered.
    depth
        The depth D of the diagonal net.
    log_mus
        Falling values of log alpha^D that are tried in turn.
    error
        The squared distance to the truth that counts as recovery.

    Returns
    -------
    float
        log alpha^D; -inf if no scale recovers the truth.

    Raises
    ------
    NumericalError
        A minimiser on the way cannot be certified.

    Examples
    --------
    >>> import math
    >>> import numpy as np
    >>> import penchant
    >>> problem = penchant.problems.sparse_regression(30, 80, sparsity=2, noise=0.1, seed=0)
    >>> falling = np.log(10) * np.arange(0.0, -20.0, -0.5)
    >>> data = problem.X, problem.y, problem.truth
    >>> for depth in 2, 10:
    ...     largest = penchant.solvers.recovery_scale(*data, depth, falling, error=0.025)
    ...     print(f"{math.exp(largest):.1e}")
    1.4e-15
    1.0e-03
    """
    (X, y), truth = regression_data(X, y), finite_array("truth", truth, ndim=1)
    (depth, scales), error = _falling(depth, log_mus), positive("error", error)
    if X.shape[1] != len(truth):
        rule = f"truth must have an entry for each of {X.shape[1]} features"
        raise Invalid(f"{rule}, got {len(truth)}")
    above = np.nan  # the logarithm of the error at the scale before
    for place, solution in enumerate(_followed(X, y, depth, scales)):
        if not solution.outcome.ok:
            raise NumericalError("recovery_scale", solution.outcome)
        with np.errstate(divide="ignore"):
            log_error = float(np.log(np.sum((solution.beta - truth) ** 2)))
        if log_error <= np.log(error):
            tried = scales[max(place - 1, 0) : place + 1]
            errors = [above, log_error][-len(tried) :]
            return float(np.interp(-np.log(error), -np.array(errors), tried))
        above = log_error
    return -np.inf


def _falling(depth: int, log_mus: ArrayLike) -> tuple[int, Array]:
    depth = integer("depth", depth, least=2)
    scales = finite_array("log_mus", log_mus, ndim=1)
    if (np.diff(scales) > 0).any():
        where = int(np.argmax(np.diff(scales) > 0)) + 1
        raise Invalid(f"log_mus must fall, got {scales[where]:g} at index {where}")
    return depth, scales


def _followed(X: Array, y: Array, depth: int, log_mus: Array) -> Iterator[Solution]:
    with speaking_as("minimisers"):
        at = reduce(X, y)
    given, first = Given(X, y), Q(depth, log_alpha=float(log_mus[0]) / depth)
    points = continuation.follow(first, at, log_mus - np.log(at.scale))
    for log_mu, point in zip(log_mus, points, strict=True):
        law = Q(depth, log_alpha=float(log_mu) / depth)
        yield certified(given, law, arrived(law, at, point), at, valued=False)
