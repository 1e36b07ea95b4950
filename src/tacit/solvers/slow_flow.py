"""The slow phase after memorization: steepest descent of a norm among interpolators.

Once X a = y, descent on (1/2)|X a - y|^2 + beta |a|_1 with a small learning_rate * beta follows
da/dtau = -P s in tau = learning_rate * beta * steps, P the projection on the kernel of X and s
the subgradient of |a|_1 that makes P s shortest. It gives the delay of source N exactly, constant
included, where N gives its order |a_hat - a*|_inf.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import ArrayLike

from tacit.arguments import Array, entries, finite_array, positive
from tacit.records import Kind, NumericalError, Outcome, Record

WHO = "slow_flow"
PIECES = 100  # per coordinate, far more than were ever needed
ZERO = 1e-12  # of the largest entry
STILL = 1e-9  # a velocity that is rounding
QUIET, LEVEL = 1000, 1e-7  # it is over when so many steps lower the norm by no more than this part


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class SlowFlow(Record):
    """The corners of the path; the last one has least l1 norm.

    Attributes
    ----------
    tau
        The times of the corners.
    points
        The point at each time, one row each.

    Examples
    --------
    >>> import tacit
    >>> flow = tacit.slow_flow([[1.0, 2.0]], [2.0, 0.0])
    >>> flow.tau.round(6)
    array([0., 5.])
    """

    tau: Array
    points: Array

    @property
    def time(self) -> float:
        """tau at the end: training takes about time / (learning_rate * beta) more steps."""
        return float(self.tau[-1])

    @property
    def end(self) -> Array:
        return np.asarray(self.points[-1])

    def at(self, tau: ArrayLike) -> Array:
        """The points at the times `tau`; the path rests at its end."""
        tau = np.asarray(tau, dtype=float)
        columns = [np.interp(tau, self.tau, column) for column in self.points.T]
        return np.stack(columns, axis=-1)

    def reaches(self, target: ArrayLike, error: float) -> float:
        """The first tau with |a - target|_2 <= error; inf if the path never comes so near."""
        target = finite_array(WHO, "target", target, ndim=1)
        error = positive(WHO, "error", error)
        gaps = self.points - target
        if np.linalg.norm(gaps[0]) <= error:
            return 0.0
        for k in range(len(gaps) - 1):
            share = _crossing(gaps[k], gaps[k + 1] - gaps[k], error)
            if share is not None:
                return float(self.tau[k] + share * (self.tau[k + 1] - self.tau[k]))
        return np.inf


def slow_flow(X: ArrayLike, start: ArrayLike) -> SlowFlow:
    """Steepest descent of |a|_1 on {a : X a = X start} from `start`, exactly, to its end.

    Parameters
    ----------
    X
        The samples, one row each.
    start
        The point that the flow starts from.

    Returns
    -------
    SlowFlow
        The corners of the path.

    Examples
    --------
    >>> import tacit
    >>> flow = tacit.slow_flow([[1.0, 2.0]], [2.0, 0.0])
    >>> flow.points.round(6)
    array([[2., 0.],
           [0., 1.]])
    """
    from scipy.linalg import null_space

    X = finite_array(WHO, "X", X, ndim=2)
    a = entries(WHO, "start", start, X.shape[1], "one entry per column of X").copy()
    kernel = null_space(X).T
    tiny = ZERO * float(np.abs(a).max())
    times, points = [0.0], [a.copy()]
    for _ in range(PIECES * len(a)):
        velocity = _velocity(kernel, a)
        falling = a * velocity < 0
        if not falling.any():
            return SlowFlow(np.array(times), np.array(points))
        waits = np.full(len(a), np.inf)
        waits[falling] = -a[falling] / velocity[falling]
        a = a + waits.min() * velocity
        a[(waits <= waits.min() * (1 + 1e-9)) | (np.abs(a) <= tiny)] = 0.0
        times.append(times[-1] + float(waits.min()))
        points.append(a.copy())
    what = f"no end after {len(times)} pieces at tau = {times[-1]:.4g}; perturb the start a little"
    raise NumericalError(WHO, Outcome(Kind.BUDGET_SPENT, what))


def _velocity(kernel: Array, a: Array) -> Array:
    """-P s for the subgradient s of |a|_1 that makes it shortest; exactly 0 where a rests."""
    from scipy.optimize import lsq_linear

    if not len(kernel):
        return np.zeros_like(a)
    signs, rests = np.sign(a), a == 0
    if rests.any():
        target = -kernel @ signs
        signs[rests] = lsq_linear(kernel[:, rests], target, (-1, 1), "bvls", tol=1e-14).x
    velocity = -(kernel @ signs) @ kernel
    velocity[(rests & (np.abs(signs) < 1 - STILL)) | (np.abs(velocity) < STILL)] = 0.0
    return np.asarray(velocity)


def _crossing(gap: Array, move: Array, error: float) -> float | None:
    """The first share in [0, 1] of `move` after which |gap| is `error`, from outside."""
    a, b, c = float(move @ move), float(gap @ move), float(gap @ gap) - error**2
    inside = b * b - a * c
    if a == 0 or inside < 0:
        return None
    share = (-b - inside**0.5) / a
    return share if 0 <= share <= 1 else None


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
        The size of a step. Singular values near zero oscillate by about `learning_rate`, so
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
    who = "nuclear_slow_flow"
    X, matrix = finite_array(who, "X", X, ndim=2), finite_array(who, "start", start, ndim=2)
    if matrix.size != X.shape[1]:
        rule = f"start must have one entry per column of X ({X.shape[1]})"
        raise ValueError(f"{who}: {rule}, got shape {matrix.shape}")
    goal = None if target is None else finite_array(who, "target", target, ndim=2)
    rate = positive(who, "learning_rate", learning_rate)
    rows = np.linalg.svd(X, full_matrices=False)[2]
    points, lowest, quiet = [matrix.ravel()], np.inf, 0
    while quiet < QUIET:
        if goal is not None and np.linalg.norm(matrix - goal) <= error:
            return _path(points, rate)
        u, s, v = np.linalg.svd(matrix, full_matrices=False)
        pull = ((u * (s > 1e-12 * s[0])) @ v).ravel()
        matrix = matrix - rate * (pull - rows.T @ (rows @ pull)).reshape(matrix.shape)
        points.append(matrix.ravel())
        lower = s.sum() < (1 - LEVEL) * lowest
        lowest, quiet = (float(s.sum()), 0) if lower else (lowest, quiet + 1)
    return _path(points[: len(points) - quiet], rate)


def _path(points: list[Array], rate: float) -> SlowFlow:
    return SlowFlow(np.arange(len(points)) * np.float64(rate), np.array(points))
