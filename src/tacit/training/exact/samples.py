"""What a stiff flow asks of a model on its samples: predictions, gradients and tangents."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from tacit.arguments import Array
from tacit.models.model import Model, Separable


class Derivative(Protocol):
    """The derivative J of the predictions at one point, as a linear map."""

    def push(self, direction: Array) -> Array:
        """J direction, one number per sample."""

    def pull(self, residual: Array) -> Array:
        """J^T residual, one number per parameter."""

    def kernel(self) -> Array:
        """J J^T, the tangent kernel."""


class Samples(Protocol):
    """A model on the samples of a problem.

    `exact` says that `displaced` loses no digits to a large start.
    """

    exact: bool

    def predict(self, parameters: Array) -> Array: ...

    def displaced(self, displacement: Array, log_scale: float) -> Array:
        """The predictions at e^log_scale (start + displacement)."""

    def pullback(self, parameters: Array, residual: Array) -> Array:
        """The gradient of sum_n residual_n f_n."""

    def derivative(self, parameters: Array) -> Derivative: ...


class DenseDerivative:
    """A derivative held as a matrix."""

    def __init__(self, jacobian: Array) -> None:
        self.jacobian = jacobian

    def push(self, direction: Array) -> Array:
        return self.jacobian @ direction

    def pull(self, residual: Array) -> Array:
        return residual @ self.jacobian

    def kernel(self) -> Array:
        return self.jacobian @ self.jacobian.T


class RowSamples:
    """Any model on the rows of a design."""

    exact = False

    def __init__(self, model: Model, rows: Array, start: Array) -> None:
        self.model, self.rows, self.start = model, rows, start

    def predict(self, parameters: Array) -> Array:
        return np.asarray(self.model.predict(parameters, self.rows))

    def displaced(self, displacement: Array, log_scale: float) -> Array:
        return self.predict(math.exp(log_scale) * (self.start + displacement))

    def pullback(self, parameters: Array, residual: Array) -> Array:
        return np.asarray(self.model.pullback(parameters, self.rows, residual))

    def derivative(self, parameters: Array) -> Derivative:
        return DenseDerivative(np.asarray(self.model.jacobian(parameters, self.rows)))


class HomogeneousSamples:
    """A separable model of known homogeneity, whose predictors are told apart at any start."""

    exact = True

    def __init__(self, model: Separable, rows: Array, start: Array) -> None:
        self.model, self.rows, self.start = model, rows, start
        self.degree = model.homogeneity or 0
        self.beta = model.predictor(start)

    def predict(self, parameters: Array) -> Array:
        return self.rows @ self.model.predictor(parameters)

    def displaced(self, displacement: Array, log_scale: float) -> Array:
        return self.rows @ self.predictor(displacement, log_scale)

    def predictor(self, displacement: Array, log_scale: float) -> Array:
        # f(c w) = c^D f(w), and `change` knows f(start + displacement) - f(start) exactly
        moved = self.beta + self.model.change(self.start, displacement)
        return math.exp(self.degree * log_scale) * moved

    def pullback(self, parameters: Array, residual: Array) -> Array:
        return self.model.pullback(parameters, self.rows, residual)

    def derivative(self, parameters: Array) -> Derivative:
        return DenseDerivative(self.model.jacobian(parameters, self.rows))
