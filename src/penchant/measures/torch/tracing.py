"""Which operations of a torch module use its parameters, found and checked on two samples.

The gradient of a sample from these operations must equal that of autograd and must not depend on
the other sample. torch.func computes the gradients in parameters that fail this check.
"""

from __future__ import annotations

import collections
import dataclasses
from typing import Any

import torch

from penchant.limits import Turns
from penchant.measures.torch.module import TorchFunction
from penchant.measures.torch.plans import ModulePlan, Pass, dense, derivatives
from penchant.measures.torch.tape import Call, ParameterTrace, Step, Unlike, output_name
from penchant.measures.torch.uses import ENTRYWISE, OPERATIONS, Lookup, SampleLayout

ALIKE = 1e-3  # the largest relative difference of a gradient and that from the operations
ROUNDING = 30  # times the machine precision, relative to the size of the summands
COARSE = 1e-4  # for a larger machine precision, rounding is not taken into account
SEPARATE = 1e-6  # largest share of a derivative that may come from the other sample
MOVED = 0.02  # relative change of the parameters before the test, as zeros hide dependences


def traced(function: TorchFunction, x: Any) -> ModulePlan:
    """The plan for as many parameters of the module as possible, tested on the inputs `x`."""
    try:
        return Trial(function, x).plan()
    except Exception:  # an unusual module: torch.func computes everything
        return ModulePlan()


class Trial:
    """Two samples on which the module is tested, with parameters of which none is zero."""

    def __init__(self, function: TorchFunction, x: Any):
        self.function, self.one, self.two = function, x[:1], x[[0, -1]]
        self.params = _moved(function.parameters())
        with torch.no_grad():
            if not bool(torch.isfinite(function(self.params, self.two)).all()):
                self.params = function.parameters()

    def plan(self) -> ModulePlan:
        """The plan for the parameters whose gradients it computes rightly."""
        plan = self._planned()
        whole, outputs = self._by_autograd()
        done = Pass(self.function, plan, self.params, self.two)
        if not _alike(done.outputs, outputs):
            raise Unlike
        parts = [done.derivatives(_goal(done.outputs, i))[0] for i in (0, 1)]
        for place in done.tape.points:
            done.tape.steps[place] = _ordered(done, place, [part[place] for part in parts])
        plan = dataclasses.replace(plan, steps=done.tape.steps)
        plan = done.plan = plan.without(plan.unknown)
        wrong = {name for i in (0, 1) for name in _wrong(done, i, parts[i], whole[i])}
        idle = set(self.function.names) - plan.left - wrong - plan.served
        return dataclasses.replace(plan, idle=tuple(sorted(idle))).without(wrong)

    def _planned(self) -> ModulePlan:
        """The plan from the operations with one sample and with two.

        Parameters that other operations use for two samples, as in a loop over them, are not
        followed.
        """
        params, single, double = self.params, *self._calls(self.params)
        turns = Turns(len(params) + 1, "the trace of a module")
        while differing := params.keys() & dict(_counts(single) ^ _counts(double)):
            turns.take()
            params = {name: value for name, value in params.items() if name not in differing}
            single, double = self._calls(params)
        steps = SharedSteps(params)
        for pair in zip(single, double, strict=True):
            steps.add(*pair)
        left = frozenset(self.params.keys() - params.keys())
        plan = ModulePlan(steps.steps, steps.roots, steps.behind, left=left)
        return plan.without(plan.unknown)

    def _calls(self, params: dict[str, Any]) -> tuple[list[Call], list[Call]]:
        """The operations with these parameters, for one sample and for two."""
        traces = ParameterTrace(params), ParameterTrace(params)
        for trace, x in zip(traces, (self.one, self.two), strict=True):
            with torch.no_grad(), trace:
                self.function(self.params, x)
        return traces[0].calls, traces[1].calls

    def _by_autograd(self) -> tuple[list[dict[str, Any]], Any]:
        """The gradients of the goals of both samples, and the outputs."""
        grown = {name: value.clone().requires_grad_() for name, value in self.params.items()}
        outputs = self.function(grown, self.two).reshape(2, -1)
        whole = []
        for i in (0, 1):
            parts = derivatives(_goal(outputs, i), list(grown.values()))
            pairs = zip(grown.items(), parts, strict=True)
            whole.append({n: torch.zeros_like(v) if g is None else dense(g) for (n, v), g in pairs})
        return whole, outputs.detach()


class SharedSteps:
    """The operations with shared values among all calls of two passes."""

    def __init__(self, params: dict[str, Any]):
        self.steps: list[Step] = []
        self.params = frozenset(params)
        self.roots = {name: frozenset([name]) for name in params}
        self.behind = dict(self.roots)
        self.shapes = {name: tuple(value.shape) for name, value in params.items()}
        self.names = {name: name for name in params}  # of the shared values, by those in the calls
        self.calls = 0

    def add(self, single: Call, double: Call) -> None:
        """Add the calls at one place in the passes with one sample and with two, if they count."""
        if single[:5] != double[:5] or single.lost != double.lost:
            raise Unlike
        values = tuple(self.names[name] for name in single.values if name in self.names)
        if values:
            shares = (
                single.outputs == double.outputs
                and not single.lost
                and len(values) == len(single.values)
            )
            self.steps.append(
                self._shared(single, values) if shares else self._met(single, double, values)
            )
        self.calls += 1

    def _shared(self, call: Call, values: tuple[str, ...]) -> Step:
        """An operation of shared values alone."""
        step = Step(call.function, values, shares=True)
        kind, whole = OPERATIONS.get(call.function), call.weight in self.params
        if isinstance(kind, Lookup) and whole and len(values) == 1:
            step = step._replace(kind=kind, weight=call.weight)
        roots, behind = (
            frozenset[str]().union(*(known[name] for name in values))
            for known in (self.roots, self.behind)
        )
        for number, shape in enumerate(call.outputs):
            name = output_name(len(self.steps), number)
            self.names[output_name(self.calls, number)] = name
            self.shapes[name], self.behind[name] = shape, behind
            self.roots[name] = frozenset([name]) if step.is_table else roots
        return step

    def _met(self, single: Call, double: Call, values: tuple[str, ...]) -> Step:
        """An operation of shared values and samples; without a layout if it is not a known one."""
        step = Step(single.function, values)
        if len(single.outputs) != 1:
            return step
        weight, bias = (self.names.get(name or "") for name in (single.weight, single.bias))
        shapes, kind = (single.outputs[0], double.outputs[0]), OPERATIONS.get(single.function)
        if kind is not None and {weight, bias} >= set(values):
            features = 1 if kind.channels == 1 else len(shapes[1]) - 1
            layout = _layout(*shapes, features)
            return step._replace(kind=kind, weight=weight, bias=bias, layout=layout)
        entrywise = ENTRYWISE.get(single.function)
        alone = len(values) == 1 and values[0] in [self.names.get(name) for name in single.outer]
        layout = _layout(*shapes, len(shapes[1]))
        if entrywise is None or not alone or layout is None:
            return step
        layout = layout._replace(axis=layout.axis - len(shapes[1]))
        fits = entrywise.fits(self.shapes[values[0]], layout.axis)
        return step._replace(kind=entrywise, bias=values[0], layout=layout) if fits else step


def _counts(calls: list[Call]) -> set[tuple[str, int]]:
    """How many operations use each value."""
    return set(collections.Counter(name for call in calls for name in call.values).items())


def _goal(outputs: Any, sample: int) -> Any:
    """A number that depends on all outputs of a sample."""
    numbers = torch.cos(1 + torch.arange(outputs.shape[1])).to(outputs)
    return (outputs[sample] * numbers).sum()


def _ordered(done: Pass, place: int, parts: list[Any]) -> Step:
    """The operation with an order in which each sample depends only on its own part."""
    step = done.tape.steps[place]
    assert step.layout is not None
    for layout in _options(step.layout):
        done.tape.steps[place] = step._replace(layout=layout)
        slopes = [done.tape.slopes(place, part) for part in parts]
        sizes = [float(part.norm()) for part in slopes]
        others = [float(part[1 - i].norm()) for i, part in enumerate(slopes)]
        apart = all(other <= SEPARATE * size for other, size in zip(others, sizes, strict=True))
        if apart and (sum(sizes) > 0 or layout.times == 1):  # zeros do not reveal the order
            return done.tape.steps[place]
    return step.plain()


def _wrong(done: Pass, sample: int, parts: dict[int, Any], whole: dict[str, Any]) -> list[str]:
    """The parameters whose gradients by the plan differ from the `whole` ones of autograd."""
    known = {p: part for p, part in parts.items() if done.tape.steps[p].layout is not None}
    slopes = {place: part[:, :, None] for place, part in done.slopes(known).items()}
    rows, wrong = done.gradients(slopes), []
    for name, true in whole.items():
        own = rows[name][sample].reshape(true.shape) if name in rows else torch.zeros_like(true)
        if not _small(own - true, true, done.size(name, slopes)):
            wrong.append(name)
    return wrong


def _layout(single: tuple[int, ...], double: tuple[int, ...], features: int) -> SampleLayout | None:
    """The axis of the samples, before the `features`, in outputs for one sample and for two."""
    axes = [axis for axis, (a, b) in enumerate(zip(single, double, strict=False)) if a != b]
    if len(single) != len(double) or len(axes) != 1 or axes[0] >= features:
        return None
    axis = axes[0]
    return SampleLayout(axis, single[axis]) if double[axis] == 2 * single[axis] else None


def _options(layout: SampleLayout) -> list[SampleLayout]:
    return [layout, layout._replace(inner=True)] if layout.times > 1 else [layout]


def _alike(outputs: Any, expected: Any) -> bool:
    same = outputs.shape == expected.shape
    return same and _small(outputs - expected, expected, float(expected.norm()))


def _small(apart: Any, true: Any, size: float) -> bool:
    """True if a difference is small relative to the true value, or is rounding of the summands."""
    eps = torch.finfo(true.dtype).eps
    rounding = ROUNDING * eps * size if eps < COARSE else 0.0
    return float(apart.norm()) <= ALIKE * float(true.norm()) + rounding


def _moved(params: dict[str, Any]) -> dict[str, Any]:
    """Parameters near the given ones, none of them zero, as zeros hide dependences."""
    random, moved = torch.Generator().manual_seed(0), {}
    for name, value in params.items():
        noise = torch.randn(value.shape, generator=random).to(value)
        size = float(value.double().square().mean().sqrt()) or 1.0
        moved[name] = value + MOVED * size * noise
    return moved
