"""Factors from a vanishing start: the critical points that they visit, one rank after another.

Training of M = U V^T from U = V = 0 never starts. From a start of vanishing size it leaves a
critical point along the fastest growing direction of the stack W of the factors, an eigenvector of
-lift(grad), and follows the flow of one more column to the next (greedy low-rank learning, Li, Luo
and Lyu 2021).
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from scipy.sparse.linalg import LinearOperator, minres

from tacit.arguments import Array, flag
from tacit.models.factorization import Factorization, SymmetricFactorization
from tacit.problems.matrix_problem import MatrixProblem
from tacit.records import Kind, NumericalError, Outcome, Record
from tacit.threads import on_one_blas_thread
from tacit.training.exact.matrices.flow import FactorSteps
from tacit.training.exact.matrices.system import FactorSystem
from tacit.training.exact.solver import GaveUp

WHO = "greedy_rank"
STEPS = 500  # of the flow between two points; a tenth is the rule
ACCURACY = 1e-6  # of a step of the flow; Newton's method sharpens where it ends
NUDGE = 1e-3  # of the size that a new direction comes to
REST = 1e-9  # of the fastest growth at zero: what counts as none
TIE = 1e-9  # relative difference of two rates that are one


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
        How fast the fastest direction of the factors grows at each point; next to 0 at the last.
    outcome
        How the computation ended, in a sentence.

    Examples
    --------
    >>> import numpy as np
    >>> import tacit
    >>> problem = tacit.Sensing(np.eye(4).reshape(4, 2, 2), [2.0, 0.0, 0.0, 1.0])
    >>> found = tacit.greedy_rank(problem)
    >>> found.ranks, found.tau.round(6), found.loss.round(6)
    (array([0, 1, 2]), array([0.  , 0.25, 0.5 ]), array([5., 1., 0.]))
    """

    tau: Array
    points: Array
    loss: Array
    rates: Array
    outcome: Outcome

    @property
    def end(self) -> Array:
        """Where training ends."""
        return np.asarray(self.points[-1])

    @property
    def ranks(self) -> Array:
        """The rank of each point."""
        return np.asarray(np.linalg.matrix_rank(self.points, rtol=1e-8))


@on_one_blas_thread
def greedy_rank(
    problem: MatrixProblem, *, symmetric: bool = False, throw: bool = True
) -> GreedyRank:
    """The matrices where training of two factors rests as its start vanishes, of rising rank.

    The factors start with i.i.d. entries of size alpha, with at least as many columns as M has
    rows and columns together (of either if symmetric). At small alpha the point of time tau is
    reached at about t = tau log(1/alpha). The times are ours: at a point with the rates
    r_1 > r_2 > ... the sizes alpha^e_1 > alpha^e_2 > ... of what has not grown yet become
    alpha^(e_i - r_i t), and what comes to size 1 is the next to grow. They suppose that no
    direction of one point is orthogonal to those of the next, as measurements that commute make
    them; for these see `saddles`.

    Parameters
    ----------
    problem
        A Completion or a Sensing.
    symmetric
        True trains M = W W^T, which has no negative eigenvalues; False trains M = U V^T.
    throw
        False returns a numerical failure as the outcome instead of raising it.

    Returns
    -------
    GreedyRank
        Points, times, losses and rates, from the zero matrix to the end of training. Where two
        directions grow equally fast the outcome says so.

    Raises
    ------
    ValueError
        An argument is wrong.
    NumericalError
        The flow of some rank comes to no rest, as its least loss may lie at infinity; see `throw`.

    Examples
    --------
    >>> import tacit
    >>> problem = tacit.low_rank_completion(samples=60, dimension=10, rank=1, seed=9)
    >>> found = tacit.greedy_rank(problem)
    >>> bool(abs(found.end - problem.truth).max() < 1e-9)
    True
    >>> least = tacit.interpolate(problem, tacit.Nuclear()).matrix
    >>> round(float(abs(found.end - least).max()), 1)
    1.8
    """
    if not isinstance(problem, MatrixProblem):
        raise ValueError(
            f"{WHO}: the problem must be a Completion or a Sensing, got {type(problem).__name__}"
        )
    symmetric = flag(WHO, "symmetric", symmetric)
    if symmetric and problem.shape[0] != problem.shape[1]:
        raise ValueError(f"{WHO}: a symmetric matrix must be square, got shape {problem.shape}")
    found, outcome = _visited(problem, symmetric)
    if throw and not outcome.ok:
        raise NumericalError(WHO, outcome)
    tau, points, loss, rates = (np.array(column) for column in zip(*found, strict=True))
    return GreedyRank(tau, points, loss, rates, outcome)


def _model(W: Array, rows: int | None) -> Factorization | SymmetricFactorization:
    if rows is None:
        return SymmetricFactorization(factors=(W,))
    return Factorization(factors=(W[:rows], W[rows:]))


def _visited(
    problem: MatrixProblem, symmetric: bool
) -> tuple[list[tuple[float, Array, float, float]], Outcome]:
    """(tau, matrix, loss, rate) of every point, and how it ended."""
    rows = None if symmetric else problem.shape[0]
    side = problem.shape[0] + (0 if symmetric else problem.shape[1])
    half = math.exp(problem.log_factor)
    W, tau, exponents = np.zeros((side, 1)), 0.0, np.ones(side)
    outcome = Outcome(Kind.SOLVED, "no direction grows at the last point")
    found: list[tuple[float, Array, float, float]] = []
    while True:
        model = _model(W, rows)
        matrix = model.part(W @ W.T)
        residual = problem.apply(matrix) - problem.y
        rates, directions = np.linalg.eigh(-2 * half * model.lift(problem.adjoint(residual)))
        rates, directions = rates[::-1], directions[:, ::-1]
        found.append((tau, matrix, half * float(residual @ residual), float(rates[0])))
        if rates[0] <= REST * max(found[0][3], 0.0):
            return found, outcome
        if len(rates) > 1 and rates[1] > (1 - TIE) * rates[0] and outcome.kind is Kind.SOLVED:
            what = f"two directions grow equally fast at the point of rank {len(found) - 1}"
            outcome = Outcome(Kind.NOT_UNIQUE, f"{what}; the path from one of them is given")
        wait = float(exponents[0] / rates[0])
        tau, exponents = tau + wait, np.sort((exponents - wait * rates[: len(exponents)])[1:])
        try:
            W = _next(problem, W if len(found) > 1 else W[:, :0], directions[:, 0], rows)
        except GaveUp as why:
            return found, Outcome(Kind.STALLED, f"after the point of rank {len(found) - 1} {why}")


def _next(problem: MatrixProblem, W: Array, direction: Array, rows: int | None) -> Array:
    """The factors at the end of the flow that leaves W along `direction`."""
    model = _model(np.hstack([W, direction[:, None]]), rows)
    seen = problem.apply(model.part(np.outer(direction, direction)))
    residual = problem.apply(model.part(W @ W.T)) - problem.y
    size = NUDGE * math.sqrt(-float(seen @ residual) / float(seen @ seen))
    system = FactorSystem(_model(np.hstack([W, size * direction[:, None]]), rows), problem)
    steps = FactorSteps(system, ACCURACY, -math.inf)
    speed = 0.01 * float(np.linalg.norm(system.velocity(steps.W)))
    while steps.steps < STEPS:
        steps.advance(math.inf)
        if np.linalg.norm(system.velocity(steps.W)) > speed:
            continue
        end = _sharpened(system, steps.W)
        if np.linalg.norm(end - steps.W) <= 0.01 * np.linalg.norm(end):
            left, sizes, _ = np.linalg.svd(end, full_matrices=False)
            return np.asarray((left * sizes)[:, sizes > 1e-8 * sizes[0]])
        speed /= 10
    raise GaveUp(
        f"the flow of rank {W.shape[1] + 1} comes to no rest in {STEPS} steps; its least loss"
        " may lie at infinity"
    )


def _sharpened(system: FactorSystem, W: Array) -> Array:
    """The critical point next to W, by Newton's method; rotations of the columns stay free."""
    shape = W.shape
    for _ in range(20):
        weights = system.residual(W)
        lifted = system.model.lift(system.problem.adjoint(weights))
        slope = lifted @ W
        if np.linalg.norm(slope) <= 1e-14 * np.linalg.norm(W) * np.linalg.norm(system.problem.y):
            break

        def bend(flat: Array, W: Array = W, lifted: Array = lifted) -> Array:
            move = flat.reshape(shape)
            return (system.pull(system.push(move, W), W) + lifted @ move).ravel()

        hessian = LinearOperator((W.size, W.size), matvec=bend, dtype=float)
        W = W + minres(hessian, -slope.ravel(), rtol=1e-8, maxiter=1000)[0].reshape(shape)
    return W
