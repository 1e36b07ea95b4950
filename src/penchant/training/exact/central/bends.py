"""Second and third derivatives of a loss at one point, for models whose own are explicit.

With outputs f_n, J their Jacobian and l the loss of a sample,

    H      = J^T diag(l'') J + sum_n l'_n grad^2 f_n
    H'[u, w] = J^T (l''' Ju Jw + l'' grad^2 f[u, w]) + sum_n l''_n (Ju)_n grad^2 f_n w
             + sum_n l''_n (Jw)_n grad^2 f_n u + sum_n l'_n grad^3 f_n[u, w].
"""

from __future__ import annotations

import abc

import numpy as np

from penchant.arguments import Array
from penchant.door import Invalid
from penchant.models.factorization import TwoFactors
from penchant.models.model import Separable
from penchant.training.samples import SampleTask

CLOSEST = 0.05  # the least factor of a step: one that hits zero would have an infinite rate
APART = 1e-4  # of the parameters: between the two points of a difference of second derivatives


def growth(z: Array) -> Array:
    """-log|1 - z| / z: how much faster steps shrink a direction of that rate than a flow does."""
    inside = np.where(np.abs(z) < 1e-6, 1.0, z)
    exact = -np.log(np.maximum(np.abs(1 - inside), CLOSEST)) / inside
    return np.where(np.abs(z) < 1e-6, 1 + z / 2, exact)


class Bends(abc.ABC):
    """Derivatives of second and third order of the outputs of a model at `parameters`."""

    @abc.abstractmethod
    def along(self, u: Array, w: Array) -> Array:
        """grad^2 f_n[u, w] for every sample n."""

    @abc.abstractmethod
    def times(self, weights: Array, u: Array) -> Array:
        """sum_n weights_n grad^2 f_n u."""

    @abc.abstractmethod
    def whole(self, weights: Array) -> Array:
        """sum_n weights_n grad^2 f_n as a matrix."""

    @abc.abstractmethod
    def stepped(self, weights: Array, step: float, rows: Array) -> Array:
        """`rows` times the growth of single steps over that of a flow, for H as in `whole`."""

    @abc.abstractmethod
    def third(self, weights: Array, u: Array, w: Array) -> Array | float:
        """sum_n weights_n grad^3 f_n[u, w, .]."""


class SeparableBends(Bends):
    """Those of a linear predictor whose coordinates have their own parameters."""

    def __init__(self, model: Separable, X: Array, parameters: Array) -> None:
        self.model, self.X, self.parameters = model, X, parameters
        self.bends = model.bends(parameters)

    def along(self, u: Array, w: Array) -> Array:
        table = self.model.table
        return self.X @ np.einsum("kld,kd,ld->d", self.bends, table(u), table(w))

    def times(self, weights: Array, u: Array) -> Array:
        bent = np.einsum("kld,ld->kd", self.bends, self.model.table(u))
        return (bent * (weights @ self.X)).ravel()

    def whole(self, weights: Array) -> Array:
        return self.model.curvature(self.parameters, self.X, weights)

    def stepped(self, weights: Array, step: float, rows: Array) -> Array:
        blocks = np.moveaxis(self.bends * (weights @ self.X), 2, 0)
        table = np.moveaxis(rows.reshape(*rows.shape[:-1], self.model.copies, -1), -1, -2)
        if not (blocks * (1 - np.eye(self.model.copies))).any():
            values = np.diagonal(blocks, axis1=1, axis2=2)
            moved = growth(step * values) * table
        else:
            values, vectors = np.linalg.eigh(blocks)
            inner = np.einsum("dkj,...dk->...dj", vectors, table) * growth(step * values)
            moved = np.einsum("dkj,...dj->...dk", vectors, inner)
        return np.asarray(np.moveaxis(moved, -1, -2).reshape(rows.shape), dtype=float)

    def third(self, weights: Array, u: Array, w: Array) -> Array | float:
        if self.model.homogeneity == 2:
            return 0.0
        length = float(np.linalg.norm(u))
        apart = APART * float(np.linalg.norm(self.parameters)) / length if length else 0.0
        if not apart:
            return 0.0
        up, down = (self.model.bends(self.parameters + s * apart * u) for s in (1, -1))
        turn = np.einsum("kld,ld->kd", (up - down) / (2 * apart), self.model.table(w))
        return (turn * (weights @ self.X)).ravel()


class FactorBends(Bends):
    """Those of a matrix that is quadratic in its factors: the second derivatives are constant."""

    def __init__(self, model: TwoFactors, X: Array, parameters: Array) -> None:
        self.model, self.X = model, X
        self.shape = model.matrix(parameters).shape
        self.width = model.stack(parameters).shape[1]

    def along(self, u: Array, w: Array) -> Array:
        half = self.model.stack(u) @ self.model.stack(w).T
        return self.X @ self.model.part(half + half.T).ravel()

    def times(self, weights: Array, u: Array) -> Array:
        return self.model.slope(u, self._seen(weights))

    def whole(self, weights: Array) -> Array:
        lifted = self.model.lift(self._seen(weights))
        return np.asarray(np.kron(lifted, np.eye(self.width)), dtype=float)

    def _seen(self, weights: Array) -> Array:
        return (weights @ self.X).reshape(self.shape)

    def stepped(self, weights: Array, step: float, rows: Array) -> Array:
        lifted = self.model.lift(self._seen(weights))
        values, vectors = np.linalg.eigh(lifted)
        stacks = rows.reshape(*rows.shape[:-1], -1, self.width)
        moved = vectors @ (growth(step * values)[:, None] * (vectors.T @ stacks))
        return moved.reshape(rows.shape)

    def third(self, weights: Array, u: Array, w: Array) -> Array | float:
        return 0.0


class Curvature:
    """Gradient, Hessian and third derivatives of loss + rate |w|^2 / 2 at `parameters`."""

    def __init__(self, task: SampleTask, parameters: Array, rate: float = 0.0) -> None:
        self.parameters, self.rate = parameters, rate
        predictions = task.outputs.predict(parameters)
        self.predictions = predictions
        self.first = task.loss.slopes(predictions)
        self.second, self.third = task.loss.bends(predictions), task.loss.thirds(predictions)
        self.J = task.model.jacobian(parameters, task.problem.design)
        self.bends: Bends
        if isinstance(task.model, Separable):
            self.bends = SeparableBends(task.model, task.problem.design, parameters)
        else:
            self.bends = FactorBends(task.model, task.problem.design, parameters)
        self.gradient = self.first @ self.J + rate * parameters

    def times(self, u: Array) -> Array:
        """The Hessian times `u`."""
        outer = (self.second * (self.J @ u)) @ self.J
        return outer + self.bends.times(self.first, u) + self.rate * u

    def hessian(self) -> Array:
        """The whole Hessian."""
        outer = self.J.T @ (self.second[:, None] * self.J)
        columns = self.bends.whole(self.first)
        return outer + columns + self.rate * np.eye(self.parameters.size)

    def turned(self, u: Array, w: Array) -> Array:
        """The third derivative of the loss along `u` and `w`: the gradient of u^T H w."""
        Ju, Jw = self.J @ u, self.J @ w
        inner = (self.third * Ju * Jw + self.second * self.bends.along(u, w)) @ self.J
        outer = self.bends.times(self.second * Ju, w) + self.bends.times(self.second * Jw, u)
        return inner + outer + self.bends.third(self.first, u, w)


def refuse_implicit(task: SampleTask) -> None:
    """Raises an error unless the second derivatives of the model are explicit."""
    if not isinstance(task.model, Separable | TwoFactors):
        raise Invalid(
            "needs a model whose Hessian is explicit, a separable one such as DiagonalNet or "
            f"Reparametrized, or a Factorization, got {type(task.model).__name__}; train it by "
            "GradientDescent"
        )
