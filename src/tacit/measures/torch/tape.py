"""One forward pass of a torch module that records every operation with one of its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from torch.autograd.graph import get_gradient_edge
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from tacit.measures.torch.uses import OPERATIONS, Kind, Layout


class Unlike(Exception):
    """The operations of the module on these inputs differ from those on the test inputs."""


class Step(NamedTuple):
    """An operation with parameters: their names, and the axis of the samples in its output."""

    kind: Kind
    weight: str | None
    bias: str | None
    layout: Layout | None = None  # None: no derivatives are taken in it

    def plain(self) -> Step:
        """The operation without a layout, so that it is ignored."""
        return self._replace(layout=None)


class Tape(TorchFunctionMode):
    """Records the operations with `params`, and the points where `steps` need derivatives.

    Without steps it only records the operations and the shapes of their outputs.
    """

    def __init__(self, params: Mapping[str, Any], samples: int, steps: list[Step] | None = None):
        super().__init__()
        self.named = {id(value): name for name, value in params.items()}
        self.samples, self.follows = samples, steps is not None
        self.steps: list[Step] = [] if steps is None else steps
        self.seen: list[Step] = []
        self.shapes: list[tuple[int, ...]] = []
        self.given: list[dict[str, Any]] = []  # the arguments of every operation
        self.points: list[Any] = []  # delta is the derivative in these
        self.inputs: dict[int, Any] = {}  # h, once it is computed

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is functional.multi_head_attention_forward:
            return self._attended(func, args, kwargs)
        found = func(*args, **kwargs)
        kind = OPERATIONS.get(func)
        if kind is None or not any(id(value) in self.named for value in (*args, *kwargs.values())):
            return found
        given = kind.read(args, kwargs)
        if given is None:
            return found
        weight, bias = (self.named.get(id(given.get(name))) for name in ("weight", "bias"))
        return self._noted(Step(kind, weight, bias), given, found) if weight or bias else found

    def _attended(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Attention in one call, whose inner matrix products a mode does not see."""
        linear = functional.linear

        def noted(*args: Any, **kwargs: Any) -> Any:
            return self.__torch_function__(linear, (), args, kwargs)

        try:
            functional.linear = noted
            return func(*args, **kwargs)
        finally:
            functional.linear = linear

    def _noted(self, step: Step, given: dict[str, Any], found: Any) -> Any:
        place = len(self.seen)
        self.seen.append(step)
        self.shapes.append(tuple(found.shape))
        if not self.follows:
            return found
        if place >= len(self.steps) or step != self.steps[place].plain():
            raise Unlike
        layout = self.steps[place].layout
        self.given.append({} if layout is None else given)
        if layout is None:
            self.points.append(None)
            return found
        if layout.axis is None:
            found = layout.spread(found, self.samples)
        elif found.shape[layout.axis] != self.samples * layout.times:
            raise Unlike
        if found.requires_grad:
            self.points.append(get_gradient_edge(found))
            return found
        self.points.append(found.requires_grad_())
        return found.clone()  # the next operation may work in place

    def finished(self) -> None:
        """Raise Unlike if operations are missing."""
        if self.follows and len(self.seen) != len(self.steps):
            raise Unlike

    def input(self, place: int) -> Any:
        """h of an operation as (samples, T, K)."""
        if place not in self.inputs:
            step, given = self._at(place)
            h = step.kind.input(given).detach()
            if step.layout.axis is None:
                h = h.reshape(1, -1, h.shape[-1]).expand(self.samples, -1, -1)
            else:
                h = step.layout.rows(h, self.samples)
            self.inputs[place] = h
        return self.inputs[place]

    def slopes(self, place: int, derivative: Any) -> Any:
        """delta of an operation as (samples, T, O)."""
        step, given = self._at(place)
        if derivative is None:  # the outputs do not depend on it
            shape = list(self.shapes[place])
            if step.layout.axis is None:
                shape = [self.samples, *shape[shape[:1] == [1] :]]
            derivative = given["weight"].new_zeros(shape)
        return step.layout.rows(step.kind.last(derivative, given), self.samples)

    def _at(self, place: int) -> Any:
        return self.steps[place], self.given[place]
