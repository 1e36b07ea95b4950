"""Factors from a vanishing start: the critical points that they visit, one rank after another.

How it works. Training of M = U V^T from U = V = 0 never starts. From a start of vanishing size it
leaves a critical point along the fastest growing direction of the stack W of the factors, an
eigenvector of -lift(grad), and follows the flow of one more column to the next (greedy low-rank
learning, Li, Luo and Lyu 2021; docs/theory section 30). Nothing depends on alpha but the unit of
time: a direction of size alpha^e has reached size one after e/rate, and the others, which grew
meanwhile, keep their exponents to the next point. `next_point` follows the flow between points.

Where all measurements leave some subspaces invariant, as those that commute do, what grew in one of
them is not forgotten, so each subspace has its own sequence of times (ours). Without this the list
takes the wrong direction from the second point on: on 24 of 60 problems with diagonal measurements
it led to another end. The subspaces are those of two random combinations of the measurements.

Pitfalls. Rates that tie make the path a matter of choice, and the outcome says so. The least loss
of a rank may lie at infinity; then the list ends there, with its reason. Units of the measurements
are divided out first, and a rate below the rounding of the residual counts as none.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import connected_components

from penchant.arguments import Array, finite_array, flag, with_parts
from penchant.door import Invalid, door, door_as
from penchant.limits import TimeLimit
from penchant.models.factorization import Factorization, SymmetricFactorization, TwoFactors
from penchant.problems.matrix_problem import MatrixProblem, Sensing
from penchant.records import Kind, NumericalError, Outcome, Record
from penchant.solvers.certificate import Certificate, judge
from penchant.solvers.limits.saddles import WHO
from penchant.threads import on_one_blas_thread
from penchant.training.exact.matrices.next_point import LOST, next_point, noise
from penchant.training.exact.solver import GaveUp

REST = 1e3  # times the rounding of a gradient: a growth that counts as none
POINTS = 50  # per row and column of M: far more than were ever visited
TIE = 1e-9  # relative difference of two rates that are one
FITTED = (1e-13, 1e-12, 1e-10, 1e-8)  # of the terms of its sum: residuals that may be none
COUPLED = 1e-9  # of the largest entry: what counts as a coupling of two directions


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class GreedyRank(Record):
    """The critical points that factors from a vanishing start visit, and when they leave them.

    Attributes
    ----------
    tau
        When each point is reached, in units of log(1/alpha); the first is 0, at the zero matrix.
    points
        The matrix at each point, one after another.
    loss
        The loss at each point.
    rates
        How fast the direction grows along which training leaves each point; next to 0 at the last.
    outcome
        How the computation ended, in a sentence.
    error
        An estimate of the relative error, from the points and the data: by how far the points miss
        being critical, and the growth at the last.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> problem = penchant.problems.Sensing(np.eye(4).reshape(4, 2, 2), [2.0, 0.0, 0.0, 1.0])
    >>> path = penchant.solvers.saddles(problem)
    >>> path.ranks, path.tau.round(6), path.loss.round(6)
    (array([0, 1, 2]), array([0.  , 0.25, 0.5 ]), array([5., 1., 0.]))
    """

    tau: Array
    points: Array
    loss: Array
    rates: Array
    outcome: Outcome
    error: float = math.nan

    @property
    def end(self) -> Array:
        """Where training ends."""
        return np.asarray(self.points[-1])

    @property
    def ranks(self) -> Array:
        """The rank of each point."""
        return np.asarray(np.linalg.matrix_rank(self.points, rtol=1e-8))


@on_one_blas_thread
@door_as(WHO)
def matrix_saddles(
    problem: MatrixProblem, *, symmetric: bool, throw: bool, max_seconds: float | None
) -> GreedyRank:
    """The points of two factors; symmetric ones are equal."""
    symmetric = flag("symmetric", symmetric)
    if symmetric and problem.shape[0] != problem.shape[1]:
        raise Invalid(f"a symmetric matrix must be square, got shape {problem.shape}")
    limit, scaled = TimeLimit(max_seconds), ScaledProblem(problem)
    model = empty_factors(problem, symmetric)
    spaces = invariant(scaled.problem, model)
    visits, outcome, certificate = judged_points(scaled.problem, model, spaces, limit)
    tau, points, loss, rates = (np.array(column) for column in zip(*visits, strict=True))
    tau, points, loss, rates = scaled.original(tau, points, loss, rates)
    if outcome.ok and not all(np.isfinite(part).all() for part in (tau, points, loss, rates)):
        what = "a time, a matrix or a loss is beyond float64 in the units of the data; rescale them"
        outcome = Outcome(Kind.OUT_OF_RANGE, what)
    if throw and not outcome.ok:
        raise NumericalError(WHO, outcome)
    return GreedyRank(tau, points, loss, rates, outcome, certificate.error)


class ScaledProblem:
    """The problem in units of powers of two, in which measurements and labels are near one.

    The sizes of the measurements relative to each other are weights of the loss, and stay.
    """

    def __init__(self, problem: MatrixProblem) -> None:
        self.labels = int(np.frexp(np.abs(problem.y).max())[1])
        self.inputs, y = 0, np.ldexp(problem.y, -self.labels)
        changed: dict[str, Any] = {"values": y, "truth": None}
        if isinstance(problem, Sensing):
            self.inputs = int(np.frexp(np.abs(problem.measurements).max())[1])
            changed["y"] = changed.pop("values")
            changed["measurements"] = np.ldexp(problem.measurements, -self.inputs)
        self.problem: Any = dataclasses.replace(problem, **changed)  # type: ignore[type-var]

    def original(self, tau: Array, points: Array, loss: Array, rates: Array) -> list[Array]:
        """The same numbers in the units of the data."""
        units = self.inputs + self.labels
        with np.errstate(over="ignore", under="ignore"):
            return [
                np.ldexp(tau, -units),
                np.ldexp(points, self.labels - self.inputs),
                np.ldexp(loss, 2 * self.labels),
                np.ldexp(rates, units),
            ]


def certify(problem: MatrixProblem, model: TwoFactors, points: Array) -> Certificate:
    """An estimate of the relative error of the points, from the points and the data alone.

    At a critical point lift(G) lift(M) = 0; at the last no direction grows, so that G vanishes
    unless M is symmetric; every point has one more rank than the last, at most. A measurement may
    be fitted, in its own units, or pull: which of them are fitted is a matter of a level, and a
    list that passes at one level passes.
    """
    if not np.isfinite(points).all():
        return Certificate(math.inf, "estimate")
    errors = [max(_missed(problem, model, points, level), level) for level in FITTED]
    sizes = np.linalg.svd(points, compute_uv=False)
    beyond = [row[k:].max(initial=0.0) / (row.max() or 1.0) for k, row in enumerate(sizes)]
    return Certificate(max(min(errors), float(max(beyond))), "estimate")


def _missed(problem: MatrixProblem, model: TwoFactors, points: Array, level: float) -> float:
    """How far the points miss their conditions if residuals below `level` are none."""
    errors, sizes, G = [0.0], np.zeros(0), np.zeros(0)
    lengths = np.linalg.norm(problem.design, axis=1)
    for M in points:
        left = problem.apply(M) - problem.y
        terms = np.abs(problem.y) + lengths * np.linalg.norm(M)
        left = np.where(np.abs(left) <= level * terms, 0.0, left)
        G, lifted = problem.adjoint(left), model.lift(M)
        sizes = (np.abs(left) @ np.abs(problem.design)).reshape(G.shape)
        size = float(np.linalg.norm(model.lift(sizes)) * np.linalg.norm(lifted))
        errors.append(float(np.linalg.norm(model.lift(G) @ lifted)) / (size or 1.0))
    if isinstance(model, SymmetricFactorization):
        top = float(np.linalg.eigvalsh(-model.lift(G))[-1])
        errors.append(max(top, 0.0) / (float(np.linalg.norm(sizes)) or 1.0))
    else:
        errors.append(float((np.abs(G) / np.where(sizes > 0, sizes, 1.0)).max()))
    return float(np.max(errors))


@door
def empty_factors(
    problem: MatrixProblem, symmetric: bool
) -> Factorization | SymmetricFactorization:
    """Factors of one column of zeros, the model that `greedy_points` follows.

    Parameters
    ----------
    problem
        A Completion or a Sensing.
    symmetric
        True for M = W W^T, False for M = U V^T.

    Returns
    -------
    Factorization or SymmetricFactorization
        The model.

    Examples
    --------
    >>> import penchant
    >>> problem = penchant.problems.Completion((2, 3), [[0, 0]], [1.0])
    >>> [part.shape for part in penchant.solvers.empty_factors(problem, symmetric=False).factors]
    [(2, 1), (3, 1)]
    """
    _require_matrices(problem)
    left, right = (np.zeros((side, 1)) for side in problem.shape)
    if flag("symmetric", symmetric):
        if len(left) != len(right):
            rule = "the matrix of symmetric factors must be square"
            raise Invalid(f"{rule}, got shape {problem.shape}")
        return SymmetricFactorization(factors=(left,))
    return Factorization(factors=(left, right))


def invariant(problem: MatrixProblem, model: TwoFactors) -> list[Array]:
    """Orthonormal bases of the subspaces that every lifted measurement leaves invariant.

    They are those of two random combinations of the measurements.
    """
    drawn = np.random.default_rng(0).standard_normal((2, problem.samples))
    first, second = (model.lift(problem.adjoint(weights)) for weights in drawn)
    basis = np.linalg.eigh(first)[1]
    coupled = np.abs(basis.T @ second @ basis)
    count, label = connected_components(coupled > COUPLED * coupled.max(initial=0.0))
    return [basis[:, label == k] for k in range(count)]


@door
def greedy_points(
    problem: MatrixProblem, model: TwoFactors, spaces: list[Array], limit: TimeLimit | None = None
) -> tuple[list[tuple[float, Array, float, float]], Outcome]:
    """The points of `saddles` of a matrix for subspaces of your choice, and how their list ended.

    `saddles` finds the subspaces that all measurements leave invariant; the points are certified
    here as there. It shows what a theory without these subspaces would predict.

    Parameters
    ----------
    problem
        A Completion or a Sensing, with measurements and labels near one.
    model
        The factors, from `empty_factors`.
    spaces
        Orthonormal bases, as columns, of subspaces whose directions grow apart from each other. The
        identity alone has one sequence of times for all directions.
    limit
        The time after which the list ends early; None sets none.

    Returns
    -------
    tuple of a list and an Outcome
        (tau, matrix, loss, rate) of every point as in GreedyRank, and the outcome.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> problem = penchant.problems.Sensing(np.eye(4).reshape(4, 2, 2), [2.0, 0.0, 0.0, 1.0])
    >>> model = penchant.solvers.empty_factors(problem, symmetric=False)
    >>> points, outcome = penchant.solvers.greedy_points(problem, model, [np.eye(4)])
    >>> [round(float(tau), 6) for tau, matrix, loss, rate in points], outcome.ok
    ([0.0, 0.25, 0.5], True)
    """
    _require_matrices(problem)
    with_parts("model", model, "the one of empty_factors()", "part", "lift")
    spaces = _bases(spaces, len(model.lift(np.zeros(problem.shape))))
    return judged_points(problem, model, spaces, limit or TimeLimit(None))[:2]


Visits = list[tuple[float, Array, float, float]]


def judged_points(
    problem: MatrixProblem, model: TwoFactors, spaces: list[Array], limit: TimeLimit
) -> tuple[Visits, Outcome, Certificate]:
    """The points, the outcome that their certificate allows, and the certificate."""
    visits, outcome = visited(problem, model, spaces, limit)
    certificate = certify(problem, model, np.array([matrix for _, matrix, *_ in visits]))
    return visits, judge(outcome, certificate), certificate


def visited(
    problem: MatrixProblem, model: TwoFactors, spaces: list[Array], limit: TimeLimit
) -> tuple[Visits, Outcome]:
    """The points and what the walk itself says about its end."""
    half = math.exp(problem.log_factor)
    W, tau = np.zeros((len(spaces[0]), 0)), 0.0
    exponents = [np.ones(space.shape[1]) for space in spaces]
    outcome = Outcome(Kind.SOLVED, "no direction grows at the last point")
    points: Visits = []
    for _ in range(POINTS * len(W)):
        matrix = model.part(W @ W.T)
        residual = problem.apply(matrix) - problem.y
        growth = -2 * half * model.lift(problem.adjoint(residual))
        modes = [np.linalg.eigh(space.T @ growth @ space) for space in spaces]
        tops = np.array([rates[-1] for rates, _ in modes])
        rest = 2 * half * REST * noise(problem, matrix)
        waits = [
            sizes[0] / top if len(sizes) and top > rest else math.inf
            for sizes, top in zip(exponents, tops, strict=True)
        ]
        first = int(np.argmin(waits))
        wait, (rates, directions) = waits[first], modes[first]
        rate = float(tops[first] if wait < math.inf else tops.max())
        points.append((tau, matrix, half * float(residual @ residual), rate))
        if wait == math.inf:
            return points, outcome
        ties = [*(rates[-2:-1] > (1 - TIE) * rate), sum(w < (1 + TIE) * wait for w in waits) > 1]
        if any(ties) and outcome.kind is Kind.SOLVED:
            what = f"two directions grow equally fast at the point of rank {W.shape[1]}"
            outcome = Outcome(Kind.NOT_UNIQUE, f"{what}; the path from one of them is given")
        tau += wait
        exponents = [
            np.sort(sizes - wait * rates[::-1][: len(sizes)])
            for sizes, (rates, _) in zip(exponents, modes, strict=True)
        ]
        try:
            W = next_point(problem, model, W, spaces[first] @ directions[:, -1], spaces, limit)
        except GaveUp as why:
            kind = Kind.BUDGET_SPENT if limit.spent else Kind.STALLED
            return points, Outcome(kind, f"after the point of rank {W.shape[1]} {why}")
        exponents = [_left(*pair, W) for pair in zip(exponents, spaces, strict=True)]
    return points, Outcome(
        Kind.BUDGET_SPENT, f"no end after {len(points)} points; perturb the data"
    )


def _require_matrices(problem: MatrixProblem) -> None:
    if not isinstance(problem, MatrixProblem):
        seen = type(problem).__name__
        raise Invalid(f"problem must be a Completion or a Sensing, got {seen}")


def _bases(spaces: Sequence[ArrayLike], side: int) -> list[Array]:
    """The bases as arrays of `side` rows."""
    if not isinstance(spaces, Sequence) or not len(spaces):
        raise Invalid(f"spaces must list one basis or more, got {spaces!r:.80}")
    bases = [finite_array("spaces", space, ndim=2) for space in spaces]
    for basis in bases:
        if len(basis) != side:
            rule = f"every basis in spaces must have {side} rows, those of both factors"
            raise Invalid(f"{rule}, got {len(basis)}")
    return [np.asarray(space, dtype=np.float64) for space in spaces]  # in the order of its memory


def _left(sizes: Array, space: Array, W: Array) -> Array:
    """The exponents of the directions that W lacks; of one that it has lost it is 0."""
    rank = int((np.linalg.svd(space.T @ W, compute_uv=False) > LOST * np.linalg.norm(W)).sum())
    spare = space.shape[1] - rank
    return np.concatenate(
        [np.zeros(max(spare - len(sizes), 0)), sizes[max(len(sizes) - spare, 0) :]]
    )
