"""The slow phase after memorization with the nuclear norm: its steepest descent, by Euler steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tacit.arguments import Array, finite_array, positive
from tacit.solvers.slow_flow import SlowFlow

WHO = "nuclear_slow_flow"
QUIET, STILL = 1000, 1e-7  # it is over when so many steps lower the norm by no more than this part


def nuclear_slow_flow(
    X: ArrayLike,
    start: ArrayLike,
    learning_rate: float,
    target: ArrayLike | None = None,
    error: float = 0.0,
) -> SlowFlow:
    """Steepest descent of |A|_* on {X vec(A) = X vec(start)} from `start`, as flat points.

    Euler steps dA = -learning_rate P(U V^T), P the projection on the kernel of X.

    Parameters
    ----------
    X
        The measurements, one row each, with a column for each entry of the matrix.
    start
        The matrix that the flow starts from.
    learning_rate
        The size of a step. Singular values that come to zero hop over it by `learning_rate`, so
        errors of that size are not resolved.
    target
        A matrix at which the path may end.
    error
        The path ends early within this distance of the target.

    Returns
    -------
    SlowFlow
        The path, with flat matrices as points.

    Examples
    --------
    >>> import tacit
    >>> X, start = [[1.0, 0.0, 0.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]
    >>> flow = tacit.nuclear_slow_flow(X, start, learning_rate=0.01)
    >>> flow.points[-1].round(1) + 0.0
    array([1., 0., 0., 0.])
    """
    X, matrix = finite_array(WHO, "X", X, ndim=2), finite_array(WHO, "start", start, ndim=2)
    if matrix.size != X.shape[1]:
        rule = f"start must have one entry per column of X ({X.shape[1]})"
        raise ValueError(f"{WHO}: {rule}, got shape {matrix.shape}")
    goal = None if target is None else finite_array(WHO, "target", target, ndim=2)
    rate = positive(WHO, "learning_rate", learning_rate)
    rows = np.linalg.svd(X, full_matrices=False)[2]
    points, lowest, quiet = [matrix.ravel()], np.inf, 0
    while quiet < QUIET:
        if goal is not None and np.linalg.norm(matrix - goal) <= error:
            return _path(points, rate)
        u, s, v = np.linalg.svd(matrix, full_matrices=False)
        pull = ((u * (s > 1e-12 * s[0])) @ v).ravel()
        matrix = matrix - rate * (pull - rows.T @ (rows @ pull)).reshape(matrix.shape)
        points.append(matrix.ravel())
        lower = s.sum() < (1 - STILL) * lowest
        lowest, quiet = (float(s.sum()), 0) if lower else (lowest, quiet + 1)
    return _path(points[: len(points) - quiet], rate)


def _path(points: list[Array], rate: float) -> SlowFlow:
    return SlowFlow(np.arange(len(points)) * np.float64(rate), np.array(points))
