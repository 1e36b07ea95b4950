"""Matrix models on matrix problems: no design rows, and kernels of completion from one product."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tacit.arguments import Array
from tacit.models.factorization import TwoFactors
from tacit.models.matrix import MatrixModel
from tacit.problems.matrices import Completion, MatrixProblem
from tacit.training.exact.samples import DenseDerivative, Derivative

Indices = NDArray[np.int64]


class MatrixSamples:
    """Any matrix model on any matrix problem."""

    exact = False

    def __init__(self, model: MatrixModel, problem: MatrixProblem, start: Array) -> None:
        self.model, self.problem, self.start = model, problem, start

    def predict(self, parameters: Array) -> Array:
        return self.problem.apply(self.model.matrix(parameters))

    def displaced(self, displacement: Array, log_scale: float) -> Array:
        return self.predict(math.exp(log_scale) * (self.start + displacement))

    def pullback(self, parameters: Array, residual: Array) -> Array:
        return self.model.slope(parameters, self.problem.adjoint(residual))

    def derivative(self, parameters: Array) -> Derivative:
        return DenseDerivative(self.model.jacobian(parameters, self.problem.design))


class TwoFactorSamples:
    """M = part(W W^T) on any matrix problem, without cancellation near a large start."""

    exact = True

    def __init__(self, model: TwoFactors, problem: MatrixProblem, start: Array) -> None:
        self.model, self.problem, self.start = model, problem, start
        self.first = model.matrix(start)
        self.pattern = Pattern(model, problem) if isinstance(problem, Completion) else None

    def predict(self, parameters: Array) -> Array:
        return self.problem.apply(self.model.matrix(parameters))

    def displaced(self, displacement: Array, log_scale: float) -> Array:
        return self.problem.apply(self.matrix(displacement, log_scale))

    def matrix(self, displacement: Array, log_scale: float) -> Array:
        """M at e^log_scale (start + displacement)."""
        # (W + E)(W + E)^T - W W^T = E (W + E/2)^T + its transpose: nothing of size |W|^2 is left
        middle = self.model.stack(self.start + displacement / 2)
        half = self.model.stack(displacement) @ middle.T
        return math.exp(2 * log_scale) * (self.first + self.model.part(half + half.T))

    def pullback(self, parameters: Array, residual: Array) -> Array:
        return self.model.slope(parameters, self.problem.adjoint(residual))

    def derivative(self, parameters: Array) -> Derivative:
        if self.pattern is None:
            return DenseDerivative(self.model.jacobian(parameters, self.problem.design))
        return CompletionDerivative(self.model, self.problem, self.pattern, parameters)


class CompletionDerivative:
    """The derivative of observed entries of M = part(W W^T), never written out as a matrix."""

    def __init__(
        self, model: TwoFactors, problem: MatrixProblem, pattern: Pattern, parameters: Array
    ) -> None:
        self.model, self.problem, self.pattern = model, problem, pattern
        self.parameters, self.stack = parameters, model.stack(parameters)

    def push(self, direction: Array) -> Array:
        half = self.model.stack(direction) @ self.stack.T
        return self.problem.apply(self.model.part(half + half.T))

    def pull(self, residual: Array) -> Array:
        return self.model.slope(self.parameters, self.problem.adjoint(residual))

    def kernel(self) -> Array:
        return self.pattern.kernel(self.stack @ self.stack.T)


class Pattern:
    """Which entries of W W^T make which entries of the tangent kernel of a completion.

    The gradient of sample n is S_n W with S_n = lift(X_n), so the kernel is tr(S_n W W^T S_m).
    The few non-zeros (a, b) of S_n and (a', b') of S_m contribute where b = b'.
    """

    def __init__(self, model: TwoFactors, problem: Completion) -> None:
        self.samples = problem.samples
        owner, a, b, value = _lifted(model, problem)
        left, right = _pairs(b)
        self.place = owner[left] * self.samples + owner[right]
        self.a, self.other, self.weight = a[left], a[right], value[left] * value[right]

    def kernel(self, lifted: Array) -> Array:
        parts = self.weight * lifted[self.a, self.other]
        flat = np.bincount(self.place, weights=parts, minlength=self.samples**2)
        return np.asarray(flat, dtype=float).reshape(self.samples, self.samples)


def _lifted(model: TwoFactors, problem: Completion) -> tuple[Indices, Indices, Indices, Array]:
    """The non-zeros of every lift(X_n): their sample, row, column and value."""
    found, single = [], np.zeros(problem.shape)
    for n, (i, j) in enumerate(problem.entries):
        single[i, j] = 1.0
        lift = model.lift(single)
        single[i, j] = 0.0
        a, b = np.nonzero(lift)
        found.append((np.full(len(a), n), a, b, lift[a, b]))
    owner, a, b, value = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return owner, a, b, value


def _pairs(keys: Indices) -> tuple[Indices, Indices]:
    """All ordered pairs of positions with equal keys."""
    order = np.argsort(keys, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(keys[order])) + 1)
    left = np.concatenate([np.repeat(group, len(group)) for group in groups])
    right = np.concatenate([np.tile(group, len(group)) for group in groups])
    return left, right
