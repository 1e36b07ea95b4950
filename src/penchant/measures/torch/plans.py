"""How one pass computes the gradients of all samples of a torch module, and such a pass.

How it works. The gradient of sample n in the weight of a linear layer is the outer product of its
input h_n and of delta_n, the derivative of the output in what the layer returns; convolutions,
embeddings and biases have forms of the same kind. So one forward pass that keeps the inputs of all
operations with parameters, and one backward pass of an output summed over the samples, give its
gradients for all samples at once: samples do not mix, hence the derivative of the sum in row n is
that of sample n. A `ModulePlan` lists these operations as a `tape` recorded them on test inputs; a
`Pass` runs the module again and refuses (`Unlike`) if its operations differ.

A weight may be computed from parameters: normalized, tied, sliced. Such shared values (names that
begin with "#") get their gradients first, and autograd then takes them back to their parameters,
for all samples in one batched call.

Why not torch.func alone: it computes every gradient in full, while here the factors h and delta are
often much smaller and the kernel of a layer is a product of their kernels. Gradients in parameters
of operations that are not known are computed by torch.func, or sample by sample (`gradients`); for
every size of a block those of one sample are compared with what autograd gives for it alone.

Pitfalls. A parameter that is used twice has one gradient, the sum over its uses, so whole gradients
are added before anything is squared. A value detached from its parameters has none. The gradient of
Embedding(sparse=True) is sparse and is made dense.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable
from typing import Any

import torch

from penchant.measures.torch.module import TorchFunction
from penchant.measures.torch.tape import Step, Tape, output_name

Uses = list[tuple[int, bool]]  # places of operations, and whether a value is their weight


@dataclasses.dataclass(frozen=True)
class ModulePlan:
    """The operations of a module with its parameters, and with what it computes from these alone.

    `roots` are, for each shared value, the parameters and rows of tables from which autograd
    computes it, and `behind` the parameters alone. No output depends on `idle` parameters; the plan
    does not compute gradients in those of `left`.
    """

    steps: list[Step] = dataclasses.field(default_factory=list)
    roots: dict[str, frozenset[str]] = dataclasses.field(default_factory=dict)
    behind: dict[str, frozenset[str]] = dataclasses.field(default_factory=dict)
    idle: tuple[str, ...] = ()
    left: frozenset[str] = frozenset()

    @functools.cached_property
    def tables(self) -> dict[str, int]:
        """The places of the tables, by the names of their rows."""
        places = (place for place, step in enumerate(self.steps) if step.is_table)
        return {output_name(place, 0): place for place in places}

    @functools.cached_property
    def uses(self) -> dict[str, Uses]:
        """For every shared value the places of its operations, and whether it is their weight."""
        uses: dict[str, Uses] = {}
        for place, step in enumerate(self.steps):
            if step.layout is None and not step.is_table:
                continue
            for name, weighs in ((step.weight, True), (step.bias, False)):
                if name is not None and not self.behind[name] <= self.left:
                    uses.setdefault(name, []).append((place, weighs))
        return uses

    @functools.cached_property
    def served(self) -> frozenset[str]:
        """The parameters in which the plan computes gradients."""
        return frozenset(self.idle).union(*(self.behind[name] for name in self.uses)) - self.left

    @functools.cached_property
    def unknown(self) -> frozenset[str]:
        """The parameters with operations in which no derivatives are taken."""
        steps = (step for step in self.steps if not step.shares and step.layout is None)
        return frozenset().union(*(self.behind[name] for step in steps for name in step.values))

    def without(self, names: Iterable[str]) -> ModulePlan:
        """The plan without these parameters: operations with these alone are ignored."""
        left = self.left.union(names)
        steps = [
            step if any(not self.behind[name] <= left for name in step.values) else step.plain()
            for step in self.steps
        ]
        idle = tuple(name for name in self.idle if name not in left)
        return dataclasses.replace(self, steps=steps, left=left, idle=idle)


class Pass:
    """A forward pass, its outputs, and the tensors in which derivatives are taken.

    It raises Unlike if its operations are not those of the plan.
    """

    def __init__(self, function: TorchFunction, plan: ModulePlan, params: dict[str, Any], x: Any):
        self.plan = plan
        inner = {root for name in plan.uses if name.startswith("#") for root in plan.roots[name]}
        grown = [name for name in params if name in inner or name in plan.idle]
        given = params | {name: params[name].detach().clone().requires_grad_() for name in grown}
        followed = {name: value for name, value in given.items() if name in plan.roots}
        self.tape = Tape(followed, len(x), plan.steps)
        with self.tape:
            self.outputs = function(given, x).reshape(len(x), -1)
        self.tape.finished()
        self.idle = [given[name] for name in plan.idle]

    def derivatives(self, goal: Any) -> tuple[dict[int, Any], list[Any]]:
        """The derivatives of `goal` where every operation needs them, and in idle parameters."""
        points = self.tape.points
        inner = derivatives(goal, [*points.values(), *self.idle])
        return dict(zip(points, inner, strict=False)), inner[len(points) :]

    def slopes(self, parts: dict[int, Any]) -> dict[int, Any]:
        """delta (n, T, O) of every operation, from these derivatives."""
        return {place: self.tape.slopes(place, part) for place, part in parts.items()}

    def pulled(self, slopes: dict[int, Any]) -> dict[str, Any]:
        """Gradients (n, C, size) in parameters through values that are computed from these alone.

        delta of tables is added to `slopes` (n, T, C, O).
        """
        rows: dict[str, Any] = {}
        for name, uses in self.plan.uses.items():
            if name.startswith("#"):
                part = self.summed(uses, slopes, self.tape.values[name].shape)
                for root, inner in self._pull(name, part):
                    rows[root] = rows[root] + inner if root in rows else inner
        for name, place in self.plan.tables.items():
            if name in rows:
                slopes[place] = self._table_slopes(place, rows.pop(name))
        return rows

    def _pull(self, name: str, part: Any) -> list[tuple[str, Any]]:
        """The gradients in the roots of a shared value, from those in itself."""
        value, roots = self.tape.values[name], sorted(self.plan.roots[name])
        if roots == [name]:
            return [(name, part)]
        if not value.requires_grad:  # it is detached from its parameters
            return []
        each = part.reshape(-1, *value.shape)
        leaves = [self.tape.values[root] for root in roots]
        inner = torch.autograd.grad(
            value, leaves, each, retain_graph=True, allow_unused=True, is_grads_batched=True
        )
        shape = (*part.shape[:2], -1)
        pairs = zip(roots, inner, strict=True)
        return [
            (root, dense(gradient).reshape(shape))
            for root, gradient in pairs
            if gradient is not None
        ]

    def _table_slopes(self, place: int, rows: Any) -> Any:
        n, c, _ = rows.shape
        step, shape = self.plan.steps[place], self.tape.shapes[place]
        kind: Any = step.kind
        last = kind.last(rows.reshape(n, c, *shape), self.tape.given[place])
        return last.reshape(n, c, -1, shape[-1]).transpose(1, 2)

    def summed(self, uses: Uses, slopes: dict[int, Any], shape: Any) -> Any:
        """The whole gradients (n, C, size) in a value of this shape, over all its uses."""
        total = None
        for place, weighs in uses:
            kind: Any = self.plan.steps[place].kind
            if weighs:
                part = kind.whole(self.tape.input(place), slopes[place], shape)
            else:
                part = slopes[place].sum(dim=1)
            total = part if total is None else total + part
        return total

    def gradients(self, slopes: dict[int, Any]) -> dict[str, Any]:
        """The whole gradients (n, C, size) in every parameter of the plan that has some."""
        rows = self.pulled(slopes)
        for name, uses in self.plan.uses.items():
            met = [use for use in uses if use[0] in slopes]
            if met and not name.startswith("#"):
                part = self.summed(met, slopes, self.tape.values[name].shape)
                rows[name] = rows[name] + part if name in rows else part
        return {name: part for name, part in rows.items() if name not in self.plan.left}

    def size(self, name: str, slopes: dict[int, Any]) -> float:
        """The size of the summands of a gradient, which limits its rounding errors."""
        total = 0.0
        for value, uses in self.plan.uses.items():
            if name in self.plan.behind[value]:
                for place, weighs in uses:
                    if place in slopes:
                        h = float(self.tape.input(place).double().norm()) if weighs else 1.0
                        total += h * float(slopes[place].norm())
        return total


def derivatives(goal: Any, inputs: list[Any]) -> list[Any]:
    """The derivatives of `goal`, or None in what it does not depend on."""
    if not inputs or not goal.requires_grad:
        return [None] * len(inputs)
    return list(torch.autograd.grad(goal, inputs, retain_graph=True, allow_unused=True))


def dense(gradient: Any) -> Any:
    """A gradient as a plain tensor; that of Embedding(sparse=True) is a sparse one."""
    return gradient.to_dense() if gradient.is_sparse else gradient
