"""Gradients of the samples of a torch module, in blocks for the tangent kernel."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tacit.arguments import Array
from tacit.lazy import torch
from tacit.measures.kernels.blocks import LARGEST, Gradients
from tacit.measures.kernels.factors import Factors
from tacit.measures.torch.module import TorchFunction, as_array

if TYPE_CHECKING:
    from tacit.measures.torch.tracing import Pass


class Costs(NamedTuple):
    """Of one sample: bytes of its gradients and of their factors, and uses of a layer."""

    held: int
    spread: int
    times: int


class TorchGradients(Gradients):
    """Gradients of the outputs in the trained parameters of `function`.

    They are computed at the live parameters, or at those given to `move`. Gradients in parameters
    of known operations (see tacit.measures.torch.uses) are factors, or products of factors;
    torch.func computes all others for all samples of a block at once, or autograd sample by
    sample where torch.func fails.
    """

    def __init__(
        self,
        function: TorchFunction,
        x: Any,
        outputs: int,
        selected: int | None,
        factored: bool = True,
    ):
        # imported here because it imports torch
        from tacit.measures.torch.tracing import NOTHING, traced

        self.function, self.every = function, outputs
        self.model = function
        self.params = function.parameters()
        self.names = {name: name for name in function.names}
        self.plan = NOTHING
        if factored:
            with function.quiet():
                self.plan = traced(function, x)
        self.together = True
        self.sample = x[:1]
        self.costs: dict[bool, Costs] = {}
        self.last: tuple[Any, Pass] | None = None  # the last pass, reused for the next output
        self.in_turn, self.spread = False, 0
        sizes = (math.prod(value.shape) * value.element_size() for value in self.params.values())
        self.fixed = sum(sizes)
        self._select(selected)

    @property
    def rest(self) -> list[str]:
        """The parameters whose gradients torch.func computes."""
        served = {*self.plan.uses, *self.plan.copies, *self.plan.idle}
        return [name for name in self.function.names if name not in served]

    def singles(self) -> Iterator[Gradients]:
        """The gradients of one output after the other, with one forward pass for all."""
        selected, self.in_turn = self.selected, True
        try:
            for index in range(self.every) if selected is None else [selected]:
                self._select(index)
                yield self
        finally:
            self.in_turn, self.last = False, None
            self._select(selected)

    def move(self, params: Any) -> None:
        given = self.function.given
        self.params = self.function.parameters() if params is None else given(params)

    def work(self, size: int) -> int:
        return size * (self.held + self.costs[self.selected is None].spread)

    def values(self, x: Any) -> Array:
        parts = []
        with self.function.quiet(), torch.no_grad():
            for at in range(0, len(x), LARGEST):
                part = x[at : at + LARGEST]
                parts.append(as_array(self.function(self.params, part)).reshape(len(part), -1))
        found = np.concatenate(parts)
        return found if self.selected is None else found[:, [self.selected]]

    def block(self, x: Any, size: int) -> Factors:
        from tacit.measures.torch.tape import Unlike
        from tacit.measures.torch.tracing import NOTHING

        with self.function.quiet():
            try:
                return self._factors(x)
            except Unlike:
                self.plan, self.last = NOTHING, None
                return self._factors(x)

    def _select(self, index: int | None) -> None:
        """Select the output whose gradients are computed: number `index`, or all."""
        self.selected = index
        self.outputs = self.every if index is None else 1
        if (index is None) not in self.costs:
            self.costs[index is None] = self._measured()
        self.held, _, self.times = self.costs[index is None]

    def _factors(self, x: Any) -> Factors:
        rows: dict[str, Any] = {}
        layers: dict[str, Any] = {}
        if len(self.rest) < len(self.names):
            self._served(x, rows, layers)
        if self.rest:
            rows |= {n: as_numbers(r) for n, r in zip(self.rest, self._whole(x), strict=True)}
        if not rows and not layers:  # no output depends on any parameter
            rows = {name: np.zeros((len(x), self.outputs, 1)) for name in self.names}
        return Factors(rows, layers)

    def _served(self, x: Any, rows: dict[str, Any], layers: dict[str, Any]) -> None:
        """Add the gradients in the parameters of the plan."""
        done = self._passed(x)
        slopes, copies = self._slopes(done)
        for name, uses in self.plan.uses.items():
            shape, (place, weighs), single = self.params[name].shape, uses[0], len(uses) == 1
            h = done.tape.input(place) if weighs else None
            if single and weighs and self.plan.steps[place].kind.pays(h, slopes[place], shape):
                layers[name] = as_numbers(h), as_numbers(slopes[place])
            else:
                rows[name] = as_numbers(self._summed(done, uses, slopes, shape))
        for name, parts in copies.items():
            rows[name] = as_numbers(_stacked([part.flatten(1) for part in parts], 1))
        made = [*slopes.values(), *done.tape.inputs.values()]
        self.spread = sum(part.numel() * part.element_size() for part in made) // len(x)

    def _summed(self, done: Pass, uses: Any, slopes: dict[int, Any], shape: Any) -> Any:
        """The whole gradients (n, C, size) in a parameter, over all its uses."""
        found = None
        for place, weighs in uses:
            if weighs:
                kind = self.plan.steps[place].kind
                part = kind.whole(done.tape.input(place), slopes[place], shape)
            else:
                part = slopes[place].sum(dim=1)
            found = part if found is None else found + part
        return found

    def _passed(self, x: Any) -> Pass:
        """A forward pass; in `singles` all outputs share that of the last block."""
        from tacit.measures.torch.tracing import forward

        mark = (x.data_ptr(), tuple(x.shape))
        if self.last is not None and self.last[0] == mark:
            return self.last[1]
        self.last = None  # frees its memory before the next pass
        done = forward(self.function, self.plan, self.params, x)
        if self.in_turn:
            self.last = (mark, done)
        return done

    def _slopes(self, done: Pass) -> tuple[dict[int, Any], dict[str, list[Any]]]:
        """delta (n, T, C, O) of every operation, and the derivatives in copies by output."""
        from tacit.measures.torch.tape import Unlike
        from tacit.measures.torch.tracing import derivatives

        steps: dict[int, list[Any]] = {}
        copies: dict[str, list[Any]] = {}
        for c in range(self.every) if self.selected is None else [self.selected]:
            found, given, idle = derivatives(done, done.outputs[:, c].sum())
            if any(part is not None and bool(part.any()) for part in idle.values()):
                raise Unlike
            for place, step in enumerate(self.plan.steps):
                if step.layout is not None:
                    steps.setdefault(place, []).append(done.tape.slopes(place, found[place]))
            for name, part in given.items():
                copies.setdefault(name, []).append(part)
        return {place: _stacked(parts, 2) for place, parts in steps.items()}, copies

    def _whole(self, x: Any) -> list[Any]:
        """The gradients in the parameters outside the plan, each (n, C, size)."""
        inner = {name: self.params[name] for name in self.rest}
        found = None
        if self.together:
            try:
                jacobian = torch.func.vmap(torch.func.jacrev(self._one), in_dims=(None, 0))
                found = jacobian(inner, x)
            except (RuntimeError, NotImplementedError, ValueError):
                self.together = False  # control flow on data, or an unknown operation
        if found is None:
            found = self._one_by_one(inner, x)
        shape = (len(x), self.outputs, -1)
        return [found[name].reshape(shape).detach() for name in self.rest]

    def _one(self, inner: dict[str, Any], x: Any) -> Any:
        found = self.function({**self.params, **inner}, x[None]).reshape(-1)
        return found if self.selected is None else found[self.selected : self.selected + 1]

    def _one_by_one(self, inner: dict[str, Any], x: Any) -> dict[str, Any]:
        grown = {name: value.clone().requires_grad_() for name, value in inner.items()}
        leaves, rows = list(grown.values()), []
        for sample in x:
            outputs = self._one(grown, sample)
            for c in range(len(outputs)):
                rows.append(
                    torch.autograd.grad(
                        outputs[c], leaves, retain_graph=True, materialize_grads=True
                    )
                )
        return {name: torch.stack([r[i] for r in rows]) for i, name in enumerate(grown)}

    def _measured(self) -> Costs:
        """The costs of one sample, measured on the first one."""
        in_turn, self.in_turn = self.in_turn, False
        one = self.block(self.sample, 1)
        self.in_turn = in_turn
        arrays = [*one.rows.values(), *(a for pair in one.layers.values() for a in pair)]
        held = sum(array.nbytes for array in arrays)
        met = [h.shape[1] for h, _ in one.layers.values() if h.dtype.kind == "f"]
        return Costs(held, self.spread, max(met, default=1))


def _stacked(parts: list[Any], axis: int) -> Any:
    """The parts along a new axis; a single part is not copied."""
    return torch.stack(parts, dim=axis) if len(parts) > 1 else parts[0].unsqueeze(axis)


def as_numbers(tensor: Any) -> Any:
    """A NumPy array in the tensor's precision, at least float32; row numbers stay integers."""
    if not tensor.is_floating_point():
        return tensor[..., 0].cpu().numpy()
    wide = tensor if tensor.dtype == torch.float64 else tensor.float()
    return wide.detach().cpu().numpy()
