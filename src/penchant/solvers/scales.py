"""Minimisers at falling scales, one after the other, each computed when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, finite_array, integer, regression_data
from penchant.door import Invalid, door, speaking_as
from penchant.regularizers.q import Q
from penchant.solvers import continuation
from penchant.solvers.constraints import reduce
from penchant.solvers.interpolate import arrived


@door
def minimisers(X: ArrayLike, y: ArrayLike, depth: int, log_mus: ArrayLike) -> Iterator[Array]:
    """The minimisers of Q^D at falling log alpha^D, one after the other, NaN where one failed.

    None is computed before it is asked for, and none has a certificate: of a path some points are
    needed, and two of them decide.

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
    X, y = regression_data(X, y)
    depth = integer("depth", depth, least=2)
    log_mus = finite_array("log_mus", log_mus, ndim=1)
    if (np.diff(log_mus) > 0).any():
        where = int(np.argmax(np.diff(log_mus) > 0)) + 1
        raise Invalid(f"log_mus must fall, got {log_mus[where]:g} at index {where}")
    return _followed(X, y, depth, log_mus)


def _followed(X: Array, y: Array, depth: int, log_mus: Array) -> Iterator[Array]:
    with speaking_as("minimisers"):
        at = reduce(X, y)
    first = Q(depth, log_alpha=float(log_mus[0]) / depth)
    points = continuation.follow(first, at, log_mus - np.log(at.scale))
    for log_mu, point in zip(log_mus, points, strict=True):
        yield arrived(Q(depth, log_alpha=float(log_mu) / depth), at, point).beta
