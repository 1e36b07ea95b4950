"""Which operations of a torch module use its parameters, found and checked on two samples.

The gradient of a sample from these operations must equal that of autograd and must not depend on
the other sample. torch.func computes the gradients in parameters that fail this check.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from tacit.measures.torch.module import TorchFunction
from tacit.measures.torch.tape import Step, Tape, Unlike
from tacit.measures.torch.uses import Layout

ALIKE = 1e-3  # the largest relative difference of a gradient and that from the operations
ROUNDING = 30  # times the machine precision, relative to the size of the summands
COARSE = 1e-4  # for a larger machine precision, rounding is not taken into account
SEPARATE = 1e-6  # largest share of a derivative that may come from the other sample
MOVED = 0.02  # relative change of the parameters before the test, as zeros hide dependences
MOST = 3  # most axes of length one between the samples and a copied parameter


class Plan(NamedTuple):
    """How one pass computes the gradients of a module: by operations, and by parameter copies.

    `copies` are parameters that act entry by entry (positions, scales, class tokens): every sample
    has its own copy, with this number of axes of length one in between, or in place of a first
    axis of length one (-1). No output depends on `idle` parameters; the plan does not compute
    gradients in those of `left`.
    """

    steps: list[Step]
    copies: dict[str, int]
    idle: list[str]
    left: frozenset[str]

    @property
    def uses(self) -> dict[str, list[tuple[int, bool]]]:
        """For every parameter the places of its operations, and whether it is their weight."""
        found: dict[str, list[tuple[int, bool]]] = {}
        for place, step in enumerate(self.steps):
            for name, weighs in ((step.weight, True), (step.bias, False)):
                if name is not None and name not in self.left:
                    found.setdefault(name, []).append((place, weighs))
        return found

    def without(self, names: set[str]) -> Plan:
        """The plan without these parameters: operations with these alone are ignored."""
        left = self.left | names
        steps = [s if {s.weight, s.bias} - left - {None} else s.plain() for s in self.steps]
        return self._replace(steps=steps, left=left)


NOTHING = Plan([], {}, [], frozenset())


class Pass(NamedTuple):
    """A forward pass, its outputs, and tensors in which derivatives can be taken."""

    tape: Tape
    outputs: Any
    copies: dict[str, Any]
    idle: dict[str, Any]


def forward(function: TorchFunction, plan: Plan, params: dict[str, Any], x: Any) -> Pass:
    """One pass over the samples `x`; raises Unlike if its operations are not those of the plan."""
    copies = {name: copied(params[name], ones, len(x)) for name, ones in plan.copies.items()}
    idle = {name: params[name].detach().clone().requires_grad_() for name in plan.idle}
    given = {**params, **copies, **idle}
    noted = {name: value for name, value in params.items() if name not in copies}
    tape = Tape(noted | idle, len(x), plan.steps)
    with tape:
        outputs = function(given, x).reshape(len(x), -1)
    tape.finished()
    return Pass(tape, outputs, copies, idle)


def copied(value: Any, ones: int, samples: int) -> Any:
    """A copy of a parameter for every sample, in which derivatives can be taken."""
    inner = value.shape[1:] if ones < 0 else (*(1,) * ones, *value.shape)
    single = value.detach().reshape(1, *inner)
    return single.expand(samples, *inner).clone().requires_grad_()


def derivatives(done: Pass, goal: Any) -> tuple[list[Any], dict[str, Any], dict[str, Any]]:
    """Derivatives of `goal` in the outputs of the operations, the copies and idle parameters."""
    points = [point for point in done.tape.points if point is not None]
    inner = iter(_grad(goal, [*points, *done.copies.values(), *done.idle.values()]))
    steps = [None if point is None else next(inner) for point in done.tape.points]
    copies = {n: _or_zeros(next(inner), value) for n, value in done.copies.items()}
    return steps, copies, {name: next(inner) for name in done.idle}


def _grad(goal: Any, tensors: list[Any]) -> list[Any]:
    if not tensors or not goal.requires_grad:
        return [None] * len(tensors)
    return list(torch.autograd.grad(goal, tensors, retain_graph=True, allow_unused=True))


def _or_zeros(found: Any, value: Any) -> Any:
    return torch.zeros_like(value) if found is None else found


def traced(function: TorchFunction, x: Any) -> Plan:
    """The plan for as many parameters of the module as possible, tested on the inputs `x`."""
    trial = Trial(function, x)
    try:
        plan = trial.plan()
    except Unlike:
        return NOTHING
    families: dict[Any, list[str]] = {}
    for name in sorted(plan.left):
        families.setdefault(trial.family(name), []).append(name)
    for first, *others in families.values():
        for ones in trial.choices(first):
            if (found := trial.with_copies(plan, [first], ones)) is not None:
                plan = (others and trial.with_copies(found, others, ones)) or found
                break
    return plan


class Trial:
    """Two samples on which the module is tested, with parameters of which none is zero."""

    def __init__(self, function: TorchFunction, x: Any):
        self.function, self.one, self.two = function, x[:1], x[[0, -1]]
        self.params = _moved(function.parameters())
        with torch.no_grad():
            if not bool(torch.isfinite(function(self.params, self.two)).all()):
                self.params = function.parameters()
        grown = {name: value.clone().requires_grad_() for name, value in self.params.items()}
        self.outputs = function(grown, self.two).reshape(2, -1)
        self.numbers = torch.cos(1 + torch.arange(self.outputs.shape[1])).to(self.outputs)
        whole = [_grad(self.goal(self.outputs, i), list(grown.values())) for i in (0, 1)]
        self.whole = [
            {n: _or_zeros(g, value) for (n, value), g in zip(grown.items(), part, strict=True)}
            for part in whole
        ]
        self.outputs = self.outputs.detach()

    def goal(self, outputs: Any, sample: int) -> Any:
        """A number that depends on all outputs of a sample."""
        return (outputs[sample] * self.numbers).sum()

    def plan(self) -> Plan:
        """The plan for parameters in known operations alone."""
        steps, names = self._steps(), frozenset(self.function.names)
        single = [s.plain() if s.layout == Layout(None) else s for s in steps]
        for tried in (steps, single):
            plan = Plan(tried, {}, [], frozenset())
            try:
                done = forward(self.function, plan, self.params, self.two)
            except Exception:  # a copy per sample of a common output does not fit
                continue
            if _alike(done.outputs, self.outputs):
                return self._checked(plan, done, names)
        raise Unlike

    def with_copies(self, plan: Plan, names: list[str], ones: int) -> Plan | None:
        """The plan with copies of these parameters as well; None if their gradients are wrong."""
        more = plan._replace(copies=plan.copies | dict.fromkeys(names, ones))
        try:
            done = forward(self.function, more, self.params, self.two)
            if not _alike(done.outputs, self.outputs):
                return None
            for i in (0, 1):
                _, copies, _ = derivatives(done, self.goal(done.outputs, i))
                for name in names:
                    true, made = self.whole[i][name], copies[name]
                    apart = made[i].reshape(true.shape) - true
                    if not _small(apart, true, made) or not _small(made[1 - i], true, made):
                        return None
        except Exception:  # a copy per sample does not broadcast in this way
            return None
        return more._replace(left=more.left - set(names))

    def family(self, name: str) -> Any:
        """A key shared by parameters that are usually used in the same way."""
        outer, _, last = name.rpartition(".")
        return type(self.function.module.get_submodule(outer)), last, self.params[name].shape

    def choices(self, name: str) -> list[int]:
        first = [-1] if self.params[name].shape[:1] == (1,) else []
        return [*first, *range(MOST + 1)]

    def _steps(self) -> list[Step]:
        """The operations; the axis of the samples follows from one sample and from two."""
        tapes = [Tape(self.params, len(part)) for part in (self.one, self.two)]
        for tape, part in zip(tapes, (self.one, self.two), strict=True):
            with torch.no_grad(), tape:
                self.function(self.params, part)
        first, second = tapes
        if len(first.seen) != len(second.seen):
            raise Unlike
        found = []
        for a, b, *shapes in zip(first.seen, second.seen, first.shapes, second.shapes, strict=True):
            if a != b:
                raise Unlike
            found.append(a._replace(layout=_layout(a, *shapes)))
        return found

    def _checked(self, plan: Plan, done: Pass, names: frozenset[str]) -> Plan:
        """The plan without the parameters for which its gradients are wrong."""
        slopes = [derivatives(done, self.goal(done.outputs, i))[0] for i in (0, 1)]
        steps = list(plan.steps)
        for place, step in enumerate(steps):
            options = [] if step.layout is None else _options(step.layout)
            good = (lay for lay in options if self._separate(done.tape, place, lay, slopes))
            steps[place] = done.tape.steps[place] = step._replace(layout=next(good, None))
        plan = plan._replace(steps=steps)
        used = plan.uses
        wrong = {name for name in names if not self._complete(name, used, done.tape, slopes)}
        idle = sorted(names - wrong - used.keys())
        return plan._replace(idle=idle).without(wrong)

    def _separate(self, tape: Tape, place: int, layout: Layout, slopes: Any) -> bool:
        """True if the outputs of each sample depend only on its own part."""
        tape.steps[place] = tape.steps[place]._replace(layout=layout)
        size = 0.0
        for i in (0, 1):
            found = tape.slopes(place, slopes[i][place])
            size += float(found.norm())
            if not float(found[1 - i].norm()) <= SEPARATE * float(found.norm()):
                return False
        return size > 0 or layout.times == 1  # zeros do not reveal the order

    def _complete(self, name: str, used: Any, tape: Tape, slopes: Any) -> bool:
        """True if the operations with a parameter give its whole gradients."""
        for i in (0, 1):
            true = self.whole[i][name]
            made, size = torch.zeros_like(true), 0.0
            for place, weighs in used.get(name, []):
                step = tape.steps[place]
                if step.layout is None:
                    return False
                h, part = tape.input(place), tape.slopes(place, slopes[i][place])[:, :, None]
                found = step.kind.whole(h, part, true.shape) if weighs else part.sum(dim=1)
                made += found[i].reshape(true.shape)
                size += float(part.norm()) * (float(h.double().norm()) if weighs else 1.0)
            if not _small(made - true, true, size):
                return False
        return True


def _layout(step: Step, one: tuple[int, ...], two: tuple[int, ...]) -> Layout | None:
    """The axis of the samples in outputs of these shapes, for one sample and for two."""
    if one == two:
        return Layout(None)
    axes = [axis for axis, (a, b) in enumerate(zip(one, two, strict=False)) if a != b]
    last = 1 if step.kind.channels == 1 else len(two) - 1  # before the features
    if len(one) != len(two) or len(axes) != 1 or axes[0] >= last:
        return None
    return Layout(axes[0], one[axes[0]]) if two[axes[0]] == 2 * one[axes[0]] else None


def _options(layout: Layout) -> list[Layout]:
    both = layout.axis is not None and layout.times > 1
    return [layout, layout._replace(inner=True)] if both else [layout]


def _alike(found: Any, expected: Any) -> bool:
    return found.shape == expected.shape and _small(found - expected, expected, expected)


def _small(apart: Any, true: Any, summed: Any) -> bool:
    """True if a difference is small relative to the true value, or is rounding of the summands."""
    size = float(summed.norm()) if isinstance(summed, torch.Tensor) else summed
    eps = torch.finfo(true.dtype).eps
    rounding = ROUNDING * eps * size if eps < COARSE else 0.0
    return float(apart.norm()) <= ALIKE * float(true.norm()) + rounding


def _moved(params: dict[str, Any]) -> dict[str, Any]:
    """Parameters near the given ones, none of them zero, as zeros hide dependences."""
    random, found = torch.Generator().manual_seed(0), {}
    for name, value in params.items():
        noise = torch.randn(value.shape, generator=random).to(value)
        size = float(value.double().square().mean().sqrt()) or 1.0
        found[name] = value + MOVED * size * noise
    return found
