"""What is asked of a torch module and its inputs, checked before any gradient is taken."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.arguments import Array, finite_array
from tacit.measures.kernels.gradients import ALONE, nudge
from tacit.measures.torch.gradients import as_array
from tacit.measures.torch.module import TorchFunction


def count_outputs(function: TorchFunction, name: str, x: Any, asked: str | int | None) -> int:
    """The number of outputs, if they are one row per sample, repeatable and independent.

    `name` is that of the inputs `x` to the caller; None asked for means that there is one output.
    """
    import torch

    rows, who = len(x), function.who
    params = _nudged(function.parameters())  # where an unbiased start is not zero
    with function.quiet(), torch.no_grad():
        found = _tried(function, name, params, x)
        shape = tuple(found.shape)
        if len(shape) not in (1, 2) or shape[0] != rows:
            raise ValueError(
                f"{who}: the model must return one row of numbers per {_one(name)}, got shape "
                f"{shape} for {rows} inputs; wrap it in a module that picks what to look at"
            )
        again = as_array(_tried(function, name, params, x))
        alone = as_array(_tried(function, name, params, x[-1:]))
    first = as_array(found)
    count = first.size // rows
    if isinstance(asked, int) and asked >= count:
        raise ValueError(f"{who}: outputs must be below {count}, their number, got {asked}")
    if asked is None and count > 1:
        raise ValueError(
            f"{who}: the module has {count} outputs; say outputs='mean', 'full' or the index of one"
        )
    _require_alike(who, name, first, again, alone)
    return count


def torch_inputs(function: TorchFunction, name: str, x: Any) -> Any:
    """A detached copy of `x` on the device of the parameters; arrays are sent there."""
    import torch

    who, params = function.who, list(function.parameters().values())
    first, kinds = params[0], {value.dtype for value in params}
    if odd := [kind for kind in kinds if not kind.is_floating_point]:
        raise ValueError(f"{who}: the trained parameters must be real numbers, got {odd[0]}")
    if not isinstance(x, torch.Tensor):
        raw = np.asarray(x)
        if raw.dtype.kind not in "iub":
            raw = finite_array(who, name, raw, ndim=raw.ndim)
        tensor = torch.as_tensor(raw)
        tensor = tensor.to(first.dtype) if tensor.is_floating_point() else tensor
        x = tensor.to(first.device)
    elif function.dtype is not None and x.is_floating_point():
        x = x.to(function.dtype)
    if x.device != first.device:
        raise ValueError(
            f"{who}: got {name} on {x.device} but the model is on {first.device}; pass "
            f"{name}.to({str(first.device)!r})"
        )
    if x.is_floating_point() and x.dtype not in kinds:
        known = ", ".join(sorted(str(kind) for kind in kinds))
        raise ValueError(
            f"{who}: got {name} of {x.dtype} but the parameters are {known}; pass "
            f"{name}.to({first.dtype})"
        )
    if x.ndim < 1 or len(x) == 0:
        raise ValueError(f"{who}: {name} must hold one sample per row, got {tuple(x.shape)}")
    if x.is_floating_point() and not bool(torch.isfinite(x).all()):
        raise ValueError(f"{who}: {name} must be finite")
    return x.detach().clone()


def _require_alike(who: str, name: str, first: Array, again: Array, alone: Array) -> None:
    """Complains if a second run differs, or the last row alone."""
    size = np.abs(first).max()
    apart = np.abs(first - again).max()
    if not apart <= ALONE * size:
        raise ValueError(
            f"{who}: two runs of the model in eval mode differ by {apart:.3g}; is dropout called "
            "as a function without training=self.training, or are parameters not finite?"
        )
    apart = np.abs(first[-1].reshape(-1) - alone.reshape(-1)).max()
    if not apart <= ALONE * size:
        raise ValueError(
            f"{who}: in eval mode the outputs of one {_one(name)} must not depend on the others "
            f"(batch statistics?), but they differ by {apart:.3g}"
        )


def _nudged(params: dict[str, Any]) -> dict[str, Any]:
    import torch

    def change(value: Any) -> Any:
        factors = torch.as_tensor(nudge(tuple(value.shape)), dtype=value.dtype)
        return value * factors.to(value.device)

    return {name: change(value) for name, value in params.items()}


def _tried(function: TorchFunction, name: str, params: dict[str, Any], x: Any) -> Any:
    import torch

    try:
        found = function(params, x)
    except Exception as reason:
        first = (str(reason) or type(reason).__name__).splitlines()[0]
        raise ValueError(
            f"{function.who}: the model does not run on {name} ({type(reason).__name__}: {first}); "
            "give a batch as the model gets it in training"
        ) from None
    if not isinstance(found, torch.Tensor) or not found.is_floating_point():
        raise ValueError(
            f"{function.who}: the model must return one tensor of real numbers, got "
            f"{getattr(found, 'dtype', type(found).__name__)}; wrap it in a module that does"
        )
    return found


def _one(name: str) -> str:
    return "probe input" if name == "probe_inputs" else f"row of {name}"
