"""Models whose linear predictor is a matrix, f(x) = <M, X>, and M = W_1 ... W_L."""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, finite_array, integer, log_scale, real, shape_or_none
from penchant.door import Invalid, class_name, door, door_as
from penchant.models.model import Model
from penchant.records import Record, assign

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

    @door_as(class_name)
    def shape_for(self, dimension: int) -> Shape:
        """The shape of a matrix of `dimension` entries: the one given, or a square."""
        if self.shape is None:
            side = math.isqrt(dimension)
            if side * side != dimension:
                raise Invalid(f"{dimension} entries do not make a square matrix; give shape=")
            return side, side
        if self.shape[0] * self.shape[1] != dimension:
            raise Invalid(
                f"shape {self.shape} has {self.shape[0] * self.shape[1]} entries but the "
                f"data have {dimension}"
            )
        return self.shape


def scale(alpha: object, log_alpha: object) -> tuple[float, float]:
    """(alpha, log alpha) from whichever one is given; raises if float64 cannot hold M."""
    log_alpha = log_scale(2, alpha, log_alpha)
    if abs(log_alpha) > 300:
        raise Invalid(
            f"|log_alpha| must be at most 300, got {log_alpha:g}; float64 cannot hold "
            "products of such factors"
        )
    return float(real("alpha", alpha)) if alpha is not None else math.exp(log_alpha), log_alpha


@dataclasses.dataclass(frozen=True, init=False, repr=False, eq=False)
class DeepFactorization(Record, MatrixModel):
    """M = W_1 ... W_depth with inner dimensions `width`, i.i.d. N(0, alpha^2) at the start.

    Parameters
    ----------
    depth
        The number of factors.
    width
        The inner dimension.
    alpha
        The scale of the start; give exactly one of the scales.
    log_alpha
        The natural logarithm of alpha, as far from 0 as you like.
    shape
        (rows, columns) of M; None stands for a square.
    seed
        The seed of all random numbers.
    factors
        (W_1, ..., W_depth) gives the start itself instead.

    References
    ----------
    .. [1] Arora et al. (2019), Implicit Regularization in Deep Matrix Factorization.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> model = penchant.models.DeepFactorization(depth=3, width=4, alpha=0.1)
    >>> model.matrix(model.start(dimension=4)).shape
    (2, 2)
    >>> model = penchant.models.DeepFactorization(factors=3 * [0.1 * np.eye(2)])
    >>> model.depth, model.matrix(model.start(dimension=4)).round(6).tolist()
    (3, [[0.001, 0.0], [0.0, 0.001]])
    """

    implied: ClassVar = {"factors": ("depth", "width", "seed", "shape")}

    depth: int
    width: int
    alpha: float | None
    log_alpha: float | None
    seed: int | None
    shape: Shape | None
    factors: tuple[Array, ...] | None

    @door
    def __init__(
        self,
        depth: int | None = None,
        width: int | None = None,
        *,
        alpha: float | None = None,
        log_alpha: float | None = None,
        shape: Shape | None = None,
        seed: int = 0,
        factors: Sequence[ArrayLike] | None = None,
    ) -> None:
        if factors is not None:
            if any(given is not None for given in (depth, width, alpha, log_alpha)):
                raise Invalid(
                    "factors= already sets depth, width and scale; leave out depth, width, alpha "
                    "and log_alpha"
                )
            layers = _layers(factors)
            assign(self, depth=len(layers), width=layers[0].shape[1], factors=layers)
            assign(self, alpha=None, log_alpha=None, seed=None)
            assign(self, shape=(len(layers[0]), layers[-1].shape[1]))
            return
        alpha, log_alpha = scale(alpha, log_alpha)
        assign(
            self,
            depth=integer("depth", depth, least=2),
            width=integer("width", width, least=1),
            alpha=alpha,
            log_alpha=log_alpha,
            seed=integer("seed", seed, least=0),
            shape=shape_or_none(shape),
            factors=None,
        )

    @property
    def code(self) -> Any:
        own = type(self), self.depth, self.width, self.shape
        return own if type(self) is DeepFactorization else self

    @property
    def homogeneity(self) -> int:
        return self.depth

    def start(self, dimension: int) -> Array:
        rows, columns = self.shape_for(dimension)
        if self.factors is not None:
            return np.concatenate([factor.ravel() for factor in self.factors])
        assert self.alpha is not None
        count = (rows + columns) * self.width + (self.depth - 2) * self.width**2
        return self.alpha * np.random.default_rng(self.seed).standard_normal(count)

    def layers(self, parameters: Array) -> list[Array]:
        """W_1, ..., W_depth."""
        inner = (self.depth - 2) * self.width**2
        outer = (parameters.size - inner) // self.width  # rows + columns
        rows = outer // 2 if self.shape is None else self.shape[0]
        ends = np.cumsum([rows * self.width] + [self.width**2] * (self.depth - 2)).tolist()
        pieces = [parameters[a:b] for a, b in zip([0, *ends], [*ends, None], strict=True)]
        layers = [piece.reshape(-1, self.width) for piece in pieces[:-1]]
        return [*layers, pieces[-1].reshape(self.width, -1)]

    def matrix(self, parameters: Array) -> Array:
        first, *rest = self.layers(parameters)
        for layer in rest:
            first = first @ layer
        return first

    def slope(self, parameters: Array, weights: Array) -> Array:
        layers = self.layers(parameters)
        ahead = [np.eye(len(layers[0]))]  # W_1 ... W_(l-1)
        for layer in layers[:-1]:
            ahead.append(ahead[-1] @ layer)
        slopes, behind = [], weights.T  # W_(l+1) ... W_L weights^T
        for before, layer in zip(reversed(ahead), reversed(layers), strict=True):
            slopes.append((behind @ before).T.ravel())
            behind = layer @ behind
        return np.concatenate(slopes[::-1])


def _layers(factors: object) -> tuple[Array, ...]:
    """The checked factors of a deep product: (rows x width), (width x width), (width x columns)."""
    if not isinstance(factors, tuple | list) or len(factors) < 2:
        raise Invalid("factors must be two arrays or more, W_1 to W_depth")
    layers = tuple(
        finite_array(f"factor {place}", factor, ndim=2) for place, factor in enumerate(factors, 1)
    )
    width = layers[0].shape[1]
    inner = [layer.shape for layer in layers[1:-1]]
    if any(shape != (width, width) for shape in inner) or len(layers[-1]) != width:
        shapes = ", ".join(str(layer.shape) for layer in layers)
        raise Invalid(f"the factors must share one inner dimension, got shapes {shapes}")
    return layers
