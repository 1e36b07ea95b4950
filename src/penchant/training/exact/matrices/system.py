"""Gradient flow of a matrix in several variables, one stiff step of it, and its closed end."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from penchant.arguments import Array
from penchant.limits import Turns
from penchant.models.factorization import Factorization, TwoFactors
from penchant.models.matrix import MatrixModel
from penchant.problems.matrix_problem import Completion, MatrixProblem

BALANCED = 1e-4  # of rtol: an imbalance below this is drowned by the errors of the steps
ROUNDING = 1e-14  # of |W|^2
KEPT = "square layers that start balanced (U^T U = V^T V) keep the sign of det M"


def kept_sign(model: object, W: Array, rtol: float) -> float:
    """The sign of det M that the flow from the stack W = [U; V] keeps; 0 if it keeps none.

    U^T U - V^T V is conserved. If it vanishes, V = Q U with an orthogonal Q while U has full rank,
    which it keeps, so that det(U V^T) never changes its sign: a target of the other sign is out of
    reach, and the flow ends at a saddle of lower rank. Errors of the steps break the balance by
    less than `rtol`, and then leave the saddle.
    """
    if not isinstance(model, Factorization) or len(W) % 2:
        return 0.0
    rows = len(W) // 2 if model.shape is None else model.shape[0]
    W = W if W.shape[1] <= len(W) else np.linalg.qr(W.T)[1].T
    U, V = W[:rows], W[rows:]
    size = float(np.linalg.norm(W)) or 1.0
    if len(U) != len(V) or np.linalg.norm(U / size) ** 2 == 0:
        return 0.0
    U, V = U / size, V / size
    if np.linalg.norm(U.T @ U - V.T @ V) > max(BALANCED * rtol, ROUNDING):
        return 0.0
    least = np.linalg.svd(U, compute_uv=False)[min(U.shape) - 1]
    if U.shape[1] < rows or least**2 <= ROUNDING:
        return 0.0
    return float(np.linalg.slogdet(U @ V.T)[0])


class Modes(NamedTuple):
    """The tangent kernel J J^T by its eigenvalues `rates` and eigenvectors `basis` (columns)."""

    rates: Array
    basis: Array


class FactorSystem:
    """W' = -2 lift(G) W - rate W with G = sum_n r_n X_n, for the stack W of both factors.

    The flow multiplies W from the left only. With W(0)^T = Q R it is W(t) = Z(t) Q^T where Z
    starts at R^T and obeys the same equation: at most as many columns as W has rows, whatever the
    width, and W W^T = Z Z^T. The same holds for gradient descent, step by step.
    """

    def __init__(self, model: TwoFactors, problem: MatrixProblem, rate: float = 0.0) -> None:
        self.model, self.problem, self.rate = model, problem, rate
        W = model.stack(model.start(problem.dimension))
        self.frame, triangle = np.linalg.qr(W.T)
        self.start = triangle.T
        kernel = SparseKernel if isinstance(problem, Completion) else DenseKernel
        self.kernel = kernel(model, problem)
        self._lifted: Array | None = None

    def matrix(self, W: Array) -> Array:
        return self.model.part(W @ W.swapaxes(-1, -2))

    def residual(self, W: Array) -> Array:
        return self.problem.apply(self.matrix(W)) - self.problem.y

    def velocity(self, W: Array) -> Array:
        """W', also for a stack of W, as all of `matrix`, `residual`, `pull` and `push`."""
        # L = sum r^2, so its gradient is 2 sum_n r_n grad f(x_n)
        return -2 * self.pull(self.residual(W), W) - self.rate * W

    def pull(self, weights: Array, W: Array) -> Array:
        return self.model.lift(self.problem.adjoint(weights)) @ W

    def push(self, direction: Array, W: Array) -> Array:
        moved = direction @ W.swapaxes(-1, -2)
        return self.problem.apply(self.model.part(moved + moved.swapaxes(-1, -2)))

    def lifted(self) -> Array:
        """The lifts of all measurements, computed when first used; times W they are J."""
        if self._lifted is None:
            shape = self.problem.samples, *self.problem.shape
            self._lifted = self.model.lift(self.problem.design.reshape(shape))
        return self._lifted

    def modes(self, W: Array) -> Modes:
        rates, basis = np.linalg.eigh(self.kernel.at(W @ W.T))
        return Modes(np.maximum(rates, 0.0), basis)

    def parameters(self, W: Array) -> Array:
        return (W @ self.frame.T).ravel()

    def norm(self, W: Array) -> float:
        return float(np.linalg.norm(W))

    def rounding(self, W: Array) -> float:
        """The loss that rounding alone leaves, where large factors cancel in a small M."""
        noise = 4 * np.finfo(float).eps * float(np.einsum("ij,ij->i", W, W).max())
        gain = float(np.max(np.linalg.norm(self.problem.design, axis=1)))
        return self.problem.samples * (noise * gain) ** 2


class DenseKernel:
    """J J^T = (tr lift(X_m) P lift(X_n)) with P = W W^T, for any measurements."""

    def __init__(self, model: TwoFactors, problem: MatrixProblem) -> None:
        self.lifted = model.lift(problem.design.reshape(problem.samples, *problem.shape))

    def at(self, P: Array) -> Array:
        rows = len(self.lifted)
        kernel = (self.lifted @ P).reshape(rows, -1) @ self.lifted.reshape(rows, -1).T
        return (kernel + kernel.T) / 2


class SparseKernel:
    """The same for single entries, whose lifts have at most four entries each."""

    def __init__(self, model: TwoFactors, problem: MatrixProblem) -> None:
        entries, self.samples, side = [], problem.samples, 0
        for sample, unit in enumerate(np.eye(problem.samples)):
            lifted = model.lift(problem.adjoint(unit))
            side, (rows, columns) = len(lifted), np.nonzero(lifted)
            entries.append((np.full(len(rows), sample), rows, columns, lifted[rows, columns]))
        owner, first, second, weight = map(np.concatenate, zip(*entries, strict=True))
        # tr(E_ab P E_cd) = P_bc where d = a
        order = np.argsort(second, kind="stable")
        low = np.searchsorted(second[order], first, "left")
        count = np.searchsorted(second[order], first, "right") - low
        left = np.repeat(np.arange(len(first)), count)
        offset = np.arange(len(left)) - np.repeat(np.cumsum(count) - count, count)
        right = order[np.repeat(low, count) + offset]
        self.pair_index = owner[left] * problem.samples + owner[right]
        self.source = second[left] * side + first[right]
        self.weight = weight[left] * weight[right]

    def at(self, P: Array) -> Array:
        values = self.weight * P.ravel()[self.source]
        kernel = np.bincount(self.pair_index, values, self.samples**2).reshape(self.samples, -1)
        return (kernel + kernel.T) / 2


class LiftedSystem:
    """P' = -2 (S P + P S) - 2 rate P for P = W W^T, closed in itself; S = lift(sum_n r_n X_n).

    Woodworth et al. 2020, section 6, print the right side with the opposite sign and without the
    2 of the sum of squares, so that the loss would grow.
    """

    def __init__(self, system: FactorSystem) -> None:
        self.system, self.problem, self.rate = system, system.problem, system.rate
        self.side = len(system.start)
        self.start = (system.start @ system.start.T).ravel()

    def matrix(self, state: Array) -> Array:
        return self.system.model.part(state.reshape(self.side, -1))

    def residual(self, state: Array) -> Array:
        return self.problem.apply(self.matrix(state)) - self.problem.y

    def velocity(self, state: Array) -> Array:
        P = state.reshape(self.side, -1)
        half = self.system.model.lift(self.problem.adjoint(self.residual(state))) @ P
        return (-2 * (half + half.T) - 2 * self.rate * P).ravel()

    def indefinite(self, state: Array) -> bool:
        """Whether P has a negative eigenvalue beyond the errors of steps; it would grow."""
        sizes = np.linalg.eigvalsh(state.reshape(self.side, -1))
        return bool(sizes[0] < -1e-4 * sizes[-1])

    def parameters(self, state: Array) -> None:
        """None: W is known up to a rotation only."""

    def norm(self, state: Array) -> float:
        return float(np.sqrt(np.trace(state.reshape(self.side, -1))))


class PlainSystem:
    """w' = -grad L - rate w in the parameters of any matrix model."""

    def __init__(self, model: MatrixModel, problem: MatrixProblem, rate: float = 0.0) -> None:
        self.model, self.problem, self.rate = model, problem, rate
        self.start = model.start(problem.dimension)

    def matrix(self, state: Array) -> Array:
        return self.model.matrix(state)

    def residual(self, state: Array) -> Array:
        return self.problem.apply(self.matrix(state)) - self.problem.y

    def velocity(self, state: Array) -> Array:
        slope = self.model.slope(state, self.problem.adjoint(self.residual(state)))
        return -2 * slope - self.rate * state

    def parameters(self, state: Array) -> Array:
        return state

    def norm(self, state: Array) -> float:
        return float(np.linalg.norm(state))


NULL = 1e-13  # eigenvalues of the tangent kernel below this share of the largest count as zero


class Rest(NamedTuple):
    """What is left of a flow: W at any time from now on, and when the loss meets its target."""

    at: Callable[[float], Array]
    time: float


def end_game(
    system: FactorSystem, W: Array, modes: Modes, target: float, rtol: float
) -> Rest | None:
    """The rest of the flow from W by its linearisation, or None where that is not accurate yet.

    Frozen at W, the residual decays as exp(-2 J J^T t) and the whole displacement is the least
    one that fits the data, the step of Gauss and Newton. What is left out is of second order: the
    displacement of the displacement, and the residual that the step leaves. Both must be below
    `rtol` times the largest entry of W.
    """
    fast = modes.rates > NULL * modes.rates[-1]
    heights = modes.basis.T @ system.residual(W)
    if np.sum(heights[~fast] ** 2) > 0.25 * target or system.rate:
        return None
    rates, basis, heights = modes.rates[fast], modes.basis[:, fast], heights[fast]

    def fit(W: Array, residual: Array) -> Array:
        return -system.pull(basis @ ((basis.T @ residual) / rates), W)

    with np.errstate(over="ignore", invalid="ignore"):  # from a tiny start the step is huge
        step = fit(W, basis @ heights)
        bend = system.pull(basis @ (heights / rates), step)
        missed = fit(W, system.residual(W + step))
        second = np.abs(np.stack([bend, missed])).max()
    if not second <= rtol * np.abs(W).max():
        return None

    def at(t: float) -> Array:
        left = np.exp(-2 * rates * t)
        ahead = W - system.pull(basis @ (heights * -np.expm1(-2 * rates * t) / rates), W)
        for _ in range(3):  # the residual is the linear one, also beyond the first order
            ahead = ahead + fit(ahead, system.residual(ahead) - basis @ (heights * left))
        return ahead

    rest = Rest(at, _time(heights**2, 4 * rates, 0.5 * target))
    left = system.residual(at(rest.time))
    return rest if left @ left <= max(target, system.rounding(W)) else None


def _time(heights: Array, rates: Array, target: float) -> float:
    if heights.sum() <= target:
        return 0.0
    low, high = 0.0, 1 / float(rates[0])
    turns = Turns(2000, "the time of a decay")
    while np.sum(heights * np.exp(-rates * high)) > target:
        turns.take()
        low, high = high, 2 * high
    for _ in range(200):
        middle = (low + high) / 2
        if np.sum(heights * np.exp(-rates * middle)) > target:
            low = middle
        else:
            high = middle
        if math.isclose(low, high, rel_tol=1e-12):
            break
    return high


def columns(rtol: float) -> int:
    return min(max(3, round(0.5 - 0.85 * math.log10(rtol))), 9)


def extrapolated(
    system: FactorSystem, W: Array, span: float, modes: Modes, order: int
) -> tuple[Array, float]:
    """(W after `span`, an estimate of its error), by 1, 2, ..., `order` linearly implicit steps.

    Each step treats -rate - 2 J^T J at the beginning of the span implicitly, the stiff part; one
    eigendecomposition of the small J J^T serves steps of every length. The curvature of the
    model, -2 lift(G), is no faster than the solution itself and stays explicit.
    """
    before: list[Array] = []
    for count, end in enumerate(_euler(system, W, span, modes, order), start=1):
        row = [end]
        for k, coarse in enumerate(before, start=1):  # Aitken and Neville, in powers of the step
            row.append(row[-1] + (row[-1] - coarse) * (count - k) / k)
        before = row
    return before[-1], float(np.abs(before[-1] - before[-2]).max())


def _euler(system: FactorSystem, begin: Array, span: float, modes: Modes, order: int) -> Array:
    """W after `span` by 1, 2, ..., `order` steps, one after another in a stack.

    They are taken together, since the matrices are small and a call costs more than its sums: row
    k of the stack takes part in the first k of `order` rounds.
    """
    steps = (span / np.arange(1, order + 1))[:, None]
    damping = 1 + steps * system.rate
    gains = 2 * steps / (damping + 2 * steps * modes.rates)
    lengths = (steps / damping)[..., None]
    W = np.repeat(begin[None], order, axis=0)
    for taken in range(order):
        now = W[taken:]
        slope = system.velocity(now)
        # (damping + 2 step J^T J)^-1 by Woodbury's identity, through the modes of J J^T
        heights = (gains[taken:] * (system.push(slope, begin) @ modes.basis)) @ modes.basis.T
        W[taken:] = now + lengths[taken:] * (slope - system.pull(heights, begin))
    return W
