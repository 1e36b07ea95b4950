"""A live torch.nn.Module under watch: looked at in eval mode, and left as it was found."""

from __future__ import annotations

from typing import Any

from tacit.arguments import Array
from tacit.measures.kernels.blocks import blocked_kernel
from tacit.measures.kernels.tangent import MEMORY, asked_for
from tacit.measures.torch.gradients import TorchGradients, as_numbers
from tacit.measures.torch.module import TorchFunction, as_array, count_outputs, torch_inputs
from tacit.watch.backend import WHO


class TorchBackend:
    """The module at its parameters of the moment, in their own precision."""

    out_axis = 0

    def __init__(self, module: Any, x: Any, outputs: str | int):
        asked = asked_for(WHO, outputs)
        self.function = TorchFunction(WHO, module)
        self.names = self.function.names
        self.notes = self._notes()
        self.forward = True
        with self.function.quiet():
            self.start = {n: value.clone() for n, value in self.function.parameters().items()}
        self.x = torch_inputs(self.function, "probe_inputs", x)
        count = count_outputs(self.function, "probe_inputs", self.x, asked)
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
