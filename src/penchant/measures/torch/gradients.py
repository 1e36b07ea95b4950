"""Gradients of the samples of a torch module, in blocks for the tangent kernel."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from penchant.arguments import Array
from penchant.door import Invalid
from penchant.lazy import torch
from penchant.limits import Turns
from penchant.measures.kernels.blocks import LARGEST, Gradients
from penchant.measures.kernels.factors import Factors
from penchant.measures.torch.agreement import Agreement
from penchant.measures.torch.module import TorchFunction, as_array

if TYPE_CHECKING:
    from penchant.measures.torch.plans import ModulePlan, Pass, Uses


class Costs(NamedTuple):
    """Of one sample: bytes of its gradients and of their factors, and uses of a layer."""

    held: int
    spread: int
    times: int


class TorchGradients(Gradients):
    """Gradients of the outputs in the trained parameters of `function`.

    They are computed at the live parameters, or at those given to `move`. Gradients in parameters
    of known operations (see penchant.measures.torch.uses) are factors, or products of factors;
    torch.func computes all others for all samples of a block at once, or autograd sample by
    sample where torch.func fails. For every size of a block the gradients of one sample are
    compared with those that autograd gives for it alone.
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
        from penchant.measures.torch.plans import ModulePlan
        from penchant.measures.torch.tracing import traced

        self.function, self.every = function, outputs
        self.model = function
        self.params = function.parameters()
        self.names = {name: name for name in function.names}
        self.plan = ModulePlan()
        if factored:
            with function.quiet():
                self.plan = traced(function, x)
        self.together = True
        self.compared: set[int] = set()  # sizes of blocks compared with autograd
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
        return [name for name in self.function.names if name not in self.plan.served]

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
        outputs = np.concatenate(parts)
        return outputs if self.selected is None else outputs[:, [self.selected]]

    def block(self, x: Any, size: int) -> Factors:
        with self.function.quiet():
            factors = self._tried(x)
            if len(x) not in self.compared:
                factors = self._compared(x, factors)
                self.compared.add(len(x))
            return factors

    def _tried(self, x: Any) -> Factors:
        """The gradients by the plan, or without one if its pass fails in any way."""
        from penchant.measures.torch.plans import ModulePlan

        try:
            return self._factors(x)
        except Exception:
            if not self.plan.served:
                raise
            self._replan(ModulePlan())
            return self._factors(x)

    def _replan(self, plan: ModulePlan) -> None:
        self.plan, self.last, self.form = plan, None, self.form + 1

    def measure(self) -> None:
        self.costs.clear()
        self._select(self.selected)

    def _compared(self, x: Any, factors: Factors) -> Factors:
        """The gradients, after those of one sample were compared with autograd.

        Where they differ, they are computed without torch.func, or without the plan; in the end
        autograd computes all of them sample by sample.
        """
        agreement = Agreement(self, x)
        turns = Turns(len(self.plan.served) + 2, "the comparison of gradients")
        while wrong := agreement.wrong(factors):
            turns.take()
            if self.together and wrong.intersection(self.rest):
                self.together = False
            elif served := wrong.intersection(self.plan.served):
                self._replan(self.plan.without(served))
            else:
                raise Invalid(
                    f"autograd gives two different gradients of one sample "
                    f"in {min(wrong)}; the module must be deterministic in eval mode"
                )
            factors = self._tried(x)
        return factors

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
        slopes = self._slopes(done)
        pulled = done.pulled(slopes)
        for name in self.plan.served.difference(self.plan.idle):
            uses = [use for use in self.plan.uses.get(name, []) if use[0] in slopes]
            if name not in pulled and self._pays(done, name, uses, slopes):
                place = uses[0][0]
                layers[name] = as_numbers(done.tape.input(place)), as_numbers(slopes[place])
            else:
                rows[name] = as_numbers(self._row(done, name, uses, slopes, pulled))
        made = [*slopes.values(), *done.tape.inputs.values(), *pulled.values()]
        self.spread = sum(part.numel() * part.element_size() for part in made) // len(x)

    def _pays(self, done: Pass, name: str, uses: Uses, slopes: dict[int, Any]) -> bool:
        """True if factors are better than the whole gradients."""
        if len(uses) != 1 or not uses[0][1]:
            return False
        place = uses[0][0]
        kind: Any = self.plan.steps[place].kind
        return bool(kind.pays(done.tape.input(place), slopes[place], self.params[name].shape))

    def _row(self, done: Pass, name: str, uses: Uses, slopes: dict[int, Any], pulled: Any) -> Any:
        """The whole gradients (n, C, size) in a parameter."""
        shape = self.params[name].shape
        parts = [pulled[name]] if name in pulled else []
        if uses:
            parts.append(done.summed(uses, slopes, shape))
        if not parts:  # the module detaches it
            return self.params[name].new_zeros(len(done.outputs), self.outputs, shape.numel())
        return parts[0] if len(parts) == 1 else parts[0] + parts[1]

    def _passed(self, x: Any) -> Pass:
        """A forward pass; in `singles` all outputs share that of the last block."""
        from penchant.measures.torch.plans import Pass

        mark = (x.data_ptr(), tuple(x.shape))
        if self.last is not None and self.last[0] == mark:
            return self.last[1]
        self.last = None  # frees its memory before the next pass
        done = Pass(self.function, self.plan, self.params, x)
        if self.in_turn:
            self.last = (mark, done)
        return done

    def _slopes(self, done: Pass) -> dict[int, Any]:
        """delta (n, T, C, O) of every operation."""
        from penchant.measures.torch.tape import Unlike

        steps: dict[int, list[Any]] = {}
        for c in range(self.every) if self.selected is None else [self.selected]:
            parts, idle = done.derivatives(done.outputs[:, c].sum())
            if any(part is not None and bool(part.any()) for part in idle):
                raise Unlike
            for place, part in done.slopes(parts).items():
                steps.setdefault(place, []).append(part)
        return {place: _stacked(parts, 2) for place, parts in steps.items()}

    def _whole(self, x: Any) -> list[Any]:
        """The gradients in the parameters outside the plan, each (n, C, size)."""
        inner = {name: self.params[name] for name in self.rest}
        gradients = None
        if self.together:
            try:
                jacobian = torch.func.vmap(torch.func.jacrev(self._one), in_dims=(None, 0))
                gradients = jacobian(inner, x)
            except Exception:
                self.together = False  # control flow on data, or an unknown operation
        if gradients is None:
            gradients = self._one_by_one(inner, x)
        shape = (len(x), self.outputs, -1)
        return [gradients[name].reshape(shape).detach() for name in self.rest]

    def _one(self, inner: dict[str, Any], x: Any) -> Any:
        outputs = self.function({**self.params, **inner}, x[None]).reshape(-1)
        return outputs if self.selected is None else outputs[self.selected : self.selected + 1]

    def _one_by_one(self, inner: dict[str, Any], x: Any) -> dict[str, Any]:
        rows = [row for sample in x for row in self.alone(inner, sample)]
        return {name: torch.stack([row[name] for row in rows]) for name in inner}

    def alone(
        self, inner: dict[str, Any], sample: Any, weights: Any = None
    ) -> list[dict[str, Any]]:
        """The gradients of the outputs of one sample by autograd, or of one sum with weights."""
        grown = {name: value.clone().requires_grad_() for name, value in inner.items()}
        outputs = self._one(grown, sample)
        goals = outputs if weights is None else [outputs @ weights.to(outputs)]
        return [dict(zip(inner, self._autograd(goal, grown), strict=True)) for goal in goals]

    def _autograd(self, goal: Any, leaves: dict[str, Any]) -> list[Any]:
        if not goal.requires_grad:
            return [torch.zeros_like(value) for value in leaves.values()]
        try:
            parts = torch.autograd.grad(
                goal, list(leaves.values()), retain_graph=True, materialize_grads=True
            )
        except Exception as reason:
            raise Invalid(
                f"autograd has no gradients of the module "
                f"({type(reason).__name__}: {str(reason).splitlines()[0]}); watch or measure a "
                "part of it that has"
            ) from None
        return [part.to_dense() if part.is_sparse else part for part in parts]

    def _measured(self) -> Costs:
        """The costs of one sample, measured on the first one."""
        in_turn, self.in_turn = self.in_turn, False
        with self.function.quiet():
            slopes = self._tried(self.sample)  # compared with autograd where it is part of a kernel
        self.in_turn = in_turn
        arrays = [*slopes.rows.values(), *(a for pair in slopes.layers.values() for a in pair)]
        held = sum(array.nbytes for array in arrays)
        met = [h.shape[1] for h, _ in slopes.layers.values() if h.dtype.kind == "f"]
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
