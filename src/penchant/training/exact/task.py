"""Predictions, gradients and tangents of a model on the samples of a problem."""

from __future__ import annotations

import abc
import math
from typing import Any

import numpy as np

from penchant.arguments import Array
from penchant.door import Invalid
from penchant.models.factorization import TwoFactors
from penchant.models.matrix import MatrixModel
from penchant.models.model import Model, Separable
from penchant.problems.classification import Classification
from penchant.problems.matrix_problem import Completion, MatrixProblem
from penchant.problems.regression import Regression
from penchant.training.exact.matrices.system import SparseKernel


class DenseDerivative:
    """The derivative J of the predictions at one point, held as a matrix.

    `push` is J direction, one number per sample, `pull` J^T residual, one per parameter, and
    `kernel` J J^T.
    """

    def __init__(self, jacobian: Array) -> None:
        self.jacobian = np.asarray(jacobian)

    def push(self, direction: Array) -> Array:
        return self.jacobian @ direction

    def pull(self, residual: Array) -> Array:
        return residual @ self.jacobian

    def kernel(self) -> Array:
        return self.jacobian @ self.jacobian.T


class CompletionDerivative:
    """The derivative of observed entries of M = part(W W^T), never written out as a matrix."""

    def __init__(self, samples: TwoFactorSamples, parameters: Array) -> None:
        self.samples, self.parameters = samples, parameters
        self.stack = samples.model.stack(parameters)

    def push(self, direction: Array) -> Array:
        half = self.samples.model.stack(direction) @ self.stack.T
        return self.samples.problem.apply(self.samples.model.part(half + half.T))

    def pull(self, residual: Array) -> Array:
        return self.samples.pullback(self.parameters, residual)

    def kernel(self) -> Array:
        assert self.samples.sparse is not None
        return self.samples.sparse.at(self.stack @ self.stack.T)


Derivative = DenseDerivative | CompletionDerivative


class SampleFlow(abc.ABC):
    """A model on the samples of a problem; `exact` if `displaced` loses no digits to the start."""

    exact = False

    def __init__(self, model: Any, problem: Any, start: Array) -> None:
        self.model, self.problem, self.start = model, problem, start

    @abc.abstractmethod
    def predict(self, parameters: Array) -> Array: ...

    @abc.abstractmethod
    def pullback(self, parameters: Array, residual: Array) -> Array:
        """The gradient of sum_n residual_n f_n."""

    @abc.abstractmethod
    def derivative(self, parameters: Array) -> Derivative: ...

    @abc.abstractmethod
    def whole(self, parameters: Array, displacement: Array | None, log_scale: float) -> Array:
        """The linear predictor or matrix at parameters = e^log_scale (start + displacement)."""

    def displaced(self, displacement: Array, log_scale: float) -> Array:
        return self.predict(math.exp(log_scale) * (self.start + displacement))


class RowSamples(SampleFlow):
    """Any model on the rows of a design."""

    def predict(self, parameters: Array) -> Array:
        return np.asarray(self.model.predict(parameters, self.problem.X))

    def pullback(self, parameters: Array, residual: Array) -> Array:
        return np.asarray(self.model.pullback(parameters, self.problem.X, residual))

    def derivative(self, parameters: Array) -> Derivative:
        return DenseDerivative(self.model.jacobian(parameters, self.problem.X))

    def whole(self, parameters: Array, displacement: Array | None, log_scale: float) -> Array:
        return np.asarray(self.model.predictor(parameters))


class HomogeneousSamples(RowSamples):
    """A separable model of known homogeneity, whose changes of the predictor are exact."""

    exact = True

    def __init__(self, model: Separable, problem: Any, start: Array) -> None:
        super().__init__(model, problem, start)
        self.beta = model.predictor(start)

    def whole(self, parameters: Array, displacement: Array | None, log_scale: float) -> Array:
        if displacement is None:
            return super().whole(parameters, None, log_scale)
        # f(c w) = c^D f(w), and `change` gives f(start + displacement) - f(start) exactly
        moved = self.beta + self.model.change(self.start, displacement)
        return math.exp(self.model.homogeneity * log_scale) * moved

    def displaced(self, displacement: Array, log_scale: float) -> Array:
        return self.problem.X @ self.whole(self.start, displacement, log_scale)


class MatrixSamples(SampleFlow):
    """Any matrix model on any matrix problem."""

    def predict(self, parameters: Array) -> Array:
        return self.problem.apply(self.model.matrix(parameters))

    def pullback(self, parameters: Array, residual: Array) -> Array:
        return self.model.slope(parameters, self.problem.adjoint(residual))

    def derivative(self, parameters: Array) -> Derivative:
        return DenseDerivative(self.model.jacobian(parameters, self.problem.design))

    def whole(self, parameters: Array, displacement: Array | None, log_scale: float) -> Array:
        return np.asarray(self.model.matrix(parameters))


class TwoFactorSamples(MatrixSamples):
    """M = part(W W^T) on any matrix problem, without cancellation near a large start."""

    exact = True

    def __init__(self, model: TwoFactors, problem: MatrixProblem, start: Array) -> None:
        super().__init__(model, problem, start)
        self.first = model.matrix(start)
        self.sparse = SparseKernel(model, problem) if isinstance(problem, Completion) else None

    def whole(self, parameters: Array, displacement: Array | None, log_scale: float) -> Array:
        if displacement is None:
            return super().whole(parameters, None, log_scale)
        # (W + E)(W + E)^T - W W^T = E (W + E/2)^T + its transpose: nothing of size |W|^2 is left
        middle = self.model.stack(self.start + displacement / 2)
        half = self.model.stack(displacement) @ middle.T
        return math.exp(2 * log_scale) * (self.first + self.model.part(half + half.T))

    def displaced(self, displacement: Array, log_scale: float) -> Array:
        return self.problem.apply(self.whole(self.start, displacement, log_scale))

    def derivative(self, parameters: Array) -> Derivative:
        if self.sparse is None:
            return super().derivative(parameters)
        return CompletionDerivative(self, parameters)


def samples_of(model: Model, problem: Any, start: Array) -> SampleFlow:
    if isinstance(problem, MatrixProblem):
        if isinstance(model, TwoFactors):
            return TwoFactorSamples(model, problem, start)
        assert isinstance(model, MatrixModel)
        return MatrixSamples(model, problem, start)
    if isinstance(model, Separable) and model.homogeneity is not None:
        return HomogeneousSamples(model, problem, start)
    return RowSamples(model, problem, start)


Problem = Regression | Classification


def separable(model: object, problem: object) -> tuple[Separable, Problem]:
    """`model` and `problem` if they are what a flow of linear predictors can train."""
    if not isinstance(problem, Problem):
        raise Invalid(
            f"the problem must be a Regression or a Classification, got "
            f"{type(problem).__name__}; wrap the data as Regression(X, y)"
        )
    if not isinstance(model, Separable):
        raise Invalid(
            f"the model must be a separable reparametrization of a linear predictor, such "
            f"as DiagonalNet or ProductNet, got {type(model).__name__}"
        )
    return model, problem
