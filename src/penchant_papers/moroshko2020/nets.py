"""Homogeneous nets that are not diagonal, and labels that no linear classifier can learn."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from penchant import Classification
from penchant.lab import Array
from penchant.models import Model


@dataclasses.dataclass(frozen=True)
class QuadraticUnits(Model):
    """f(x) = sum_j v_j <w_j, x>^2: homogeneous of degree 3, and not linear in x.

    Parameters are (W, v) from alpha times Gaussians; at alpha = 1 the outputs are of order one.
    """

    alpha: float
    seed: int = 0
    width: int = 3

    @property
    def homogeneity(self) -> int:
        return 3

    def start(self, dimension: int) -> Array:
        rng = np.random.default_rng([self.seed, 2])  # not that of data drawn by the same seed
        W = rng.normal(0, dimension**-0.5, self.width * dimension)
        v = rng.normal(0, self.width**-0.5, self.width)
        return np.asarray(self.alpha * np.concatenate([W, v]))

    def parts(self, parameters: Array) -> tuple[Array, Array]:
        """(W, v), a row of W for every unit."""
        return parameters[: -self.width].reshape(self.width, -1), parameters[-self.width :]

    def predict(self, parameters: Array, X: Array) -> Array:
        W, v = self.parts(parameters)
        return np.asarray((X @ W.T) ** 2 @ v)

    def jacobian(self, parameters: Array, X: Array) -> Array:
        W, v = self.parts(parameters)
        units = X @ W.T
        inner = 2 * (units * v)[:, :, None] * X[:, None, :]
        return np.concatenate([inner.reshape(len(X), -1), units**2], axis=1)

    def pullback(self, parameters: Array, X: Array, residual: Array) -> Array:
        W, v = self.parts(parameters)
        units = X @ W.T
        inner = 2 * v[:, None] * ((units * residual[:, None]).T @ X)
        return np.concatenate([inner.ravel(), residual @ units**2])

    def describe(self) -> dict[str, Any]:
        return {"model": "QuadraticUnits", **dataclasses.asdict(self)}


@dataclasses.dataclass(frozen=True)
class SquareMinusProduct(Model):
    """f(x) = <u^2 - v w, x> from u = v = w = alpha.

    Its tangent kernel moves in first order of the predictor: u^2 + v^2 + w^2 grows with u^2 - v w,
    where nets that are differences of two equal copies have an even kernel.
    """

    alpha: float

    @property
    def homogeneity(self) -> int:
        return 2

    def start(self, dimension: int) -> Array:
        return np.full(3 * dimension, self.alpha)

    def predict(self, parameters: Array, X: Array) -> Array:
        u, v, w = parameters.reshape(3, -1)
        return np.asarray(X @ (u**2 - v * w))

    def jacobian(self, parameters: Array, X: Array) -> Array:
        u, v, w = parameters.reshape(3, -1)
        return np.concatenate([2 * u * X, -w * X, -v * X], axis=1)

    def pullback(self, parameters: Array, X: Array, residual: Array) -> Array:
        u, v, w = parameters.reshape(3, -1)
        pull = residual @ X
        return np.concatenate([2 * u * pull, -w * pull, -v * pull])

    def describe(self) -> dict[str, Any]:
        return {"model": "SquareMinusProduct", "alpha": self.alpha}


def signs_of_products(seed: int, samples: int = 6, dimension: int = 6) -> Classification:
    """Gaussian points labelled by the sign of x_1 x_2, which no linear classifier can learn."""
    X = np.random.default_rng(seed).standard_normal((samples, dimension))
    return Classification(X, np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0))
