"""A live torch.nn.Module under watch: looked at in eval mode, and left as it was found."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.arguments import Array, finite_array
from tacit.probes.blocked_kernels import blocked_kernel
from tacit.probes.function_gradients import ALONE, nudge
from tacit.probes.kernel_arguments import MEMORY, asked_for
from tacit.watch.backend import WHO
from tacit.watch.torch_gradients import TorchGradients, as_array, as_numbers
from tacit.watch.torch_module import TorchFunction


class TorchBackend:
    """The module at its parameters of the moment, in their own precision."""

    out_axis = 0

    def __init__(self, module: Any, x: Any, outputs: str | int):
        asked = asked_for(WHO, outputs)
        self.function = TorchFunction(module)
        self.names = self.function.names
        self.notes = self._notes()
        self.forward = True
        with self.function.quiet():
            self.start = {n: value.clone() for n, value in self.function.parameters().items()}
            self.x = _inputs(x, self.start)
            count = self._check_outputs(asked)
            index = asked if isinstance(asked, int) else None
            self.gradients = TorchGradients(self.function, self.x, count, index)
        # gradients that cannot be held all at once are cheaper output by output
        large = self.gradients.held * len(self.x) > MEMORY / 4
        self.parts = list(range(count)) if large and asked == "mean" else [index]

    def check(self, params: Any = None) -> None:
        if params is not None:
            raise ValueError(
                f"{WHO}: the parameters are read from the torch module itself; call "
                "watch(step, train_loss=...) without them"
            )
        now = self.function.parameters()
        if now.keys() != self.start.keys():
            others = ", ".join(sorted(now.keys() ^ self.start.keys()))
            raise ValueError(
                f"{WHO}: the trained parameters are not those of the start (different: {others}); "
                "start a new watch for a changed model, or after (un)freezing layers"
            )
        for name, value in now.items():
            for what in ("shape", "dtype", "device"):
                before, after = getattr(self.start[name], what), getattr(value, what)
                if before != after:
                    raise ValueError(
                        f"{WHO}: parameter {name} has {what} {after} instead of {before} as at "
                        "the start; start a new watch for a changed model"
                    )

    def arrays(self, params: Any = None) -> dict[str, Any]:
        return {name: as_numbers(value) for name, value in self.function.parameters().items()}

    def outputs(self, params: Any = None) -> Array:
        import torch

        with self.function.quiet(), torch.no_grad():
            return self._run(self.function.parameters())

    def kernel(self, params: Any = None) -> Array:
        with self.function.quiet():
            self.gradients.move(None)
            found = self._kernel(self.parts[0])
            for part in self.parts[1:]:
                found += self._kernel(part)
            return found / len(self.parts)

    def linearized(self, params: Any = None) -> Array:
        now = self.function.parameters()
        change = {name: now[name] - value for name, value in self.start.items()}
        with self.function.quiet():
            f0, slope = self._slope(change)
        return as_array(f0).reshape(len(self.x), -1) + as_array(slope).reshape(len(self.x), -1)

    def _kernel(self, part: int | None) -> Array:
        if part != self.gradients.asked:
            self.gradients.ask(part)
        return blocked_kernel(WHO, self.gradients, self.x, None, False, MEMORY)

    def _slope(self, change: dict[str, Any]) -> tuple[Any, Any]:
        """f and its derivative along `change`, at the start."""
        import torch

        func: Any = torch.func

        def run(params: dict[str, Any]) -> Any:
            return self.function(params, self.x)

        if self.forward:
            try:
                return func.jvp(run, (self.start,), (change,))
            except (RuntimeError, NotImplementedError):
                self.forward = False  # an operation without a forward derivative
        # J v is the derivative of u -> J^T u along v
        f0, pull = func.vjp(run, self.start)
        _, push = func.vjp(lambda u: pull(u)[0], torch.zeros_like(f0))
        return f0, push(change)[0]

    def _run(self, params: dict[str, Any]) -> Array:
        return as_array(self.function(params, self.x)).reshape(len(self.x), -1)

    def _notes(self) -> tuple[str, ...]:
        found = []
        if dropouts := self.function.dropouts():
            found.append(
                f"the model has dropout ({', '.join(dropouts[:3])}); it is looked at in eval mode, "
                "without dropout, and its training flags are put back"
            )
        total = sum(1 for _ in self.function.module.parameters())
        if total > len(self.names):
            found.append(
                f"{total - len(self.names)} of {total} parameter arrays do not require gradients; "
                "they count as constants"
            )
        return tuple(found)

    def _check_outputs(self, asked: str | int | None) -> int:
        """The number of outputs, if they are one row per sample, repeatable and independent."""
        import torch

        rows, params = len(self.x), _nudged(self.start)  # where an unbiased start is not zero
        with torch.no_grad():
            found = _tried(self.function, params, self.x)
            shape = tuple(found.shape)
            if len(shape) not in (1, 2) or shape[0] != rows:
                raise ValueError(
                    f"{WHO}: the model must return one row of numbers per probe input, got shape "
                    f"{shape} for {rows} inputs; wrap it in a module that picks what to look at"
                )
            again = as_array(_tried(self.function, params, self.x))
            alone = as_array(_tried(self.function, params, self.x[-1:]))
        first = as_array(found)
        count = first.size // rows
        if isinstance(asked, int) and asked >= count:
            raise ValueError(f"{WHO}: outputs must be below {count}, their number, got {asked}")
        _require_alike(first, again, alone)
        return count


def _require_alike(first: Array, again: Array, alone: Array) -> None:
    """Complains if a second run differs, or the last row alone."""
    size = np.abs(first).max()
    apart = np.abs(first - again).max()
    if not apart <= ALONE * size:
        raise ValueError(
            f"{WHO}: two runs of the model in eval mode differ by {apart:.3g}; is dropout called "
            "as a function without training=self.training, or are parameters not finite?"
        )
    apart = np.abs(first[-1].reshape(-1) - alone.reshape(-1)).max()
    if not apart <= ALONE * size:
        raise ValueError(
            f"{WHO}: in eval mode the outputs of a probe input must not depend on the others "
            f"(batch statistics?), but they differ by {apart:.3g}"
        )


def _nudged(params: dict[str, Any]) -> dict[str, Any]:
    import torch

    def change(value: Any) -> Any:
        factors = torch.as_tensor(nudge(tuple(value.shape)), dtype=value.dtype)
        return value * factors.to(value.device)

    return {name: change(value) for name, value in params.items()}


def _tried(function: TorchFunction, params: dict[str, Any], x: Any) -> Any:
    import torch

    try:
        found = function(params, x)
    except Exception as reason:
        first = (str(reason) or type(reason).__name__).splitlines()[0]
        raise ValueError(
            f"{WHO}: the model does not run on probe_inputs ({type(reason).__name__}: {first}); "
            "give a batch as the model gets it in training"
        ) from None
    if not isinstance(found, torch.Tensor) or not found.is_floating_point():
        raise ValueError(
            f"{WHO}: the model must return one tensor of real numbers, got "
            f"{getattr(found, 'dtype', type(found).__name__)}; wrap it in a module that does"
        )
    return found


def _inputs(x: Any, params: dict[str, Any]) -> Any:
    """A detached copy of `x` on the device of the parameters; arrays are sent there."""
    import torch

    first = next(iter(params.values()))
    kinds = {value.dtype for value in params.values()}
    if odd := [kind for kind in kinds if not kind.is_floating_point]:
        raise ValueError(f"{WHO}: the trained parameters must be real numbers, got {odd[0]}")
    if not isinstance(x, torch.Tensor):
        raw = np.asarray(x)
        if raw.dtype.kind not in "iub":
            raw = finite_array(WHO, "probe_inputs", raw, ndim=raw.ndim)
        tensor = torch.as_tensor(raw)
        tensor = tensor.to(first.dtype) if tensor.is_floating_point() else tensor
        x = tensor.to(first.device)
    if x.device != first.device:
        raise ValueError(
            f"{WHO}: probe_inputs are on {x.device} but the model is on {first.device}; pass "
            f"probe_inputs.to({str(first.device)!r})"
        )
    if x.is_floating_point() and x.dtype not in kinds:
        known = ", ".join(sorted(str(kind) for kind in kinds))
        raise ValueError(
            f"{WHO}: probe_inputs are {x.dtype} but the parameters are {known}; pass "
            f"probe_inputs.to({first.dtype})"
        )
    if x.ndim < 1 or len(x) == 0:
        raise ValueError(f"{WHO}: probe_inputs must hold one sample per row, got {tuple(x.shape)}")
    if x.is_floating_point() and not bool(torch.isfinite(x).all()):
        raise ValueError(f"{WHO}: probe_inputs must be finite")
    return x.detach().clone()
