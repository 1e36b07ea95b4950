"""One forward pass of a torch module that records every operation with one of its parameters.

A *shared value* is a parameter, or what the module computes from parameters alone: a slice of the
positions, a normalized weight. It is the same for all samples. The tape sees every operation with
a shared value; where it meets the samples, the operation is one of the known ones, or the plan does
not compute the gradients in the parameters behind it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch.autograd.graph import get_gradient_edge
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from penchant.measures.torch.uses import (
    IN_PLACE,
    OPERATIONS,
    Entrywise,
    Lookup,
    Repeat,
    SampleLayout,
    WeightedKind,
)


class Unlike(Exception):
    """The operations of the module on these inputs differ from those on the test inputs."""


class Call(NamedTuple):
    """An operation with values that depend on parameters, as it was recorded."""

    function: Any
    values: tuple[str, ...]  # names of these values among its arguments
    weight: str | None
    bias: str | None
    outer: tuple[str, ...]  # those that are arguments themselves, not in a list
    outputs: tuple[tuple[int, ...], ...]  # shapes
    lost: bool  # whether the operation returns nothing


class Step(NamedTuple):
    """An operation with shared values: their names, and the axis of the samples in its output."""

    function: Any
    values: tuple[str, ...]
    kind: WeightedKind | Entrywise | None = None
    weight: str | None = None
    bias: str | None = None
    shares: bool = False  # whether its outputs are shared values, too
    layout: SampleLayout | None = None  # None: no derivatives are taken in it

    @property
    def is_table(self) -> bool:
        """True for rows of an embedding with constant numbers, such as positions."""
        return self.shares and isinstance(self.kind, Lookup)

    def plain(self) -> Step:
        """The operation without a layout, so that it is ignored."""
        return self._replace(layout=None)


def output_name(place: int, number: int) -> str:
    """The name of a shared value that the operation `place` returns."""
    return f"#{place}.{number}"


class Recorder(TorchFunctionMode):
    """Sees all operations with values that have a name, at first the parameters."""

    def __init__(self, params: Mapping[str, Any]):
        super().__init__()
        self.named = {id(value): name for name, value in params.items()}
        self.values: dict[str, Any] = dict(params)  # keeps them alive: a freed id is used again

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is functional.multi_head_attention_forward:
            return self._attended(func, args, kwargs)
        names = tuple(self._names(args)) + tuple(self._names(kwargs.values()))
        return self.noted(func, args, kwargs, names) if names else func(*args, **kwargs)

    def noted(self, func: Any, args: Any, kwargs: Any, names: tuple[str, ...]) -> Any:
        """The outputs of an operation with the values `names`."""
        raise NotImplementedError

    def _names(self, given: Any) -> Iterator[str]:
        for value in given:
            if isinstance(value, torch.Tensor):
                if id(value) in self.named:
                    yield self.named[id(value)]
            elif isinstance(value, list | tuple):
                yield from self._names(value)

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

    def name_outputs(self, place: int, outputs: Any) -> None:
        """Give names to the outputs of an operation that have none."""
        for number, value in enumerate(tensors(outputs)):
            if id(value) not in self.named:
                name = output_name(place, number)
                self.named[id(value)], self.values[name] = name, value


def tensors(outputs: Any) -> list[Any]:
    """The tensors that an operation returns."""
    several = outputs if isinstance(outputs, list | tuple) else [outputs]
    return [value for value in several if isinstance(value, torch.Tensor)]


class ParameterTrace(Recorder):
    """Records the operations with everything that depends on parameters."""

    def __init__(self, params: Mapping[str, Any]):
        super().__init__(params)
        self.calls: list[Call] = []

    def noted(self, func: Any, args: Any, kwargs: Any, names: tuple[str, ...]) -> Any:
        kind = OPERATIONS.get(func)
        given = (kind.read(args, kwargs) if kind is not None else None) or {}
        weight, bias = (self.named.get(id(given.get(name))) for name in ("weight", "bias"))
        outer = [self.named[id(v)] for v in (*args, *kwargs.values()) if id(v) in self.named]
        if func in IN_PLACE and id(args[0]) in self.named:
            outer.remove(self.named[id(args[0])])
        outputs = func(*args, **kwargs)
        shapes = tuple(tuple(value.shape) for value in tensors(outputs))
        self.calls.append(
            Call(func, names, weight, bias, tuple(outer), shapes, lost=outputs is None)
        )
        self.name_outputs(len(self.calls) - 1, outputs)
        return outputs


class Tape(Recorder):
    """Repeats the operations `steps`, and stores the points where they need derivatives."""

    def __init__(self, params: Mapping[str, Any], samples: int, steps: list[Step]):
        super().__init__(params)
        self.samples, self.steps, self.place = samples, steps, -1
        self.given: dict[int, dict[str, Any]] = {}  # the arguments of operations, by place
        self.points: dict[int, Any] = {}  # delta is the derivative in these
        self.shapes: dict[int, Any] = {}  # of the points
        self.inputs: dict[int, Any] = {}  # h, once it is computed

    def noted(self, func: Any, args: Any, kwargs: Any, names: tuple[str, ...]) -> Any:
        self.place += 1
        place = self.place
        if place >= len(self.steps) or (func, names) != self.steps[place][:2]:
            raise Unlike
        step = self.steps[place]
        if step.shares:
            return self._shared(place, func, args, kwargs)
        if step.layout is None:
            return func(*args, **kwargs)
        if isinstance(step.kind, Entrywise):
            return self._copied(place, func, args, kwargs)
        self._read(place, args, kwargs)
        return self._watched(place, func(*args, **kwargs))

    def finished(self) -> None:
        """Raise Unlike if operations are missing."""
        if self.place + 1 != len(self.steps):
            raise Unlike

    def _read(self, place: int, args: Any, kwargs: Any) -> None:
        step = self.steps[place]
        assert isinstance(step.kind, WeightedKind)
        given = step.kind.read(args, kwargs)
        named = [self.named.get(id((given or {}).get(name))) for name in ("weight", "bias")]
        if given is None or named != [step.weight, step.bias]:
            raise Unlike
        self.given[place] = given

    def _shared(self, place: int, func: Any, args: Any, kwargs: Any) -> Any:
        outputs = func(*args, **kwargs)
        if self.steps[place].is_table:
            self._read(place, args, kwargs)
            outputs = outputs.detach().requires_grad_()
            self.shapes[place] = outputs.shape
        self.name_outputs(place, outputs)
        return outputs

    def _copied(self, place: int, func: Any, args: Any, kwargs: Any) -> Any:
        """The operation with a copy of the shared value for every sample."""
        kind, layout, name = (
            self.steps[place].kind,
            self.steps[place].layout,
            self.steps[place].bias,
        )
        assert isinstance(kind, Entrywise)
        assert layout is not None
        assert name is not None
        if isinstance(kind, Repeat):
            return self._watched(place, func(*args, **kwargs).detach())
        copies = kind.copies(self.values[name], layout, self.samples)
        shared = id(self.values[name])
        args = [copies if id(value) == shared else value for value in args]
        kwargs = {key: copies if id(v) == shared else v for key, v in kwargs.items()}
        outputs = self._fitting(place, func(*args, **kwargs))
        self.points[place], self.shapes[place] = copies, copies.shape
        return outputs

    def _watched(self, place: int, output: Any) -> Any:
        """The output, in which derivatives are taken."""
        self.shapes[place] = self._fitting(place, output).shape
        if output.requires_grad:
            self.points[place] = get_gradient_edge(output)
            return output
        self.points[place] = output.requires_grad_()
        return output.clone()  # the next operation may work in place

    def _fitting(self, place: int, output: Any) -> Any:
        layout = self.steps[place].layout
        assert layout is not None
        if output.shape[layout.axis] != self.samples * layout.times:
            raise Unlike
        return output

    def input(self, place: int) -> Any:
        """h of an operation as (samples, T, K)."""
        if place not in self.inputs:
            step = self.steps[place]
            assert isinstance(step.kind, WeightedKind)
            h = step.kind.input(self.given[place]).detach()
            if step.layout is None:  # that of a table is shared
                h = h.reshape(1, -1, h.shape[-1]).expand(self.samples, -1, -1)
            else:
                h = step.layout.rows(h, self.samples)
            self.inputs[place] = h
        return self.inputs[place]

    def slopes(self, place: int, derivative: Any) -> Any:
        """delta of an operation as (samples, T, O)."""
        step, layout = self.steps[place], self.steps[place].layout
        assert layout is not None
        assert step.kind is not None
        if derivative is None:  # the outputs do not depend on it
            value = self.values[step.weight or step.bias or ""]
            derivative = value.new_zeros(self.shapes[place])
        if isinstance(step.kind, Entrywise):
            shape = self.values[step.bias or ""].shape
            return step.kind.slopes(derivative, layout, self.samples, shape)
        return layout.rows(step.kind.last(derivative, self.given[place]), self.samples)
