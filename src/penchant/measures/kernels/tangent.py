"""Tangent kernels of any model, and the predictor of a frozen one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import (
    Array,
    finite_array,
    integer,
    one_of,
    plain_array,
    positive,
    weakly_held,
)
from penchant.door import CALLER, Invalid, door
from penchant.measures.kernels.blocks import (
    Gradients,
    ModelGradients,
    blocked_kernel,
    grouped_kernels,
)
from penchant.measures.kernels.gradients import PRECISIONS, FunctionGradients
from penchant.measures.kernels.infinite import InfiniteKernel
from penchant.measures.kernels.inputs import Packed, several
from penchant.measures.torch.gradients import TorchGradients
from penchant.measures.torch.module import TorchFunction, count_outputs, torch_inputs
from penchant.models.model import Model

MEMORY = 2**30  # the default number of bytes
OUTPUTS = ("full", "mean")


def arguments(
    precision: str | None, model: Any, params: Any, *arrays: Any, least: int = 1
) -> tuple[Any, ...]:
    """(model, params, *arrays); the first `least` arrays are required.

    A torch module becomes a TorchFunction; without a mapping of its parameters the arrays begin
    one place earlier.
    """
    torch = sys.modules.get("torch")  # a module of torch cannot exist before torch is imported
    if torch is not None and isinstance(model, torch.nn.Module):
        if precision is not None:
            one_of("precision", precision, PRECISIONS)
        kinds = {"double": torch.float64, "single": torch.float32}
        model = TorchFunction(model, kinds.get(precision or ""))
        if params is not None and not _is_named(model, params):
            params, arrays = None, _shifted(params, arrays)
        call = f"{CALLER}(module, {', '.join(('x', 'y')[:least])})"
    elif isinstance(model, InfiniteKernel):  # it has no parameters
        params, arrays = None, arrays if params is None else _shifted(params, arrays)
        call = f"{CALLER}(kernel, {', '.join(('x', 'y')[:least])})"
    else:
        call = (
            f"{CALLER}(model, parameters, {', '.join(('x', 'y')[:least])}); only a torch.nn.Module "
            "(which needs torch: pip install 'penchant[torch]') brings its parameters along"
        )
    if any(array is None for array in arrays[:least]):
        raise Invalid(f"an array is missing; call {call}")
    if several(arrays[0]) and callable(model) and not isinstance(model, TorchFunction):
        model = Packed(model, arrays[0])
    return model, params, *arrays


def _is_named(model: TorchFunction, given: Any) -> bool:
    """True if `given` maps names of parameters, and not names of inputs."""
    named = {name for name, _ in model.module.named_parameters()}
    return isinstance(given, Mapping) and (not given or any(name in named for name in given))


def _shifted(first: Any, arrays: tuple[Any, ...]) -> tuple[Any, ...]:
    """`first` and the given arrays, filled up with None."""
    given = (first, *(array for array in arrays if array is not None))
    if len(given) > len(arrays):
        raise Invalid(
            f"parameters of a torch module must be a mapping of names to arrays, or left "
            f"out, got {type(first).__name__}"
        )
    return given + (None,) * (len(arrays) - len(given))


def samples(name: str, x: ArrayLike, model: Any) -> Any:
    """One sample per row; for a JAX function integers stay integers, as they may be tokens."""
    if isinstance(model, TorchFunction):
        return torch_inputs(model, name, x)
    if isinstance(model, Packed):
        return model.packed(name, x)
    if several(x):
        raise Invalid(f"{name} must be one array, like the first inputs")
    array = plain_array(name, x)
    if array.ndim < 1:
        raise Invalid(f"{name} must hold one sample per row, got a single number")
    checked = finite_array(name, array, ndim=array.ndim)
    return checked if isinstance(model, Model) else array


def alike(x: Any, x2: Any) -> Any:
    """`x2` in the common dtype of both; its samples must have the shape of those of `x`."""
    if x.shape[1:] != x2.shape[1:]:
        shapes = f"{tuple(x.shape[1:])} and {tuple(x2.shape[1:])}"
        raise Invalid(f"samples of x and x2 must have the same shape, got {shapes}")
    if not isinstance(x2, np.ndarray):
        return x2
    return x2.astype(np.result_type(x, x2), copy=False)


def checked_outputs(outputs: str | int | None) -> str | int | None:
    """`outputs`, which must be a known word, an index or None."""
    if isinstance(outputs, str):
        return one_of("outputs", outputs, OUTPUTS)
    return None if outputs is None else integer("outputs", outputs, least=0)


def gradients_of(
    model: Any,
    params: Any,
    x: Any,
    outputs: str | int | None,
    precision: str | None,
    factored: bool = True,
) -> Gradients:
    """Gradients of a Model, a JAX function or a TorchFunction at `params`, checked on `x`."""
    outputs = checked_outputs(outputs)
    if isinstance(model, InfiniteKernel):
        raise Invalid("an InfiniteKernel has no gradients of its own; call it: kernel(X)")
    if isinstance(model, TorchFunction):
        count = count_outputs(model, "x", x, outputs)
        index = outputs if isinstance(outputs, int) else None
        gradients = TorchGradients(model, x, count, index, factored)
        gradients.move(model.parameters() if params is None else params)  # copies
        return gradients
    if isinstance(model, Model):
        if isinstance(outputs, int) and outputs > 0:
            raise Invalid(f"a Model has one output, got outputs={outputs}")
        return ModelGradients(model, finite_array("parameters", params, ndim=1))
    if not callable(model):
        raise Invalid(
            f"model must be a Model, a JAX function f(params, x) or a torch.nn.Module "
            f"(which needs torch: pip install 'penchant[torch]'), got {type(model).__name__}"
        )
    return FunctionGradients(
        weakly_held(model), params, x, outputs=outputs, precision=precision, factored=factored
    )


@overload
def tangent_kernel(
    model: Model | Callable[[Any, Any], Any],
    parameters: Any = None,
    x: ArrayLike | None = None,
    x2: ArrayLike | None = None,
    *,
    outputs: str | int | None = None,
    layers: Literal[False] = False,
    memory: float = MEMORY,
    precision: str | None = None,
) -> Array: ...


@overload
def tangent_kernel(
    model: Model | Callable[[Any, Any], Any],
    parameters: Any = None,
    x: ArrayLike | None = None,
    x2: ArrayLike | None = None,
    *,
    outputs: str | int | None = None,
    layers: bool | Callable[[str], str],
    memory: float = MEMORY,
    precision: str | None = None,
) -> Array | dict[str, Array]: ...


@door
def tangent_kernel(
    model: Model | Callable[[Any, Any], Any],
    parameters: Any = None,
    x: ArrayLike | None = None,
    x2: ArrayLike | None = None,
    *,
    outputs: str | int | None = None,
    layers: bool | Callable[[str], str] = False,
    memory: float = MEMORY,
    precision: str | None = None,
) -> Array | dict[str, Array]:
    """K(x, x2) = <grad_w f(w, x), grad_w f(w, x2)> at w = `parameters`, one row per sample of `x`.

    Parameters
    ----------
    model
        A Model with flat parameters, or any JAX function f(parameters, x) with a pytree of
        parameters, in which rows of `x` do not influence one another. A torch.nn.Module is used
        in eval mode, with its own parameters: tangent_kernel(module, x) or
        tangent_kernel(module, x, x2); a mapping of names to other parameters may precede `x`.
        The gradients of one of its samples are compared with plain autograd.
    parameters
        The parameters.
    x
        The samples, one per row. A mapping or a tuple of arrays, each with a row per sample, is
        passed to the model unchanged (to a torch module by name or by position).
    x2
        Other samples, `x` itself by default.
    outputs
        For a function that returns C numbers per row: "mean" is (1/C) sum_c <grad f_c(x), grad
        f_c(x2)>, an index is the kernel of this output alone, and "full" is that of all pairs of
        outputs, an array (N, C, N2, C).
    layers
        True returns a kernel for every parameter array, from its own gradients; their sum is the
        whole kernel. A function of the name of an array returns the name of its layer, such as
        `lambda name: name.split(".")[0]`.
    memory
        The bytes that the computation may use (see `penchant.measures.kernels.blocks`).
    precision
        "single" or "double", by default that of the parameters; the kernel is always summed in
        float64.

    Returns
    -------
    array or dict
        The kernel, or with `layers` the kernels by the names of the layers.

    References
    ----------
    .. [1] Jacot et al. (2018), Neural Tangent Kernel: Convergence and Generalization in Neural
       Networks.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> def f(w, x):
    ...     return x @ w**2
    >>> penchant.measures.tangent_kernel(f, np.array([1.0, 2.0]), np.eye(2)).round(4)
    array([[ 4.,  0.],
           [ 0., 16.]])
    >>> def two(w, x):
    ...     return x @ w["first"] * w["second"]
    >>> w = {"first": np.array([1.0, 2.0]), "second": np.array(3.0)}
    >>> parts = penchant.measures.tangent_kernel(two, w, np.eye(2), layers=True)
    >>> {name: np.diag(kernel).round(4).tolist() for name, kernel in parts.items()}
    {'first': [9.0, 9.0], 'second': [1.0, 4.0]}
    """
    memory = positive("memory", memory)
    model, parameters, x, x2 = arguments(precision, model, parameters, x, x2)
    rows = samples("x", x, model)
    others = None if x2 is None else alike(rows, samples("x2", x2, model))
    gradients = gradients_of(model, parameters, rows, outputs, precision)
    full = outputs == "full"
    if layers is False:
        return blocked_kernel(gradients, rows, others, full, memory)
    named = [_layer(name, layers) for name in gradients.names.values()]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(named))}
    groups = {key: numbers[name] for key, name in zip(gradients.names, named, strict=True)}
    kernels = grouped_kernels(gradients, rows, others, full, memory, groups)
    return dict(zip(numbers, kernels, strict=True))


def _layer(name: str, layers: Any) -> str:
    """The layer of a parameter array."""
    if not (layers is True or callable(layers)):
        raise Invalid(
            f"layers must be True, False or a function of the name of a parameter array, "
            f"got {layers!r}"
        )
    layer = name if layers is True else layers(name)
    if not isinstance(layer, str):
        raise Invalid(f"layers must return a name, got {layer!r} for {name}")
    return layer
