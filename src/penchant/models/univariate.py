"""A ReLU net of one input with its subtracted copy (Woodworth et al. 2020, appendix B.1)."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from penchant.arguments import Array, integer, log_scale, positive
from penchant.description import with_recipe
from penchant.door import door
from penchant.lazy import jax
from penchant.models.function import FunctionModel

WHO = "univariate_relu"


@with_recipe
@door
def univariate_relu(
    width: int,
    *,
    alpha: float | None = None,
    log_alpha: float | None = None,
    scaling: float = 1.0,
    seed: int = 0,
) -> FunctionModel:
    """f(x) = w2 relu(w1 x + b1) + b2 minus a copy of itself, from alpha times a Gaussian start.

    Woodworth et al. 2020, appendix B.1: w1, b1 ~ N(0, 1) and w2 of standard deviation
    sqrt(2 / width). The copy (the unbiasing of Chizat et al. 2019) makes all outputs zero at the
    start. The flat parameters are (w1, w2, b1, b2) of the net, then of its copy.

    Parameters
    ----------
    width
        The number of hidden units.
    alpha
        The scale of the start; give exactly one of the scales.
    log_alpha
        The natural logarithm of alpha, as far from 0 as you like.
    scaling
        Multiplies w1 and b1 and divides w2, which changes no output. The layers are balanced at
        scaling (2 / width)^(1/4).
    seed
        The seed of all random numbers.

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
    >>> net = penchant.models.univariate_relu(width=5, alpha=2.0)
    >>> net.predict(net.start(dimension=1), np.array([[0.3], [1.0]]))
    array([0., 0.])
    """
    width, seed = integer("width", width, least=1), integer("seed", seed, least=0)
    scaling = positive("scaling", scaling)
    scale = float(np.exp(log_scale(1, alpha, log_alpha)))
    begin = functools.partial(_start, width=width, alpha=scale, scaling=scaling, seed=seed)
    return FunctionModel(_doubled, begin, name=WHO)


def _start(dimension: int, *, width: int, alpha: float, scaling: float, seed: int) -> Array:
    if dimension != 1:
        raise ValueError(f"{WHO}: the data must have one feature, got {dimension}; use two_layer()")
    w, b, v = alpha * np.random.default_rng(seed).standard_normal((3, width))
    half = np.concatenate([scaling * w, v * np.sqrt(2 / width) / scaling, scaling * b, [0.0]])
    return np.tile(half, 2)


def _doubled(parameters: Any, X: Any) -> Any:
    half = len(parameters) // 2
    return _net(parameters[:half], X) - _net(parameters[half:], X)


def _net(parameters: Any, X: Any) -> Any:
    w, v, b = parameters[:-1].reshape(3, -1)
    return jax.nn.relu(X * w + b) @ v + parameters[-1]
