"""A live torch module as a function of its trained parameters; checks of the module and inputs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from penchant.arguments import Array, finite_array, plain_array
from penchant.door import Invalid, Nameless
from penchant.lazy import torch
from penchant.limits import Turns
from penchant.measures.kernels.gradients import ALONE, nudge
from penchant.measures.kernels.inputs import InputTree, leaves, mapped, several, spread
from penchant.measures.kernels.outputs import Output
from penchant.measures.torch.quiet import quiet


class TorchFunction:
    """f(params, x) of `module` in eval mode, where `params` are its trained parameters by name.

    Parameters without requires_grad and the first values of buffers are constants, because no
    optimizer changes them. With `dtype` everything is computed in that precision. `x` is an array,
    or the row numbers of `named_inputs`.
    """

    named_inputs: InputTree | None = None
    held: dict[str, Any] | None = None  # parameters that replace the live ones
    changing: tuple[str, ...] = ()  # parameters that a forward pass changes, such as by max_norm

    def __init__(
        self,
        module: Any,
        dtype: Any = None,
        output: Callable[[Any], Any] | None = None,
        axis: int = 0,
    ):
        self.module, self.dtype, self.axis = _unwrapped(module), dtype, axis
        self.output = output or Output()
        _refuse_sharded(self.module)
        self.names = tuple(self.parameters())
        if not self.names:
            raise Invalid(
                "no parameter of the model requires gradients, so nothing is trained; "
                "call requires_grad_(True) on those that are"
            )
        self.constants = self._constants()

    def parameters(self) -> dict[str, Any]:
        """The live trained parameters, detached: they change with the training."""
        if self.held is not None:
            return dict(self.held)
        named = dict(self.module.named_parameters())
        for name, value in named.items():
            if isinstance(value, torch.nn.parameter.UninitializedParameter):
                raise Invalid(f"parameter {name} has no shape yet; run the model once before")
            if value.is_meta:
                raise Invalid(
                    f"parameter {name} has no numbers (device meta); load the model first"
                )
        trained = {name: value for name, value in named.items() if value.requires_grad}
        return {name: self._cast(value.detach()) for name, value in trained.items()}

    def given(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """The trained parameters among `params` (such as a state_dict), as tensors."""
        tensors = {}
        for name, value in self.parameters().items():
            if name not in params:
                raise Invalid(f"params must hold all trained parameters; no {name}")
            array = torch.as_tensor(params[name]).detach().to(value.device, value.dtype)
            if array.shape != value.shape:
                raise Invalid(
                    f"parameter {name} must have the shape {tuple(value.shape)}, "
                    f"got {tuple(array.shape)}"
                )
            tensors[name] = array.clone()
        return tensors

    def __call__(self, params: dict[str, Any], x: Any) -> Any:
        return self.output(self.run(params, self.copies(), x))

    def copies(self) -> dict[str, Any]:
        """Copies of the constants, which a forward pass may change."""
        return {name: value.clone() for name, value in self.constants.items()}

    def run(self, params: dict[str, Any], constants: dict[str, Any], x: Any) -> Any:
        """The return value of the module, of any type."""
        # a copy of x, because the first operation may work in place
        args, kwargs = (
            ((x.clone(),), {}) if self.named_inputs is None else spread(self.named_inputs.at(x))
        )
        if self.axis:  # the module counts its samples on this axis
            args, kwargs = mapped(args, self._turned), mapped(kwargs, self._turned)
        params = params | {name: params[name].clone() for name in self.changing}
        return torch.func.functional_call(self.module, (params, constants), args, kwargs)

    def _turned(self, leaf: Any) -> Any:
        tall = len(getattr(leaf, "shape", ())) > self.axis
        return leaf.movedim(0, self.axis) if tall else leaf

    def _constants(self) -> dict[str, Any]:
        named = dict(self.module.named_buffers())
        if self.dtype is not None:
            named |= {n: p for n, p in self.module.named_parameters() if not p.requires_grad}
        return {name: self._cast(value.detach().clone()) for name, value in named.items()}

    def _cast(self, value: Any) -> Any:
        real = self.dtype is not None and value.is_floating_point()
        return value.to(self.dtype) if real else value

    def quiet(self) -> contextlib.AbstractContextManager[None]:
        """Eval mode with fixed random state; flags, modes and random states are put back."""
        return quiet(self.module, next(iter(self.parameters().values())).device)

    def dropouts(self) -> list[str]:
        """Names of the dropout layers that would be active in training."""
        kind = torch.nn.modules.dropout._DropoutNd
        named = self.module.named_modules()
        return [name for name, module in named if isinstance(module, kind) and module.p > 0]


def _unwrapped(module: Any) -> Any:
    """The module inside torch.compile and data parallelism, whose parameters are the same."""
    for _ in Turns(1000, "the search for the module inside its wrappers"):
        if isinstance(getattr(module, "_orig_mod", None), torch.nn.Module):
            module = module._orig_mod
        elif isinstance(module, torch.nn.DataParallel | torch.nn.parallel.DistributedDataParallel):
            module = module.module
        else:
            break
    return module


def _refuse_sharded(module: Any) -> None:
    """Raise an error for parameters that are spread over processes."""
    kinds = [type(part).__name__ for part in module.modules()]
    split = [n for n, value in module.named_parameters() if type(value.data).__name__ == "DTensor"]
    if split or "FullyShardedDataParallel" in kinds:
        raise Invalid(
            "the parameters are spread over processes (FSDP), and no process has all of "
            "them; gather them (torch.distributed.checkpoint.state_dict.get_model_state_dict with "
            "full_state_dict=True) into a copy of the model on rank zero before each call, and "
            "pass that copy"
        )


def count_outputs(function: TorchFunction, name: str, x: Any, selected: str | int | None) -> int:
    """The number of outputs, which must be one row per sample, repeatable and independent.

    `name` is the caller's name of the inputs `x`; `selected` is None for a single output.
    """
    rows = len(x)
    params = _nudged(function.parameters())  # where the outputs of an unbiased start are not zero
    held = {name: value.clone() for name, value in params.items()}
    with function.quiet(), torch.no_grad():
        outputs = _tried(function, name, params, x)
        shape = tuple(outputs.shape)
        if len(shape) not in (1, 2) or shape[0] != rows:
            raise Invalid(
                f"the model must return one row of numbers per {_one(name)}, got shape "
                f"{shape} for {rows} inputs; a wrapper, or output= of the watch, picks what to "
                "use"
            )
        count, size = outputs.numel() // rows, float(outputs.abs().max())
        first = as_array(outputs[-1:])  # one row is enough, and all of them may be large
        del outputs
        function.changing = tuple(n for n, v in params.items() if not torch.equal(v, held[n]))
        params = held
        again = as_array(_tried(function, name, params, x)[-1:])
        alone = as_array(_tried(function, name, params, x[-1:]))
    if isinstance(selected, int) and selected >= count:
        raise Invalid(f"outputs must be below {count}, their number, got {selected}")
    if selected is None and count > 1:
        raise Invalid(
            f"the module has {count} outputs; set outputs='mean', 'full' or the index of one"
        )
    _require_alike(name, size, first, again, alone)
    return count


def torch_inputs(function: TorchFunction, name: str, x: Any) -> Any:
    """A detached copy of `x`; NumPy arrays are moved to the device of the parameters.

    For a mapping or a tuple it is the row numbers in the named inputs.
    """
    if function.axis:
        x = mapped(x, lambda leaf: _samples_first(name, leaf, function.axis))
    if not several(x):
        return _tensor(function, name, x)
    given = InputTree(name, mapped(x, lambda leaf: _leaf(function, name, leaf)))
    known = function.named_inputs
    first = 0 if known is None else len(known)
    function.named_inputs = given if known is None else _joined(name, known, given)
    return torch.arange(first, first + len(given), device=_device(function))


def _samples_first(name: str, leaf: Any, axis: int) -> Any:
    """The leaf with its samples on the first axis."""
    if len(getattr(leaf, "shape", ())) == 0:
        return leaf
    if len(leaf.shape) <= axis:
        raise Invalid(f"{name} have no axis {axis} (batch_axis), got shape {tuple(leaf.shape)}")
    array = leaf if isinstance(leaf, torch.Tensor) else torch.as_tensor(plain_array(name, leaf))
    return array.movedim(axis, 0)


def _leaf(function: TorchFunction, name: str, leaf: Any) -> Any:
    return _tensor(function, name, leaf) if len(getattr(leaf, "shape", ())) else leaf


def _joined(name: str, first: InputTree, second: InputTree) -> InputTree:
    """The rows of both tables."""
    parts = iter(list(leaves(second.tree)))
    try:
        tree = mapped(first.tree, lambda leaf: _below(leaf, next(parts)))
    except (RuntimeError, StopIteration):
        raise Invalid(f"{name} must have the structure of the first inputs") from None
    return InputTree(name, tree)


def _below(first: Any, second: Any) -> Any:
    return torch.cat([first, second]) if isinstance(first, torch.Tensor) else first


def _device(function: TorchFunction) -> Any:
    return next(iter(function.parameters().values())).device


def _tensor(function: TorchFunction, name: str, x: Any) -> Any:
    params = list(function.parameters().values())
    first, kinds = params[0], {value.dtype for value in params}
    if odd := [kind for kind in kinds if not kind.is_floating_point]:
        raise Invalid(f"the trained parameters must be real numbers, got {odd[0]}")
    if not isinstance(x, torch.Tensor):
        raw = plain_array(name, x)
        if raw.dtype.kind not in "iub":
            raw = finite_array(name, raw, ndim=raw.ndim)
        tensor = torch.as_tensor(raw)
        tensor = tensor.to(first.dtype) if tensor.is_floating_point() else tensor
        x = tensor.to(first.device)
    elif function.dtype is not None and x.is_floating_point():
        x = x.to(function.dtype)
    if x.device != first.device:
        raise Invalid(
            f"got {name} on {x.device} but the model is on {first.device}; pass "
            f"{name}.to({str(first.device)!r})"
        )
    if x.is_floating_point() and x.dtype not in kinds:
        known = ", ".join(sorted(str(kind) for kind in kinds))
        raise Invalid(
            f"got {name} of {x.dtype} but the parameters are {known}; pass {name}.to({first.dtype})"
        )
    if x.ndim < 1 or len(x) == 0:
        raise Invalid(f"{name} must hold one sample per row, got {tuple(x.shape)}")
    if x.is_floating_point() and not bool(torch.isfinite(x).all()):
        raise Invalid(f"{name} must be finite")
    return x.detach().clone()


def as_array(tensor: Any) -> Array:
    """A float64 copy of a tensor."""
    return np.array(tensor.detach().double().cpu().numpy(), dtype=np.float64)


def _require_alike(name: str, size: float, first: Array, again: Array, alone: Array) -> None:
    """Raise an error if the outputs of the last row differ in a second run, or alone."""
    apart = np.abs(first - again).max()
    if not apart <= ALONE * size:
        raise Invalid(
            f"two runs of the model in eval mode differ by {apart:.3g}; is dropout called "
            "as a function without training=self.training, or are parameters not finite?"
        )
    apart = np.abs(first.reshape(-1) - alone.reshape(-1)).max()
    if not apart <= ALONE * size:
        raise Invalid(
            f"in eval mode the outputs of one {_one(name)} must not depend on the others "
            f"(batch statistics?), but they differ by {apart:.3g}"
        )


def _nudged(params: dict[str, Any]) -> dict[str, Any]:
    def change(value: Any) -> Any:
        factors = torch.as_tensor(nudge(tuple(value.shape)), dtype=value.dtype)
        return value * factors.to(value.device)

    return {name: change(value) for name, value in params.items()}


def _tried(function: TorchFunction, name: str, params: dict[str, Any], x: Any) -> Any:
    try:
        value = function(params, x)
    except Nameless:
        raise
    except Exception as reason:
        first = (str(reason) or type(reason).__name__).splitlines()[0]
        raise Invalid(
            f"the model does not run on {name} ({type(reason).__name__}: {first}); "
            "pass a batch as in training"
        ) from None
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        raise Invalid(
            f"the model must return one tensor of real numbers, got "
            f"{getattr(value, 'dtype', type(value).__name__)}; a wrapper, or output= of the watch, "
            "picks one"
        )
    return value


def _one(name: str) -> str:
    return "probe input" if name == "probe_inputs" else f"row of {name}"
