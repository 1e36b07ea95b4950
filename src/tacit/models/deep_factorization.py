"""A matrix as a product of any number of factors, M = W_1 W_2 ... W_L."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tacit.arguments import Array, integer
from tacit.models.matrix import MatrixModel, Shape, checked_shape, scale
from tacit.records import Record

WHO = "DeepFactorization"


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

    Examples
    --------
    >>> import tacit
    >>> model = tacit.DeepFactorization(depth=3, width=4, alpha=0.1)
    >>> model.matrix(model.start(dimension=4)).shape
    (2, 2)
    """

    depth: int
    width: int
    alpha: float
    log_alpha: float
    seed: int
    shape: Shape | None

    def __init__(
        self,
        depth: int,
        width: int,
        *,
        alpha: float | None = None,
        log_alpha: float | None = None,
        shape: Shape | None = None,
        seed: int = 0,
    ) -> None:
        alpha, log_alpha = scale(WHO, alpha, log_alpha)
        fields = {
            "depth": integer(WHO, "depth", depth, least=2),
            "width": integer(WHO, "width", width, least=1),
            "alpha": alpha,
            "log_alpha": log_alpha,
            "seed": integer(WHO, "seed", seed, least=0),
            "shape": checked_shape(WHO, shape),
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @property
    def homogeneity(self) -> int:
        return self.depth

    def start(self, dimension: int) -> Array:
        rows, columns = self.shape_for(dimension)
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

    def describe(self) -> dict[str, Any]:
        names = ("depth", "width", "alpha", "log_alpha", "seed", "shape")
        return {"model": WHO} | {name: getattr(self, name) for name in names}
