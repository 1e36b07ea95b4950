"""A two-layer ReLU net with several outputs, asked for one of them at a time."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tacit.arguments import Array, integer, log_scale
from tacit.models.function import FunctionModel
from tacit.models.network import two_layer

WHO = "student"


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
    >>> import tacit
    >>> net = tacit.student(width=3, outputs=2, alpha=1.0)
    >>> net.start(dimension=5).shape
    (18,)
    """
    width, outputs = (
        integer(WHO, "width", width, least=1),
        integer(WHO, "outputs", outputs, least=1),
    )
    seed = integer(WHO, "seed", seed, least=0)
    scale = float(np.exp(log_scale(WHO, 1, alpha, log_alpha, None)))
    if outputs == 1:
        return two_layer(width, alpha=scale, seed=seed)
    sizes = {"width": width, "outputs": outputs}
    return FunctionModel(
        functools.partial(_answer, **sizes),
        functools.partial(_start, **sizes, scale=scale, seed=seed),
        homogeneity=2,
        name=WHO,
        details={**sizes, "alpha": scale, "seed": seed},
    )


def _start(dimension: int, *, width: int, outputs: int, scale: float, seed: int) -> Array:
    if dimension < 2:
        raise ValueError(
            f"{WHO}: {outputs} outputs need rows (x, k) of at least 2 numbers, got {dimension}; "
            "take outputs=1 for rows x"
        )
    rng, inputs = np.random.default_rng(seed), dimension - 1
    inner = rng.standard_normal(width * inputs) / np.sqrt(inputs)
    outer = rng.standard_normal(outputs * width) / np.sqrt(width)
    return scale * np.concatenate([inner, outer])


def _answer(parameters: Any, X: Any, *, width: int, outputs: int) -> Any:
    import jax

    x, which = X[:, :-1], X[:, -1].astype(int)  # whole numbers: nothing to differentiate
    count = width * x.shape[1]
    inner, outer = parameters[:count].reshape(width, -1), parameters[count:]
    hidden = jax.nn.relu(x @ inner.T)  # its derivative at zero is zero
    return (hidden * outer.reshape(outputs, width)[which]).sum(axis=1)
