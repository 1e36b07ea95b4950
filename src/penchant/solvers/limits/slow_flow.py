"""The slow phase after memorization: steepest descent of a norm among interpolators.

How it works. Once X a = y, descent on (1/2)|X a - y|^2 + beta |a|_1 with a small learning_rate *
beta follows da/dtau = -P s in tau = learning_rate * beta * steps (docs/theory section 22), P the
projection on the kernel of X and s the subgradient of |a|_1 that makes P s shortest. The path is a
chain of straight pieces, which `pieces` follows from corner to corner, so nothing is integrated. It
gives the delay of grokking exactly, constant included, where Notsawo et al. 2025 give its order
|a_hat - a*|_inf.

The walk is in float64 first, with a certificate computed afterwards from its corners: how far they
are from X a = X start, signs that contradict the points, and the part of the subgradients that
neither the rows of X nor the moves explain. Where it is too large, or the end may not be at rest
(rows that nearly depend on each other, signs that nearly are a combination of rows), the walk is
repeated in rational numbers, if they are affordable.

A matrix descends the nuclear norm in Euler steps dA = -learning_rate P(U V^T), U V^T the
subgradient of |A|_* that its singular vectors give.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg.lapack import dgesdd, dtrtrs

from penchant.arguments import Array, entries, finite_array, integer, positive
from penchant.columns import named_as_given
from penchant.door import Invalid, door, door_as
from penchant.limits import TimeLimit
from penchant.problems.matrix_problem import MatrixProblem
from penchant.problems.regression import Regression
from penchant.records import Kind, NumericalError, Outcome
from penchant.regularizers.spectral import shape_of
from penchant.results import LabelledResult, dataset_of
from penchant.solvers.certificate import Certificate, judge
from penchant.solvers.data import rows_of_order_one
from penchant.solvers.limits.jumps import EPS
from penchant.solvers.limits.pieces import (
    FloatKernel,
    Pieces,
    WholeKernel,
    exact_basis,
    factored,
    walk,
)
from penchant.solvers.limits.rational import affordable
from penchant.threads import one_blas_thread

WHO = "slow_flow"
CLEAR = 1e-6  # of 1: slack of a subgradient, or independence of columns, that rounding leaves alone
TURNED = 1e-12  # a basis of the rows that rounding turns by more is computed in integers
STEP = 1e-3  # of the largest singular value: the step of a matrix
MAX_STEPS = 1_000_000
QUIET, LEVEL = 1000, 1e-7  # it is over when so many steps lower the norm by no more than this part


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class SlowFlow(LabelledResult):
    """The corners of the path; the last one has least l1 norm.

    Attributes
    ----------
    tau
        The times of the corners.
    points
        The point at each time, one row each.
    outcome
        How the computation ended, in a sentence; None for a path that somebody wrote down.
    error
        The relative error of times and points: an estimate in float64 arithmetic, and a bound, that
        of rounding once, where the path was computed in rational numbers.
    features
        The names of the columns, if X had them.

    Examples
    --------
    >>> import penchant
    >>> flow = penchant.solvers.slow_flow([[1.0, 2.0]], [2.0, 0.0])
    >>> flow.tau.round(6)
    array([0., 5.])
    """

    tau: Array
    points: Array
    outcome: Outcome | None = None
    error: float = math.nan
    features: tuple[str, ...] = ()

    @property
    def dataset(self) -> Any:
        """The numbers along `corner`, an xarray.Dataset; `dataset.to_dataframe()` is a table."""
        rows = {
            "points": (("corner", "feature"), self.points, "coefficients at the corner"),
            "norm_l1": ("corner", np.abs(self.points).sum(axis=1), r"$\ell_1$ norm at the corner"),
        }
        return dataset_of(self, rows, {"tau": ("corner", self.tau, r"slow time $\tau$")})

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

    @door_as(WHO)
    def reaches(self, target: ArrayLike, error: float) -> float:
        """The first tau with |a - target|_2 <= error; inf if the path never comes so near."""
        target = finite_array("target", target, ndim=1)
        error = positive("error", error)
        gaps = self.points - target
        if np.linalg.norm(gaps[0]) <= error:
            return 0.0
        for k in range(len(gaps) - 1):
            share = _crossing(gaps[k], gaps[k + 1] - gaps[k], error)
            if share is not None:
                return float(self.tau[k] + share * (self.tau[k + 1] - self.tau[k]))
        return np.inf


@door
@named_as_given
def slow_flow(
    X: ArrayLike | Regression | MatrixProblem,
    start: ArrayLike,
    *,
    learning_rate: float | None = None,
    target: ArrayLike | None = None,
    error: float = 0.0,
    max_steps: int | None = None,
    throw: bool = True,
    max_seconds: float | None = None,
) -> SlowFlow:
    """Steepest descent of a norm among the points that fit like `start`, to its end.

    The norm is |a|_1 for a vector, whose path is exact, and |A|_* for a matrix, whose path
    consists of steps. The arguments `learning_rate`, `target`, `error` and `max_steps` are those
    of a matrix.

    Parameters
    ----------
    X
        The samples, one row each, or a problem that has them. Their units do not matter. For a
        matrix: its measurements, as matrices (samples, d1, d2) or as flat rows.
    start
        The vector or the matrix that the flow starts from.
    learning_rate
        The size of a step; None takes a thousandth of the largest singular value of the start.
        Singular values near zero oscillate by about `learning_rate`, so errors of that size are
        not resolved.
    target
        A matrix at which the path may end.
    error
        The path ends early within this distance of the target.
    max_steps
        The most steps; None stands for 1,000,000.
    throw
        False returns a numerical failure as the outcome instead of raising it.
    max_seconds
        The path ends early after this time, as a failure; None sets no limit.

    Returns
    -------
    SlowFlow
        The corners of the path of a vector. If float64 cannot certify them, they are computed
        again in rational numbers; of data too large for that the outcome says how far they are
        known. Or all steps of a matrix, as flat points; their outcome is *approximate* at a
        relative error above 1e-7, which is the rule: it is about learning_rate.

    Raises
    ------
    ValueError
        An argument is wrong.
    NumericalError
        No end was found, or the path of a vector cannot be certified; see `throw`.

    References
    ----------
    .. [1] Notsawo et al. (2025), Grokking Beyond the Euclidean Norm of Model Parameters.

    Examples
    --------
    >>> import penchant
    >>> flow = penchant.solvers.slow_flow([[1.0, 2.0]], [2.0, 0.0])
    >>> flow.points.round(6)
    array([[2., 0.],
           [0., 1.]])
    >>> corner = [[[1.0, 0.0], [0.0, 0.0]]]  # one measurement: the first entry
    >>> flow = penchant.solvers.slow_flow(corner, [[1.0, 0.0], [0.0, 1.0]], learning_rate=0.01)
    >>> flow.end.round(1) + 0.0
    array([1., 0., 0., 0.])
    """
    rows = X.design if isinstance(X, MatrixProblem) else X.X if isinstance(X, Regression) else X
    limit = TimeLimit(max_seconds)
    if len(shape_of(start)) == 2:
        flow = _matrix_flow(rows, start, learning_rate, target, error, max_steps, limit)
        tolerated: tuple[Kind, ...] = (Kind.APPROXIMATE,)  # the rule for steps
    else:
        options = {"learning_rate": learning_rate, "target": target, "max_steps": max_steps}
        _exact_alone({**options, "error": error or None})
        flow, tolerated = _vector_flow(rows, start, limit), ()
    outcome = flow.outcome
    if throw and outcome is not None and not outcome.ok and outcome.kind not in tolerated:
        raise NumericalError(WHO, outcome)
    return flow


def _exact_alone(options: dict[str, Any]) -> None:
    """Refuse what only the steps of a matrix need."""
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise ValueError(
            f"{WHO}: {given[0]} is for a matrix as the start; the path of a vector is exact and has"
            f" no steps; leave out {given[0]}"
        )


def _vector_flow(X: ArrayLike, start: ArrayLike, limit: TimeLimit) -> SlowFlow:
    X = finite_array("X", X, ndim=2)
    a = entries("start", start, X.shape[1], "one entry per column of X")
    with one_blas_thread():
        path, certificate, alone = _certified(X, a, limit)
    outcome = judge(_ended(path, limit, alone), certificate)
    return SlowFlow(path.tau, path.points, outcome, certificate.error)


def _certified(X: Array, a: Array, limit: TimeLimit) -> tuple[Pieces, Certificate, bool]:
    """The walk in float64, or in rational numbers where these are needed and affordable.

    The last value says whether the end is known to be at rest.
    """
    path = walk(FloatKernel(X, a), limit)
    certificate, rests = certify(X, path), isolated(X, path)
    if limit.spent or (certificate.ok and rests) or not affordable(X):
        return path, certificate, rests
    path = walk(WholeKernel(X, a), limit)
    return path, Certificate(EPS if path.ended else math.inf), True


def _ended(path: Pieces, limit: TimeLimit, rests: bool) -> Outcome:
    """What the walk itself says about its end."""
    if not path.ended:
        where = f"no end after {len(path.tau)} pieces at tau = {path.tau[-1]:.4g}"
        way = str(limit) if limit.spent else "perturb the start a little"
        return Outcome(Kind.BUDGET_SPENT, f"{where}; {way}")
    if not (np.isfinite(path.tau).all() and np.isfinite(path.points).all()):
        return Outcome(Kind.OUT_OF_RANGE, "a time or a point is beyond float64; rescale the start")
    if not rests:
        what = "the last point has the least l1 norm to rounding, as other points have;"
        return Outcome(Kind.NOT_UNIQUE, f"{what} the flow rests there or creeps on")
    return Outcome(Kind.SOLVED, "the last point has the least l1 norm")


def certify(X: Array, path: Pieces) -> Certificate:
    """An estimate of the relative error of a path, from the data and the path alone.

    It is the worst of: what rounding did on the way, the distance of every corner from the points
    with X a = X start, signs that contradict the points, and the part of the subgradients that
    neither the rows of X nor the moves explain.
    """
    return Certificate(max(path.doubt, violation(X, path)), "estimate")


def violation(X: Array, path: Pieces) -> float:
    """By how much the corners miss the equations of the flow; infinite if that is not a number.

    A piece counts by how far it leads astray, and by the time that the flow takes for this way. The
    flow of a convex function never moves two points apart, so the error of the points is at most
    the sum. Differences of velocities would not do: where many entries vanish at nearly one time,
    pieces are as short as rounding.
    """
    rows = rows_of_order_one(X)
    power = int(np.frexp(np.abs(path.points[0]).max())[1])
    with np.errstate(all="ignore"):
        points, stays = np.ldexp(path.points, -power), np.ldexp(np.diff(path.tau), -power)
        moves, weights = np.zeros_like(points), np.ones((len(points), 1))
        moves[:-1], weights[:-1, 0] = points[1:] - points[:-1], stays
        signs = np.where(points != 0, np.sign(points), np.sign(moves))
        wrong = np.where(signs != 0, signs - path.dual, np.maximum(np.abs(path.dual) - 1, 0))
        missed = rows @ (points - points[0]).T
        pulls = weights * path.dual + moves
    numbers = (missed, pulls, path.dual)
    if not all(np.isfinite(part).all() for part in numbers) or (stays < 0).any():
        return math.inf
    basis, triangle, places = factored(rows, EPS)
    away = 0.0  # the shortest vectors that the rows map to what is missed
    if len(places):
        away = np.abs(basis @ dtrtrs(triangle, missed[places], trans=1)[0]).max()
    off, speeds = (_beyond(basis, part) for part in (pulls, path.dual))
    size = float(np.abs(points).max()) or 1.0
    astray = off[:-1].sum() / size
    with np.errstate(all="ignore"):
        late = (off[:-1] / speeds[:-1]).sum() / stays.sum() if len(stays) else 0.0
    errors = (away / size, np.abs(wrong).max(), off[-1], astray, late)
    return float(np.max(errors))


def _beyond(basis: Array, vectors: Array) -> Array:
    """The length of the part of each vector that is orthogonal to the basis."""
    part = vectors.T - basis @ (basis.T @ vectors.T)
    return np.asarray(np.linalg.norm(part, axis=0))


def isolated(X: Array, path: Pieces) -> bool:
    """Whether the end is the only point of its l1 norm, far beyond rounding.

    Otherwise a flow that creeps looks like one that rests.
    """
    used = path.points[-1] != 0
    if not used.any() or (np.abs(path.dual[-1][~used]) > 1 - CLEAR).any():
        return not used.any()
    if used.sum() > len(X):
        return False
    rows = rows_of_order_one(X)[:, used]
    _, sizes, _, failed = dgesdd(rows, compute_uv=False)
    return not failed and bool(sizes[-1] > CLEAR * sizes[0])


def _crossing(gap: Array, move: Array, error: float) -> float | None:
    """The first share in [0, 1] of `move` after which |gap| is `error`, from outside."""
    a, b, c = float(move @ move), float(gap @ move), float(gap @ gap) - error**2
    inside = b * b - a * c
    if a == 0 or inside < 0:
        return None
    share = (-b - inside**0.5) / a
    return share if 0 <= share <= 1 else None


def _matrix_flow(
    X: ArrayLike,
    start: ArrayLike,
    learning_rate: float | None,
    target: ArrayLike | None,
    error: float,
    max_steps: int | None,
    limit: TimeLimit,
) -> SlowFlow:
    matrix = finite_array("start", start, ndim=2)
    X = _flat_rows(X, matrix)
    goal = None if target is None else finite_array("target", target, ndim=2)
    if goal is not None and goal.shape != matrix.shape:
        raise Invalid(f"target must have the shape of start, {matrix.shape}, got {goal.shape}")
    rate = _step(matrix) if learning_rate is None else learning_rate
    rate = positive("learning_rate", rate)
    most = MAX_STEPS if max_steps is None else integer("max_steps", max_steps, least=1)
    basis, doubt = _row_basis(X, matrix)
    with np.errstate(over="ignore", invalid="ignore"):
        points, outcome = _euler(basis, matrix, rate, goal, error, most, limit)
        tau = np.arange(len(points)) * np.float64(rate)
    size = float(np.linalg.svd(points[-1].reshape(matrix.shape), compute_uv=False).sum()) or 1.0
    moved = np.array(points) - points[0]  # along no row
    away = float(np.abs(basis.T @ moved.T).max(initial=0.0)) / float(np.abs(points).max() or 1.0)
    certificate = Certificate(max(rate / size, doubt, away), "estimate")
    return SlowFlow(tau, np.array(points), judge(outcome, certificate), certificate.error)


def _row_basis(X: Array, matrix: Array) -> tuple[Array, float]:
    """An orthonormal basis of the rows, in integers where float64 turns it; how far it may be."""
    kernel = FloatKernel(X, matrix.ravel())
    doubt = max(kernel.doubt, kernel.unit)
    if doubt > TURNED and affordable(X):
        return exact_basis(X), EPS
    return kernel.Q, doubt


def _flat_rows(X: ArrayLike, matrix: Array) -> Array:
    """The measurements of a matrix as rows, one entry for each of its entries."""
    rows = finite_array("X", X, ndim=3 if len(shape_of(X)) == 3 else 2)
    fits = rows.shape[1:] == matrix.shape if rows.ndim == 3 else rows.shape[1] == matrix.size
    if not fits:
        rule = f"start must have one entry per column of X {rows.shape[1:]}"
        raise Invalid(f"{rule}, got shape {matrix.shape}")
    return rows.reshape(len(rows), -1)


def _step(matrix: Array) -> float:
    largest = float(np.linalg.svd(matrix, compute_uv=False).max(initial=0.0))
    return STEP * (largest or 1.0)


def _euler(
    basis: Array,
    matrix: Array,
    rate: float,
    goal: Array | None,
    error: float,
    max_steps: int,
    limit: TimeLimit,
) -> tuple[list[Array], Outcome]:
    """The points of all steps, and how they ended."""
    points, lowest, quiet = [matrix.ravel()], np.inf, 0
    for _ in range(max_steps):
        if goal is not None and np.linalg.norm(matrix - goal) <= error:
            return points, Outcome(Kind.SOLVED, f"within {error:g} of the target")
        u, s, v, failed = dgesdd(matrix, full_matrices=False)
        if failed:
            return points, Outcome(Kind.STALLED, f"no singular values after {len(points)} steps")
        pull = ((u * (s > 1e-12 * s[0])) @ v).ravel()
        matrix = matrix - rate * (pull - basis @ (basis.T @ pull)).reshape(matrix.shape)
        if not np.isfinite(matrix).all():
            return points, Outcome(Kind.DIVERGED, f"beyond float64 after {len(points)} steps")
        points.append(matrix.ravel())
        lower = s.sum() < (1 - LEVEL) * lowest
        lowest, quiet = (float(s.sum()), 0) if lower else (lowest, quiet + 1)
        if quiet >= QUIET:
            sentence = f"{QUIET} steps lower the norm by no more than {LEVEL:g} of it"
            return points[: len(points) - quiet], Outcome(Kind.SOLVED, sentence)
        if limit.spent:
            return points, Outcome(Kind.BUDGET_SPENT, str(limit))
    sentence = f"the norm still falls after {max_steps} steps; raise max_steps or learning_rate"
    return points, Outcome(Kind.BUDGET_SPENT, sentence)
