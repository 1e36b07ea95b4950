"""Fully connected ReLU networks without biases, of any depth.

They are the nets of Woodworth et al. 2020, appendix B.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from penchant.arguments import Array, integer, integers, log_scale, one_of, positive
from penchant.description import with_recipe
from penchant.door import Invalid, door
from penchant.lazy import jax
from penchant.models.function import FunctionModel

STARTS = ("he_uniform", "gaussian")


def he_weights(
    rng: np.random.Generator, kind: str, inputs: int, shape: int | tuple[int, ...]
) -> Array:
    """Weights of a layer with so many inputs per unit, of one of the kinds in STARTS."""
    if kind == "gaussian":
        return rng.normal(0.0, math.sqrt(2 / inputs), shape)
    bound = math.sqrt(6 / inputs)  # variance bound^2 / 3 = 2 / inputs
    return rng.uniform(-bound, bound, shape)


def layer_factors(depth: int, layers: Sequence[float] | None) -> tuple[float, ...]:
    """One positive factor per layer; ones by default."""
    if layers is None:
        return (1.0,) * depth
    factors = tuple(positive("layers", factor) for factor in np.atleast_1d(layers).tolist())
    if len(factors) != depth:
        raise Invalid(f"layers must have one factor per layer ({depth}), got {len(factors)}")
    return factors


WHO = "relu_net"


@dataclasses.dataclass(frozen=True)
class ReluFunction:
    """f(parameters, X) = W_D relu(W_(D-1) ... relu(W_1 x)), or a difference of two of them.

    Equal ones are equal, so that whatever is compiled for one serves every start.
    """

    depth: int
    width: int
    unbiased: bool

    def shapes(self, features: int) -> list[tuple[int, int]]:
        """Rows and columns of W_1 to W_D."""
        sizes = [features, *[self.width] * (self.depth - 1), 1]
        return list(zip(sizes[1:], sizes[:-1], strict=True))

    def __call__(self, parameters: Any, X: Any) -> Any:
        outputs = self._sums(self._weights(parameters, X.shape[1]), X)[-1][..., 0]
        return outputs[0] - outputs[1] if self.unbiased else outputs[0]

    def factors(self, parameters: Any, X: Any) -> list[tuple[Any, Any]]:
        """(a, b) per layer: the derivative of f(x_n) in its W is the outer product of b_n and a_n.

        Both have a first axis for the copies of the net, which are two if it is unbiased. They hold
        the same as the Jacobian in as many numbers as there are units, not weights.
        """
        weights = self._weights(parameters, X.shape[1])
        sums = self._sums(weights, X)
        sign = np.array([1.0, -1.0])[: len(sums[-1]), None, None]
        slopes = [sign + 0 * sums[-1]]
        for W, below in zip(weights[:0:-1], sums[-2::-1], strict=True):
            slopes.insert(0, (slopes[0] @ W) * (below > 0))
        inputs = [0 * sums[0][..., :1] + X, *(below * (below > 0) for below in sums[:-1])]
        return list(zip(inputs, slopes, strict=True))

    def _weights(self, parameters: Any, features: int) -> list[Any]:
        """W of every layer, with a first axis for the copies of the net."""
        table = parameters.reshape(2 if self.unbiased else 1, -1)
        shapes = self.shapes(features)
        ends = np.cumsum([rows * columns for rows, columns in shapes])
        return [
            table[:, end - rows * columns : end].reshape(-1, rows, columns)
            for end, (rows, columns) in zip(ends, shapes, strict=True)
        ]

    def _sums(self, weights: list[Any], X: Any) -> list[Any]:
        """What the units of every layer add up, before their ReLU."""
        sums: list[Any] = []
        for W in weights:
            below = sums[-1] if sums else X
            if sums:  # the derivative of relu at zero is zero
                plain = isinstance(below, np.ndarray)
                below = np.maximum(below, 0.0) if plain else jax.nn.relu(below)
            sums.append(below @ W.swapaxes(1, 2))
        return sums


@with_recipe
@door
def relu_net(
    depth: int,
    width: int,
    *,
    alpha: float | None = None,
    log_alpha: float | None = None,
    start: str = "he_uniform",
    seed: int = 0,
    layers: Sequence[float] | None = None,
    unbiased: bool = False,
) -> FunctionModel:
    """A ReLU net of `depth` weight matrices and `width` units per hidden layer, flat as (W_1,
    ...).

    It starts from alpha times weights of variance 2/inputs of their layer.

    Parameters
    ----------
    depth
        The number of weight matrices.
    width
        The units per hidden layer.
    alpha
        The scale of the start; give exactly one of the scales.
    log_alpha
        The natural logarithm of alpha, as far from 0 as you like.
    start
        Uniform ("he_uniform") or Gaussian ("gaussian") weights.
    seed
        The seed of all random numbers.
    layers
        Multiplies the start of every layer by a number of its own; if their product is one, the
        outputs stay as they are.
    unbiased
        The trick of Chizat et al. 2019: the difference of two nets with equal starts, flat one
        after the other, whose output begins at zero.

    Returns
    -------
    FunctionModel
        The net.

    References
    ----------
    .. [1] Woodworth et al. (2020), Kernel and Rich Regimes in Overparametrized Models.
    .. [2] Chizat et al. (2019), On Lazy Training in Differentiable Programming.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> net = penchant.models.relu_net(depth=2, width=3, alpha=1.0, unbiased=True)
    >>> net.homogeneity, net.predict(net.start(dimension=2), np.ones((1, 2)))
    (2, array([0.]))
    """
    depth, width = integers(depth=depth, width=width)
    seed = integer("seed", seed, least=0)
    one_of("start", start, STARTS)
    scale = math.exp(log_scale(depth, alpha, log_alpha))
    factors = layer_factors(depth, layers)
    function = ReluFunction(depth, width, bool(unbiased))
    begin = functools.partial(
        _start, function=function, kind=start, scale=scale, seed=seed, factors=factors
    )
    return FunctionModel(function, begin, homogeneity=depth, name=WHO)


def _start(
    dimension: int,
    *,
    function: ReluFunction,
    kind: str,
    scale: float,
    seed: int,
    factors: tuple[float, ...],
) -> Array:
    rng = np.random.default_rng(seed)
    parts = []
    for (rows, columns), factor in zip(function.shapes(dimension), factors, strict=True):
        parts.append(scale * factor * he_weights(rng, kind, columns, rows * columns))
    flat = np.concatenate(parts)
    return np.tile(flat, 2) if function.unbiased else flat
