"""What callers of tangent kernels give, checked at the door: samples, outputs, a model."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tacit.arguments import finite_array, integer, one_of
from tacit.measures.kernels.blocks import Gradients, ModelGradients
from tacit.measures.kernels.gradients import PRECISIONS, FunctionGradients
from tacit.measures.torch.checks import count_outputs, torch_inputs
from tacit.measures.torch.gradients import TorchGradients
from tacit.measures.torch.module import TorchFunction
from tacit.models.model import Model

MEMORY = 2**30  # bytes, unless told otherwise
OUTPUTS = ("full", "mean")


def arguments(
    who: str, precision: str | None, model: Any, params: Any, *arrays: Any, least: int = 1
) -> tuple[Any, ...]:
    """(model, params, *arrays), of which the first `least` arrays must be there.

    A torch module becomes a TorchFunction, whose parameters are its own where no mapping of names
    to arrays is given for them; then the arrays begin one place earlier.
    """
    torch = sys.modules.get("torch")  # a module of torch cannot exist before torch is imported
    if torch is not None and isinstance(model, torch.nn.Module):
        if precision is not None:
            one_of(who, "precision", precision, PRECISIONS)
        kinds = {"double": torch.float64, "single": torch.float32}
        model = TorchFunction(who, model, kinds.get(precision or ""))
        if params is not None and not isinstance(params, Mapping):
            params, arrays = None, _shifted(who, params, arrays)
        call = f"{who}(module, {', '.join(('x', 'y')[:least])})"
    else:
        call = (
            f"{who}(model, parameters, {', '.join(('x', 'y')[:least])}); only a torch.nn.Module "
            "(which needs torch: pip install 'tacit[torch]') brings its parameters along"
        )
    if any(array is None for array in arrays[:least]):
        raise ValueError(f"{who}: an array is missing; call {call}")
    return model, params, *arrays


def _shifted(who: str, first: Any, arrays: tuple[Any, ...]) -> tuple[Any, ...]:
    """`first` and the arrays that are there, filled up with None."""
    found = (first, *(array for array in arrays if array is not None))
    if len(found) > len(arrays):
        raise ValueError(
            f"{who}: parameters of a torch module must be a mapping of names to arrays, or left "
            f"out, got {type(first).__name__}"
        )
    return found + (None,) * (len(arrays) - len(found))


def samples(who: str, name: str, x: ArrayLike, model: Any) -> Any:
    """One sample per row; for a JAX function integers stay integers, they may be tokens."""
    if isinstance(model, TorchFunction):
        return torch_inputs(model, name, x)
    array = np.asarray(x)
    if array.ndim < 1:
        raise ValueError(f"{who}: {name} must hold one sample per row, got a single number")
    checked = finite_array(who, name, array, ndim=array.ndim)
    return checked if isinstance(model, Model) else array


def alike(who: str, x: Any, x2: Any) -> Any:
    """`x2` in the dtype that both have in common, if its samples have the shape of those of `x`."""
    if x.shape[1:] != x2.shape[1:]:
        shapes = f"{tuple(x.shape[1:])} and {tuple(x2.shape[1:])}"
        raise ValueError(f"{who}: samples of x and x2 must have one shape, got {shapes}")
    if not isinstance(x2, np.ndarray):
        return x2
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
    """Gradients of a Model, a JAX function or a TorchFunction, checked, at `params`; `x` shows what
    a sample looks like.
    """
    outputs = asked_for(who, outputs)
    if isinstance(model, TorchFunction):
        count = count_outputs(model, "x", x, outputs)
        index = outputs if isinstance(outputs, int) else None
        gradients = TorchGradients(model, x, count, index, factored)
        gradients.move(model.parameters() if params is None else params)  # copies
        return gradients
    if isinstance(model, Model):
        if isinstance(outputs, int) and outputs > 0:
            raise ValueError(f"{who}: a Model has one output, got outputs={outputs}")
        return ModelGradients(model, finite_array(who, "parameters", params, ndim=1))
    if not callable(model):
        raise ValueError(
            f"{who}: model must be a Model, a JAX function f(params, x) or a torch.nn.Module "
            f"(which needs torch: pip install 'tacit[torch]'), got {type(model).__name__}"
        )
    return FunctionGradients(
        who, model, params, x, outputs=outputs, precision=precision, factored=factored
    )
