"""From one critical point of the factors to the next: the flow, its end, and what prevents it.

The flow leaves a point along one new direction. `FactorSteps` follow it; where they turn with every
bend of a narrow valley, implicit steps in all variables do. Newton's method sharpens the end. The
least loss of a rank may lie at infinity: then the factors grow like a power of time for ever, which
is seen after three decades of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.linalg import lstsq
from scipy.sparse.linalg import LinearOperator, minres

from penchant.arguments import Array
from penchant.limits import TimeLimit
from penchant.models.factorization import Factorization, SymmetricFactorization, TwoFactors
from penchant.problems.matrix_problem import MatrixProblem
from penchant.solvers.limits.jumps import UNIT
from penchant.training.exact.matrices.flow import FactorSteps
from penchant.training.exact.matrices.implicit import MOST, ImplicitSteps
from penchant.training.exact.matrices.system import FactorSystem
from penchant.training.exact.solver import GaveUp

STEPS = 300  # of the flow between two points; a tenth is the rule
STIFF = 3000  # implicit steps where these do not suffice; some hundred are the rule
ACCURACY = 1e-6  # of a step of the flow; Newton's method sharpens where it ends
NUDGE = 1e-3  # of the size that a new direction reaches
LOST = 1e-8  # of the largest singular value of the factors: what counts as none


def noise(problem: MatrixProblem, matrix: Array) -> float:
    """How far rounding may move the gradient sum_n r_n X_n at a matrix."""
    lengths = np.linalg.norm(problem.design, axis=1)
    terms = np.abs(problem.y) + lengths * float(np.linalg.norm(matrix))
    return UNIT * float(np.linalg.norm(lengths * terms))


def starting(model: TwoFactors, W: Array) -> Factorization | SymmetricFactorization:
    """The same model from the stack W of its factors."""
    if isinstance(model, SymmetricFactorization):
        return SymmetricFactorization(factors=(W,))
    assert model.shape is not None
    return Factorization(factors=(W[: model.shape[0]], W[model.shape[0] :]))


def next_point(
    problem: MatrixProblem,
    model: TwoFactors,
    W: Array,
    direction: Array,
    spaces: list[Array],
    limit: TimeLimit,
) -> Array:
    """The factors at the end of the flow that leaves W along `direction`."""
    seen = problem.apply(model.part(np.outer(direction, direction)))
    residual = problem.apply(model.part(W @ W.T)) - problem.y
    size = NUDGE * math.sqrt(-float(seen @ residual) / float(seen @ seen))
    wider = np.hstack([W, size * direction[:, None]])
    system = FactorSystem(starting(model, wider), problem)
    speed = 0.01 * float(np.linalg.norm(system.velocity(wider)))
    growth = FactorGrowth(wider.shape[1])
    for t, W in _flow(system, wider, spaces):
        growth.look(system, t, W)
        if limit.spent:
            raise GaveUp(str(limit))
        if np.linalg.norm(system.velocity(W)) > speed:
            continue
        end = _sharpened(system, W, spaces)
        if np.linalg.norm(end - W) <= 0.01 * np.linalg.norm(end):
            return _shortened(end, spaces)
        speed /= 10
    raise GaveUp(
        f"the flow of rank {wider.shape[1]} does not converge in {STEPS} steps and {STIFF} implicit"
        f" ones; its least loss may lie at infinity{_spread(problem)}"
    )


def _spread(problem: MatrixProblem) -> str:
    """What to say of measurements of very different sizes, whose squares are their weights."""
    lengths = np.linalg.norm(problem.design, axis=1)
    most, least = float(lengths.max()), float(lengths[lengths > 0].min(initial=np.inf))
    if not most > 100 * least:
        return ""
    return (
        f", or the sizes of the measurements lie too far apart (by a factor of {most / least:.1g})"
    )


def _flow(system: FactorSystem, W: Array, spaces: list[Array]) -> Iterator[tuple[float, Array]]:
    """(t, W) after every step; after many of them the steps are implicit in all variables."""
    steps = FactorSteps(system, ACCURACY, -math.inf)
    steps.W = W  # its columns unchanged: each lies in one of the spaces
    for _ in range(STEPS):
        steps.advance(math.inf)
        steps.W = _confined(steps.W, spaces)
        yield steps.t, steps.W
    if W.size > MOST:
        return
    owner, t = _owners(steps.W, spaces), steps.t
    stiff = ImplicitSteps(system, steps.W, ACCURACY, lambda V: _confined(V, spaces, owner))
    for _ in range(STIFF):
        stiff.advance()
        yield t + stiff.t, _confined(stiff.W, spaces, owner)


class FactorGrowth:
    """Recognises factors that grow like a power of time for ever, from what they did by decades."""

    def __init__(self, rank: int) -> None:
        self.rank, self.next = rank, 0.0
        self.seen: list[tuple[float, float]] = []  # |W| and the loss, one decade after another

    def look(self, system: FactorSystem, t: float, W: Array) -> None:
        """Raises GaveUp after three decades of time of such growth."""
        if t < self.next:
            return
        self.next, left = 10 * t, system.residual(W)
        self.seen.append((float(np.linalg.norm(W)), float(left @ left)))
        sizes, losses = np.array(self.seen[-4:]).T
        powers = np.diff(np.log10(sizes))
        falls = losses[1:] / losses[:-1]
        steady = len(powers) == 3 and powers.min() > max(0.02, 0.8 * powers.max())
        if steady and powers.max() < 0.7 and (falls > 0.5).all():
            raise GaveUp(
                f"the flow of rank {self.rank} does not converge: the factors grow like"
                f" t^{powers[-1]:.2g} and the loss falls ever more slowly, so that its least loss"
                " lies at infinity"
            )


def _owners(W: Array, spaces: list[Array]) -> Any:
    """The space of each column, the one where most of it is."""
    parts = np.array([np.linalg.norm(space.T @ W, axis=0) for space in spaces])
    return parts.argmax(axis=0)


def _confined(W: Array, spaces: list[Array], owner: Any = None) -> Array:
    """Every column in its space; what rounding adds would grow elsewhere."""
    if len(spaces) == 1:
        return W
    owner = _owners(W, spaces) if owner is None else owner
    parts = np.array([space @ (space.T @ W) for space in spaces])
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
    more = 3  # steps after the slope is rounding: those sharpen what small measurements decide
    for _ in range(20):
        bend = system.model.lift(system.problem.adjoint(system.residual(W)))
        slope = bend @ W
        rounding = noise(system.problem, system.matrix(W)) * np.linalg.norm(W)
        more -= bool(np.linalg.norm(slope) <= rounding)
        if not more:
            break
        W = _confined(W + _newton(system, W, bend, slope), spaces)
    return W


def _newton(system: FactorSystem, W: Array, bend: Array, slope: Array) -> Array:
    """The shortest step to where the gradient vanishes, by iterations where W is large."""
    if W.size <= MOST:
        J = (system.lifted() @ W).reshape(system.problem.samples, -1)
        hessian = J.T @ J + np.kron(bend, np.eye(W.shape[1]))
        return np.asarray(-lstsq(hessian, slope.ravel(), cond=1e-14)[0]).reshape(W.shape)

    def times(flat: Array) -> Array:
        move = flat.reshape(W.shape)
        return (system.pull(system.push(move, W), W) + bend @ move).ravel()

    hessian = LinearOperator((W.size, W.size), matvec=times, dtype=float)
    return np.asarray(minres(hessian, -slope.ravel(), rtol=1e-8, maxiter=1000)[0]).reshape(W.shape)
