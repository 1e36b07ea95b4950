"""Factors from a vanishing start: the critical points that they visit, one rank after another.

Training of M = U V^T from U = V = 0 never starts. From a start of vanishing size it leaves a
critical point along the fastest growing direction of the stack W of the factors, an eigenvector of
-lift(grad), and follows the flow of one more column to the next (greedy low-rank learning, Li, Luo
and Lyu 2021). Where all measurements leave some subspaces invariant, as those that commute do,
what grew in one of them is not forgotten, so each subspace has its own sequence of times (ours).
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator, minres

from tacit.arguments import Array, flag
from tacit.models.factorization import Factorization, SymmetricFactorization, TwoFactors
from tacit.problems.matrix_problem import MatrixProblem
from tacit.records import Kind, NumericalError, Outcome, Record
from tacit.threads import on_one_blas_thread
from tacit.training.exact.matrices.flow import FactorSteps
from tacit.training.exact.matrices.system import FactorSystem
from tacit.training.exact.solver import GaveUp

WHO = "greedy_rank"
STEPS = 500  # of the flow between two points; a tenth is the rule
ACCURACY = 1e-6  # of a step of the flow; Newton's method sharpens where it ends
NUDGE = 1e-3  # of the size that a new direction reaches
REST = 1e-9  # of the fastest growth at zero: what counts as none
TIE = 1e-9  # relative difference of two rates that are one
LOST = 1e-8  # of the largest singular value of the factors: what counts as none
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
    alpha^(e_i - r_i t), and the first to reach size 1 grows next; this holds separately in every
    subspace that all measurements leave invariant. The times assume that within such a subspace no
    direction of one point is orthogonal to those of the next.

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
        The flow of some rank does not converge, since its least loss may lie at infinity; see
        `throw`.

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
    model = empty(problem, symmetric)
    found, outcome = visited(problem, model, invariant(problem, model))
    if throw and not outcome.ok:
        raise NumericalError(WHO, outcome)
    tau, points, loss, rates = (np.array(column) for column in zip(*found, strict=True))
    return GreedyRank(tau, points, loss, rates, outcome)


def empty(problem: MatrixProblem, symmetric: bool) -> Factorization | SymmetricFactorization:
    """Factors of one column of zeros."""
    left, right = (np.zeros((side, 1)) for side in problem.shape)
    if symmetric:
        return SymmetricFactorization(factors=(left,))
    return Factorization(factors=(left, right))


def _starting(model: TwoFactors, W: Array) -> Factorization | SymmetricFactorization:
    """The same model from the stack W of its factors."""
    if isinstance(model, SymmetricFactorization):
        return SymmetricFactorization(factors=(W,))
    assert model.shape is not None
    return Factorization(factors=(W[: model.shape[0]], W[model.shape[0] :]))


def invariant(problem: MatrixProblem, model: TwoFactors) -> list[Array]:
    """Orthonormal bases of the subspaces that every lifted measurement leaves invariant.

    They are those of two random combinations of the measurements.
    """
    drawn = np.random.default_rng(0).standard_normal((2, problem.samples))
    one, other = (model.lift(problem.adjoint(weights)) for weights in drawn)
    basis = np.linalg.eigh(one)[1]
    coupled = np.abs(basis.T @ other @ basis)
    count, label = connected_components(coupled > COUPLED * coupled.max(initial=0.0))
    return [basis[:, label == k] for k in range(count)]


def visited(
    problem: MatrixProblem, model: TwoFactors, spaces: list[Array]
) -> tuple[list[tuple[float, Array, float, float]], Outcome]:
    """(tau, matrix, loss, rate) of every point, and the outcome; each space has its own sizes."""
    half = math.exp(problem.log_factor)
    W, tau = np.zeros((len(spaces[0]), 0)), 0.0
    exponents = [np.ones(space.shape[1]) for space in spaces]
    outcome = Outcome(Kind.SOLVED, "no direction grows at the last point")
    found: list[tuple[float, Array, float, float]] = []
    while True:
        matrix = model.part(W @ W.T)
        residual = problem.apply(matrix) - problem.y
        growth = -2 * half * model.lift(problem.adjoint(residual))
        modes = [np.linalg.eigh(space.T @ growth @ space) for space in spaces]
        tops = np.array([rates[-1] for rates, _ in modes])
        rest = REST * max(found[0][3] if found else tops.max(), 0.0)
        waits = [
            sizes[0] / top if len(sizes) and top > rest else math.inf
            for sizes, top in zip(exponents, tops, strict=True)
        ]
        first = int(np.argmin(waits))
        wait, (rates, directions) = waits[first], modes[first]
        rate = float(tops[first] if wait < math.inf else tops.max())
        found.append((tau, matrix, half * float(residual @ residual), rate))
        if wait == math.inf:
            return found, outcome
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
            W = _next(problem, model, W, spaces[first] @ directions[:, -1], spaces)
        except GaveUp as why:
            return found, Outcome(Kind.STALLED, f"after the point of rank {W.shape[1]} {why}")
        exponents = [_left(*pair, W) for pair in zip(exponents, spaces, strict=True)]


def _left(sizes: Array, space: Array, W: Array) -> Array:
    """The exponents of the directions that W lacks; of one that it has lost it is 0."""
    rank = int((np.linalg.svd(space.T @ W, compute_uv=False) > LOST * np.linalg.norm(W)).sum())
    spare = space.shape[1] - rank
    return np.concatenate(
        [np.zeros(max(spare - len(sizes), 0)), sizes[max(len(sizes) - spare, 0) :]]
    )


def _next(
    problem: MatrixProblem, model: TwoFactors, W: Array, direction: Array, spaces: list[Array]
) -> Array:
    """The factors at the end of the flow that leaves W along `direction`."""
    seen = problem.apply(model.part(np.outer(direction, direction)))
    residual = problem.apply(model.part(W @ W.T)) - problem.y
    size = NUDGE * math.sqrt(-float(seen @ residual) / float(seen @ seen))
    wider = np.hstack([W, size * direction[:, None]])
    system = FactorSystem(_starting(model, wider), problem)
    steps = FactorSteps(system, ACCURACY, -math.inf)
    steps.W = wider  # its columns unchanged: each lies in one of the spaces
    speed = 0.01 * float(np.linalg.norm(system.velocity(steps.W)))
    while steps.steps < STEPS:
        steps.advance(math.inf)
        steps.W = _confined(steps.W, spaces)
        if np.linalg.norm(system.velocity(steps.W)) > speed:
            continue
        end = _sharpened(system, steps.W, spaces)
        if np.linalg.norm(end - steps.W) <= 0.01 * np.linalg.norm(end):
            return _shortened(end, spaces)
        speed /= 10
    raise GaveUp(
        f"the flow of rank {wider.shape[1]} does not converge in {STEPS} steps; its least loss"
        " may lie at infinity"
    )


def _confined(W: Array, spaces: list[Array]) -> Array:
    """Every column in the space where most of it is; what rounding adds would grow elsewhere."""
    if len(spaces) == 1:
        return W
    parts = np.array([space @ (space.T @ W) for space in spaces])
    owner = np.linalg.norm(parts, axis=1).argmax(axis=0)
    return np.asarray(parts[owner, :, np.arange(len(owner))].T)


def _shortened(W: Array, spaces: list[Array]) -> Array:
    """As few columns as there are directions in each space."""
    least, columns = LOST * np.linalg.norm(W, 2), []
    for space in spaces:
        left, sizes, _ = np.linalg.svd(space.T @ W, full_matrices=False)
        columns.append(space @ (left * sizes)[:, sizes > least])
    return np.hstack(columns)


def _sharpened(system: FactorSystem, W: Array, spaces: list[Array]) -> Array:
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
        move = minres(hessian, -slope.ravel(), rtol=1e-8, maxiter=1000)[0].reshape(shape)
        W = _confined(W + move, spaces)
    return W
