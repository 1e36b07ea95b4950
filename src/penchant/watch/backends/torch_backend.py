"""A live torch.nn.Module under watch, used in eval mode and left unchanged."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator
from typing import Any

from penchant.arguments import Array
from penchant.door import door_as
from penchant.lazy import torch
from penchant.measures.kernels.blocks import grouped_kernels, output_kernels
from penchant.measures.kernels.inputs import digest
from penchant.measures.kernels.outputs import SAMPLES, Projection, projection_error
from penchant.measures.kernels.tangent import MEMORY
from penchant.measures.torch.directional import Directional
from penchant.measures.torch.gradients import TorchGradients, as_numbers
from penchant.measures.torch.module import TorchFunction, as_array, count_outputs, torch_inputs
from penchant.measures.torch.quiet import quiet
from penchant.watch.backends.backend import (
    WHO,
    ChangedModel,
    LookOptions,
    groups_note,
    layers_of,
    projection_note,
)
from penchant.watch.state import state_note, warmed


class TorchBackend:
    """The module with its present parameters, in their own precision."""

    out_axis = 0

    @door_as(WHO)
    def __init__(self, module: Any, x: Any, how: LookOptions | None = None):
        how = how or LookOptions()
        output = how.reader()
        self.function = TorchFunction(module, output=output, axis=how.batch_axis)
        self.names = self.function.names
        self.x = torch_inputs(self.function, "probe_inputs", x)
        self.digest = digest(x)
        self.count = count_outputs(self.function, "probe_inputs", self.x, "mean")
        index = how.index(output, self.count)
        if how.warm_batch is not None:
            self._warm(how.warm_batch, how.batch_axis)
        self.groups = layers_of(self.names, len(self.x))
        self.notes = self._notes(how.warm_batch is not None)
        with self.function.quiet():
            self.start = {n: value.clone() for n, value in self.function.parameters().items()}
        sums = how.sums(output, self.count)
        self.projected, count = sums is not None, sums or self.count
        if self.projected:
            output.projection = Projection(output.shape, count, self._signs)
        self.gradients = TorchGradients(self.function, self.x, count, index)
        self.along = Directional(self.function, self.x, count)
        if self.projected:
            some = output_kernels(self.gradients, self.x[:SAMPLES], MEMORY)
            self.notes += (projection_note(output.shape, count, projection_error(some)),)
        self._know()

    @door_as(WHO)
    def check(self, params: Any = None) -> None:
        if params is not None:
            raise ValueError(
                f"{WHO}: the parameters are read from the torch module itself; call "
                "watch(step, train_loss=...) without them"
            )
        now = self.function.parameters()
        if now.keys() != self.start.keys():
            others = ", ".join(sorted(now.keys() ^ self.start.keys()))
            raise ChangedModel(
                f"{WHO}: the trained parameters are not those of the start (different: {others}); "
                "start a new watch for a changed model, or after (un)freezing layers"
            )
        for name, value in now.items():
            for what in ("shape", "dtype", "device"):
                before, after = getattr(self.start[name], what), getattr(value, what)
                if before != after:
                    raise ChangedModel(
                        f"{WHO}: parameter {name} has {what} {after} instead of {before} as at "
                        "the start; start a new watch for a changed model"
                    )
        live = dict(self.function.module.named_parameters())
        if other := [name for name, known in self.known.items() if known() is not live[name]]:
            raise ChangedModel(
                f"{WHO}: parameter {', '.join(other[:3])} is not the tensor of the start (the "
                "layer was replaced); start a new watch for a changed model"
            )

    def arrays(self, params: Any = None) -> dict[str, Any]:
        return {name: as_numbers(value) for name, value in self.function.parameters().items()}

    @contextlib.contextmanager
    def at(self, arrays: dict[str, Any]) -> Iterator[None]:
        live = self.function.parameters()
        self.function.held = {
            name: torch.as_tensor(arrays[name]).to(value.device, value.dtype)
            for name, value in live.items()
        }
        try:
            yield None
        finally:
            self.function.held = None

    def state(self) -> dict[str, Any]:
        return self.function.copies()

    @door_as(WHO)
    def restore(self, start: dict[str, Any], state: dict[str, Any]) -> None:
        for name, old in self.start.items():
            self.start[name] = torch.as_tensor(start[name]).to(old.device, old.dtype)
        held = self.function.constants
        self.function.constants = {
            name: torch.as_tensor(state[name]).to(value.device, value.dtype)
            for name, value in held.items()
        }
        self._know()

    @door_as(WHO)
    def outputs(self, params: Any = None) -> Array:
        with self.function.quiet(), torch.no_grad():
            return self._run(self.function.parameters())

    @door_as(WHO)
    def kernels(self, params: Any = None) -> Array:
        self.gradients.move(None)
        groups = dict(zip(self.names, self.groups, strict=True))
        return grouped_kernels(self.gradients, self.x, None, False, MEMORY, groups)

    @door_as(WHO)
    def linearized(self, params: Any = None) -> Array:
        now = self.function.parameters()
        change = {name: now[name] - value for name, value in self.start.items()}
        f0, slope = self.along(self.start, change)
        return as_array(f0).reshape(len(self.x), -1) + as_array(slope).reshape(len(self.x), -1)

    def _run(self, params: dict[str, Any]) -> Array:
        return as_array(self.function(params, self.x)).reshape(len(self.x), -1)

    def _know(self) -> None:
        """Store which tensors are the trained parameters."""
        live = dict(self.function.module.named_parameters())
        self.known = {name: weakref.ref(live[name]) for name in self.names}

    def _signs(self, signs: Array) -> Any:
        first = next(iter(self.function.parameters().values()))
        dtype = torch.float64 if first.dtype == torch.float64 else torch.float32
        return torch.as_tensor(signs, dtype=dtype, device=first.device)

    def _warm(self, batch: Any, axis: int) -> None:
        """Replace running averages among the constants by those of `batch`."""
        function = TorchFunction(self.function.module, axis=axis)
        function.changing = self.function.changing
        x = torch_inputs(function, "warm_batch", batch)
        held = {n: v for n, v in function.constants.items() if v.is_floating_point()}
        module, params = function.module, function.parameters()
        flags = {part: part.training for part in module.modules()}

        def run(state: dict[str, Any]) -> dict[str, Any]:
            given = {n: torch.as_tensor(state[n]).to(v) for n, v in held.items()}
            given = function.copies() | given
            with quiet(module, x.device, training=True), torch.no_grad():
                torch.manual_seed(0)  # dropout, if there is any, is the same in every pass
                function.run(params, given, x)
            return {n: as_array(given[n]) for n in held}

        try:
            for part in module.modules():
                part.training = flags[part] or not any(flags.values())
            averages = warmed(run, {n: as_array(v) for n, v in held.items()})
        finally:
            for part, flag in flags.items():
                part.training = flag
        for name, value in held.items():
            self.function.constants[name] = torch.as_tensor(averages[name]).to(value)

    def _notes(self, warm: bool) -> tuple[str, ...]:
        notes, module = [], self.function.module
        if dropouts := self.function.dropouts():
            notes.append(
                f"the model has dropout ({', '.join(dropouts[:3])}); looks are taken in eval mode, "
                "without dropout, and the training flags are restored"
            )
        total = sum(1 for _ in module.parameters())
        if total > len(self.names):
            notes.append(
                f"{total - len(self.names)} of {total} parameter arrays do not require gradients; "
                "they count as constants"
            )
        kinds = torch.nn.modules.batchnorm._NormBase
        averages = [
            f"{name}.running_mean and running_var"
            for name, part in module.named_modules()
            if isinstance(part, kinds) and part.track_running_stats
        ]
        if averages:
            notes.append(state_note(averages, warm))
        return (*notes, *groups_note(self.names, self.groups))
