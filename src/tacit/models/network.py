"""A small two-layer network, f(x) = sum_j v_j sigma(<w_j, x>), as a model."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tacit.arguments import Array, integer, log_scale, one_of
from tacit.models.function import FunctionModel

WHO = "two_layer"


class Activation(NamedTuple):
    """sigma on JAX arrays, and D with sigma(c z) = c^D sigma(z), None where there is none."""

    function: Callable[[Any], Any]
    degree: int | None


def _relu(z: Any) -> Any:
    import jax

    return jax.nn.relu(z)  # its derivative at zero is zero


def _softplus(z: Any) -> Any:
    import jax

    return jax.nn.softplus(z)


def _tanh(z: Any) -> Any:
    import jax.numpy as jnp

    return jnp.tanh(z)


ACTIVATIONS = {
    "linear": Activation(lambda z: z, 1),
    "quadratic": Activation(lambda z: z**2, 2),
    "cubic": Activation(lambda z: z**3, 3),
    "relu": Activation(_relu, 1),
    "squared_relu": Activation(lambda z: _relu(z) ** 2, 2),
    "softplus": Activation(_softplus, None),
    "tanh": Activation(_tanh, None),
}


def two_layer(
    width: int,
    *,
    alpha: float | None = None,
    log_alpha: float | None = None,
    activation: str = "relu",
    bias: bool = False,
    seed: int = 0,
) -> FunctionModel:
    """f(x) = sum_j v_j sigma(<w_j, x>) from alpha times Gaussian weights, flat as (W, v).

    At alpha = 1 the entries of W have variance 1/features and those of v variance 1/width, so
    that f is of order one.

    Parameters
    ----------
    width
        The number of hidden units.
    alpha
        The scale of the start; give exactly one of the scales.
    log_alpha
        The natural logarithm of alpha, as far from 0 as you like.
    activation
        sigma: "linear", "quadratic", "cubic", "relu", "squared_relu", "softplus" or "tanh".
    bias
        True is W's net of appendix B.1, sigma(<w_j, x> + b_j) and an output bias c, flat as (W,
        v, b, c) with b = c = 0 at the start; c costs the homogeneity.
    seed
        The seed of all random numbers.

    Returns
    -------
    FunctionModel
        The net.

    Examples
    --------
    >>> import tacit
    >>> net = tacit.two_layer(width=3, alpha=1.0)
    >>> net.start(dimension=2).shape, net.homogeneity
    ((9,), 2)
    """
    width, seed = integer(WHO, "width", width, least=1), integer(WHO, "seed", seed, least=0)
    one_of(WHO, "activation", activation, ACTIVATIONS)
    scale = float(np.exp(log_scale(WHO, 1, alpha, log_alpha, None)))
    degree = ACTIVATIONS[activation].degree
    return FunctionModel(
        functools.partial(_network, width=width, activation=activation, bias=bias),
        functools.partial(_start, width=width, scale=scale, seed=seed, bias=bias),
        homogeneity=None if bias or degree is None else degree + 1,
        name=WHO,
        details={
            "width": width,
            "alpha": scale,
            "activation": activation,
            "seed": seed,
            "bias": bool(bias),
        },
    )


def _start(dimension: int, *, width: int, scale: float, seed: int, bias: bool) -> Array:
    rng = np.random.default_rng(seed)
    inner = rng.standard_normal(width * dimension) / np.sqrt(dimension)
    outer = rng.standard_normal(width) / np.sqrt(width)
    return np.concatenate([scale * inner, scale * outer, np.zeros(width + 1 if bias else 0)])


def _network(parameters: Any, X: Any, *, width: int, activation: str, bias: bool) -> Any:
    count = width * X.shape[1]
    inner, outer = parameters[:count].reshape(width, -1), parameters[count : count + width]
    sigma = ACTIVATIONS[activation].function
    if not bias:
        return sigma(X @ inner.T) @ outer
    shift, offset = parameters[count + width : -1], parameters[-1]
    return sigma(X @ inner.T + shift) @ outer + offset
