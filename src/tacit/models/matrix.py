"""The interface of a model whose linear predictor is a matrix, f(x) = <M, X> (W section 6)."""

from __future__ import annotations

import abc
import math

import numpy as np

from tacit.arguments import Array, integer, log_scale, real
from tacit.models.model import Model

Shape = tuple[int, int]


class MatrixModel(Model):
    """A matrix M(parameters); the rows of a design hold measurements in C order.

    `matrix` uses plain operators only, so that it also accepts JAX arrays.
    """

    shape: Shape | None

    @abc.abstractmethod
    def matrix(self, parameters: Array) -> Array:
        """M, with f(parameters, x) = <M, x as a matrix>."""

    @abc.abstractmethod
    def slope(self, parameters: Array, weights: Array) -> Array:
        """The gradient in the flat parameters of <weights, M(parameters)>."""

    def predict(self, parameters: Array, X: Array) -> Array:
        return X @ self.matrix(parameters).reshape(-1)

    def pullback(self, parameters: Array, X: Array, residual: Array) -> Array:
        shape = self.matrix(parameters).shape
        return self.slope(parameters, (residual @ X).reshape(shape))

    def jacobian(self, parameters: Array, X: Array) -> Array:
        shape = self.matrix(parameters).shape
        return np.stack([self.slope(parameters, row.reshape(shape)) for row in X])

    def shape_for(self, dimension: int) -> Shape:
        """The shape of a matrix of `dimension` entries: the one given, or a square."""
        who = type(self).__name__
        if self.shape is None:
            side = math.isqrt(dimension)
            if side * side != dimension:
                raise ValueError(
                    f"{who}: {dimension} entries do not make a square matrix; give shape="
                )
            return side, side
        if self.shape[0] * self.shape[1] != dimension:
            raise ValueError(
                f"{who}: shape {self.shape} has {self.shape[0] * self.shape[1]} entries but the "
                f"data have {dimension}"
            )
        return self.shape


def checked_shape(who: str, shape: object) -> Shape | None:
    """(rows, columns) as integers of at least 1, or None."""
    if shape is None:
        return None
    if not isinstance(shape, tuple | list) or len(shape) != 2:
        raise ValueError(f"{who}: shape must be (rows, columns) or None, got {shape!r}")
    rows, columns = (integer(who, "shape", side, least=1) for side in shape)
    return rows, columns


def scale(who: str, alpha: object, log_alpha: object) -> tuple[float, float]:
    """(alpha, log alpha) from whichever one is given; refused where float64 cannot hold M."""
    if alpha is None and log_alpha is None:
        raise ValueError(f"{who}: give exactly one of alpha and log_alpha, got none of them")
    if alpha is not None and log_alpha is not None:
        raise ValueError(f"{who}: give exactly one of alpha and log_alpha, got both")
    log_alpha = log_scale(who, 2, alpha, log_alpha, None)
    if abs(log_alpha) > 300:
        raise ValueError(
            f"{who}: |log_alpha| must be at most 300, got {log_alpha:g}; float64 cannot hold "
            "products of such factors"
        )
    return float(real(who, "alpha", alpha)) if alpha is not None else math.exp(log_alpha), log_alpha
