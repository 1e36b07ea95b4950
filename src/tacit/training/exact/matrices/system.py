"""Gradient flow of a matrix: in reduced factors, in W W^T, or in the parameters of any model."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tacit.arguments import Array
from tacit.models.factorization import TwoFactors
from tacit.models.matrix import MatrixModel
from tacit.problems.matrix_problem import Completion, MatrixProblem


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

    def matrix(self, W: Array) -> Array:
        return self.model.part(W @ W.T)

    def residual(self, W: Array) -> Array:
        return self.problem.apply(self.matrix(W)) - self.problem.y

    def velocity(self, W: Array) -> Array:
        # L = sum r^2, so its gradient is 2 sum_n r_n grad f(x_n)
        return -2 * self.pull(self.residual(W), W) - self.rate * W

    def pull(self, weights: Array, W: Array) -> Array:
        """J^T weights."""
        return self.model.lift(self.problem.adjoint(weights)) @ W

    def push(self, direction: Array, W: Array) -> Array:
        """J direction: how the predictions move when W does."""
        moved = direction @ W.T
        return self.problem.apply(self.model.part(moved + moved.T))

    def modes(self, W: Array) -> Modes:
        rates, basis = np.linalg.eigh(self.kernel.at(W @ W.T))
        return Modes(np.maximum(rates, 0.0), basis)

    def parameters(self, W: Array) -> Array:
        """The flat parameters of the model at its full width."""
        return (W @ self.frame.T).ravel()

    def norm(self, W: Array) -> float:
        """The norm of all parameters, which the reduction keeps."""
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
        found, self.samples, side = [], problem.samples, 0
        for sample, unit in enumerate(np.eye(problem.samples)):
            lifted = model.lift(problem.adjoint(unit))
            side, (rows, columns) = len(lifted), np.nonzero(lifted)
            found.append((np.full(len(rows), sample), rows, columns, lifted[rows, columns]))
        owner, first, second, weight = map(np.concatenate, zip(*found, strict=True))
        # tr(E_ab P E_cd) = P_bc where d = a
        order = np.argsort(second, kind="stable")
        low = np.searchsorted(second[order], first, "left")
        count = np.searchsorted(second[order], first, "right") - low
        left = np.repeat(np.arange(len(first)), count)
        offset = np.arange(len(left)) - np.repeat(np.cumsum(count) - count, count)
        right = order[np.repeat(low, count) + offset]
        self.place = owner[left] * problem.samples + owner[right]
        self.source = second[left] * side + first[right]
        self.weight = weight[left] * weight[right]

    def at(self, P: Array) -> Array:
        values = self.weight * P.ravel()[self.source]
        kernel = np.bincount(self.place, values, self.samples**2).reshape(self.samples, -1)
        return (kernel + kernel.T) / 2


class LiftedSystem:
    """P' = -2 (S P + P S) - 2 rate P for P = W W^T, closed in itself; S = lift(sum_n r_n X_n).

    W section 6 prints the right side with the opposite sign and without the 2 of the sum of
    squares, so that the loss would grow.
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
