"""What callers of tangent kernels give, checked at the door: samples, outputs, a model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tacit.arguments import finite_array, integer, one_of
from tacit.models.model import Model
from tacit.probes.blocked_kernels import Gradients, ModelGradients
from tacit.probes.function_gradients import FunctionGradients

MEMORY = 2**30  # bytes, unless told otherwise
OUTPUTS = ("full", "mean")


def samples(who: str, name: str, x: ArrayLike, model: Any) -> Any:
    """One sample per row; for a JAX function integers stay integers, they may be tokens."""
    array = np.asarray(x)
    if array.ndim < 1:
        raise ValueError(f"{who}: {name} must hold one sample per row, got a single number")
    checked = finite_array(who, name, array, ndim=array.ndim)
    return checked if isinstance(model, Model) else array


def alike(who: str, x: Any, x2: Any) -> Any:
    """`x2` in the dtype that both have in common, if its samples have the shape of those of `x`."""
    if x.shape[1:] != x2.shape[1:]:
        raise ValueError(
            f"{who}: samples of x and x2 must have one shape, got {x.shape[1:]} and {x2.shape[1:]}"
        )
    return x2.astype(np.result_type(x, x2), copy=False)


def asked_for(who: str, outputs: str | int | None) -> str | int | None:
    """`outputs` if it is a known word, an index or None."""
    if isinstance(outputs, str):
        return one_of(who, "outputs", outputs, OUTPUTS)
    return None if outputs is None else integer(who, "outputs", outputs, least=0)


def gradients_of(
    who: str,
    model: Any,
    params: Any,
    x: Any,
    outputs: str | int | None,
    precision: str | None,
    factored: bool = True,
) -> Gradients:
    """Gradients of a Model or a JAX function, checked; `x` shows what a sample looks like."""
    outputs = asked_for(who, outputs)
    if isinstance(model, Model):
        if isinstance(outputs, int) and outputs > 0:
            raise ValueError(f"{who}: a Model has one output, got outputs={outputs}")
        return ModelGradients(model, finite_array(who, "params", params, ndim=1))
    if not callable(model):
        raise ValueError(
            f"{who}: model must be a Model or a JAX function f(params, x), "
            f"got {type(model).__name__}"
        )
    return FunctionGradients(
        who, model, params, x, outputs=outputs, precision=precision, factored=factored
    )
