"""Small two-layer networks, f(x) = sum_j v_j sigma(<w_j, x>), as models; and their rescalings."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from penchant.arguments import Array, finite_array, integer, integers, log_scale, one_of, positive
from penchant.description import with_recipe
from penchant.door import Invalid, door
from penchant.lazy import jax, jnp
from penchant.models.function import FunctionModel


class Activation(NamedTuple):
    """sigma on JAX arrays, and D with sigma(c z) = c^D sigma(z), None where there is none."""

    function: Callable[[Any], Any]
    degree: int | None


ACTIVATIONS = {  # the derivative of relu at zero is zero
    "linear": Activation(lambda z: z, 1),
    "quadratic": Activation(lambda z: z**2, 2),
    "cubic": Activation(lambda z: z**3, 3),
    "relu": Activation(lambda z: jax.nn.relu(z), 1),
    "squared_relu": Activation(lambda z: jax.nn.relu(z) ** 2, 2),
    "softplus": Activation(lambda z: jax.nn.softplus(z), None),
    "tanh": Activation(lambda z: jnp.tanh(z), None),
    "erf": Activation(lambda z: jax.scipy.special.erf(z), None),
}


@with_recipe
@door
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
        sigma: "linear", "quadratic", "cubic", "relu", "squared_relu", "softplus", "tanh" or
        "erf".
    bias
        True is the net of Woodworth et al. 2020, appendix B.1, sigma(<w_j, x> + b_j) and an output
        bias c, flat as (W, v, b, c) with b = c = 0 at the start; with c the net is not
        homogeneous.
    seed
        The seed of all random numbers.

    Returns
    -------
    FunctionModel
        The net.

    References
    ----------
    .. [1] Woodworth et al. (2020), Kernel and Rich Regimes in Overparametrized Models.

    Examples
    --------
    >>> import penchant
    >>> net = penchant.models.two_layer(width=3, alpha=1.0)
    >>> net.start(dimension=2).shape, net.homogeneity
    ((9,), 2)
    """
    width = integer("width", width, least=1)
    seed = integer("seed", seed, least=0)
    one_of("activation", activation, ACTIVATIONS)
    scale = float(np.exp(log_scale(1, alpha, log_alpha)))
    degree = ACTIVATIONS[activation].degree
    return FunctionModel(
        TwoLayerFunction(width, activation, bool(bias)),
        functools.partial(_start, width=width, scale=scale, seed=seed, bias=bias),
        homogeneity=None if bias or degree is None else degree + 1,
        name="two_layer",
    )


def _start(dimension: int, *, width: int, scale: float, seed: int, bias: bool) -> Array:
    weights = _gaussian(dimension, width, 1, scale, seed)
    return np.concatenate([weights, np.zeros(width + 1 if bias else 0)])


def _gaussian(inputs: int, width: int, outputs: int, scale: float, seed: int) -> Array:
    """The weights of both layers, flat: of variance 1/inputs and 1/width at scale 1."""
    rng = np.random.default_rng(seed)
    inner = rng.standard_normal(width * inputs) / np.sqrt(inputs)
    outer = rng.standard_normal(outputs * width) / np.sqrt(width)
    return scale * np.concatenate([inner, outer])


@dataclasses.dataclass(frozen=True)
class TwoLayerFunction:
    """The net of `two_layer`; equal ones are equal, so that compiled code serves every start."""

    width: int
    activation: str
    bias: bool

    def __call__(self, parameters: Any, X: Any) -> Any:
        width, count = self.width, self.width * X.shape[1]
        inner, outer = parameters[:count].reshape(width, -1), parameters[count : count + width]
        sigma = ACTIVATIONS[self.activation].function
        if not self.bias:
            return sigma(X @ inner.T) @ outer
        shift, offset = parameters[count + width : -1], parameters[-1]
        return sigma(X @ inner.T + shift) @ outer + offset


@with_recipe
@door
def student(
    width: int,
    outputs: int = 1,
    *,
    alpha: float | None = None,
    log_alpha: float | None = None,
    seed: int = 0,
) -> FunctionModel:
    """f(x, k) = sum_j B_kj relu(<A_j, x>) on rows (x, k), without biases, flat as (A, B).

    It learns the rows of `teacher_student`. It starts from alpha times Gaussian weights, of
    variance 1/inputs in A and 1/width in B.

    Parameters
    ----------
    width
        The number of hidden units.
    outputs
        The number of outputs. With one output the rows are x, as in `two_layer`.
    alpha
        The scale of the start; give exactly one of the scales.
    log_alpha
        The natural logarithm of alpha, as far from 0 as you like.
    seed
        The seed of all random numbers.

    Returns
    -------
    FunctionModel
        The net.

    Examples
    --------
    >>> import penchant
    >>> net = penchant.models.student(width=3, outputs=2, alpha=1.0)
    >>> net.start(dimension=5).shape
    (18,)
    """
    width, outputs = integers(width=width, outputs=outputs)
    seed = integer("seed", seed, least=0)
    scale = float(np.exp(log_scale(1, alpha, log_alpha)))
    if outputs == 1:
        return two_layer(width, alpha=scale, seed=seed)
    sizes = {"width": width, "outputs": outputs}
    return FunctionModel(
        StudentFunction(**sizes),
        functools.partial(_student_start, **sizes, scale=scale, seed=seed),
        homogeneity=2,
        name="student",
    )


def _student_start(dimension: int, *, width: int, outputs: int, scale: float, seed: int) -> Array:
    if dimension < 2:
        raise ValueError(
            f"student: {outputs} outputs need rows (x, k) of at least 2 numbers, got {dimension}; "
            "take outputs=1 for rows x"
        )
    return _gaussian(dimension - 1, width, outputs, scale, seed)


@dataclasses.dataclass(frozen=True)
class StudentFunction:
    """The net of `student` with several outputs; equal ones are equal, as for two layers."""

    width: int
    outputs: int

    def __call__(self, parameters: Any, X: Any) -> Any:
        x, which = X[:, :-1], X[:, -1].astype(int)  # whole numbers: nothing to differentiate
        count = self.width * x.shape[1]
        inner, outer = parameters[:count].reshape(self.width, -1), parameters[count:]
        hidden = jax.nn.relu(x @ inner.T)  # its derivative at zero is zero
        return (hidden * outer.reshape(self.outputs, self.width)[which]).sum(axis=1)


@door
def rescale_layers(parameters: Array, inner: int, size: float) -> Array:
    """The parameters (lambda A, B / lambda) that have the norm `size`, the same ReLU net.

    Of the two lambdas that give this norm it is the larger one. The norms of A and B bound `size`
    from below (Notsawo et al. 2025, w(lambda) with one ReLU layer in between).

    Parameters
    ----------
    parameters
        The weights of both layers, flat: those of A, then those of B.
    inner
        The number of weights of A.
    size
        The l2 norm of the result.

    Returns
    -------
    array
        The rescaled parameters, flat.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> penchant.models.rescale_layers(np.array([3.0, 4.0]), inner=1, size=10.0).round(4)
    array([9.9267, 1.2089])
    """
    theta = finite_array("parameters", parameters, ndim=1)
    inner = integer("inner", inner, least=1)
    size = positive("size", size)
    if inner >= theta.size:
        raise Invalid(f"inner must be below the {theta.size} parameters, got {inner}")
    a, b = float(theta[:inner] @ theta[:inner]), float(theta[inner:] @ theta[inner:])
    least = math.sqrt(2 * math.sqrt(a * b))
    if size < least * (1 - 1e-12) or a == 0:
        raise Invalid(
            f"size must be at least {least:.6g}, the least norm of this function's "
            f"rescalings, with inner weights that are not all zero, got {size:g}"
        )
    # a lambda^2 + b / lambda^2 = size^2
    square = (size**2 + math.sqrt(max(size**4 - 4 * a * b, 0.0))) / (2 * a)
    return np.concatenate([theta[:inner] * math.sqrt(square), theta[inner:] / math.sqrt(square)])
