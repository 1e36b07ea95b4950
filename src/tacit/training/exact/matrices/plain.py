"""Second routes: the lifted flow of W W^T, and any matrix model in its own parameters."""

from __future__ import annotations

import numpy as np

from tacit.arguments import Array
from tacit.models.matrix import MatrixModel
from tacit.problems.matrices import MatrixProblem
from tacit.training.exact.matrices.system import FactorSystem


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
