"""Tangent kernels (W section 3): of any model, how far one moved, where a frozen one leads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tacit.arguments import Array, finite_array, regression_data
from tacit.models.model import Model, Separable
from tacit.models.tangent import kernel_distance
from tacit.precision import double_precision
from tacit.probes.kernel_machines import kernel_interpolant

__all__ = ["kernel_distance", "kernel_predictor", "tangent_kernel"]


def tangent_kernel(
    model: Model | Callable[[Any, Any], Any], params: Any, x: ArrayLike, x2: ArrayLike | None = None
) -> Array:
    """K(x, x2) = <grad_w f(w, x), grad_w f(w, x2)> at w = `params`, one row per sample of `x`.

    `model` is a Model with flat parameters, or any JAX function f(params, x) that returns one
    number per row of `x`, with a pytree of parameters. `x2` is `x` itself by default.
    """
    who = "tangent_kernel"
    rows = _features(who, model, params, _inputs(who, "x", x))
    others = rows if x2 is None else _features(who, model, params, _inputs(who, "x2", x2))
    return rows @ others.T


def kernel_predictor(model: Separable, X: ArrayLike, y: ArrayLike) -> Array:
    """The beta that fits X beta = y nearest to the start in the RKHS norm of the start's kernel.

    It is where the flow of the model linearised at its start ends. Data that no beta fits are
    fitted in the least-squares sense.
    """
    X, y = regression_data("kernel_predictor", X, y)
    if not isinstance(model, Separable):
        raise ValueError(
            "kernel_predictor: the model must have a linear predictor with separate coordinates, "
            f"such as DiagonalNet, got {type(model).__name__}"
        )
    beta = kernel_interpolant(model, X, y).predictor
    assert beta is not None
    return beta


def _inputs(who: str, name: str, x: ArrayLike) -> Array:
    array = np.asarray(x)
    if array.ndim < 1:
        raise ValueError(f"{who}: {name} must hold one sample per row, got a single number")
    return finite_array(who, name, x, ndim=array.ndim)


def _features(who: str, model: Any, params: Any, x: Array) -> Array:
    """grad_w f(w, x_n), one flat row per sample."""
    if isinstance(model, Model):
        return model.jacobian(finite_array(who, "params", params, ndim=1), x)
    if not callable(model):
        raise ValueError(
            f"{who}: model must be a Model or a JAX function f(params, x), "
            f"got {type(model).__name__}"
        )
    import jax

    with double_precision():
        outputs = jax.eval_shape(model, params, x)
        if getattr(outputs, "shape", None) != (len(x),):
            raise ValueError(
                f"{who}: f(params, x) must return one number per row of x, "
                f"got shape {getattr(outputs, 'shape', type(outputs).__name__)} for {len(x)} rows"
            )
        leaves = jax.tree.leaves(jax.jacrev(model)(params, x))
    flat = [np.asarray(leaf, dtype=np.float64).reshape(len(x), -1) for leaf in leaves]
    return np.concatenate(flat, axis=1)
