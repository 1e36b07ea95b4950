"""The derivative of a torch module along a change of its parameters."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import Any

from penchant.lazy import torch
from penchant.measures.kernels.blocks import LARGEST
from penchant.measures.torch.agreement import tolerance
from penchant.measures.torch.gradients import TorchGradients
from penchant.measures.torch.module import TorchFunction

Tree = dict[str, Any]
Route = Callable[[Tree, Tree, Any], tuple[Any, Any]]

ROOM = 2**28  # bytes of the gradients of all samples that are held at a time


class Directional:
    """f and J v on the samples `x`, by the first route that agrees with autograd.

    The routes are forward derivatives, the derivative of u -> J^T u, and the gradients of all
    samples. The first two need derivatives that some operations of torch do not have, or have
    wrong.
    """

    def __init__(self, function: TorchFunction, x: Any, outputs: int):
        self.function, self.x, self.outputs = function, x, outputs
        self.gradients: TorchGradients | None = None
        self.route: Route | None = None
        with function.quiet():
            good = (route for route in (self._forward, self._twice) if self._agrees(route))
            self.route = next(good, None)

    def __call__(self, start: Tree, change: Tree) -> tuple[Any, Any]:
        with self.function.quiet():
            if self.route is not None:
                with contextlib.suppress(Exception):  # an operation that the check did not meet
                    return self.route(start, change, self.x)
                self.route = None
            return self._by_rows(start, change)

    def _agrees(self, route: Route) -> bool:
        """True if <u, J v> is that of autograd, for one sample."""
        sample, start = self.x[-1:], self.function.parameters()
        change = {name: _waves(value) * _size(value) for name, value in start.items()}
        try:
            slope = route(start, change, sample)[1].reshape(-1)
            parts = self._pulled(start, sample)
        except Exception:  # an operation without these derivatives
            return False
        true = sum(_dot(part, v) for part, v in zip(parts, change.values(), strict=True))
        lengths = [sum(_dot(v, v) for v in vectors) for vectors in (parts, change.values())]
        apart = abs(_dot(slope, _waves(slope)) - true)
        return apart <= tolerance(start.values()) * math.sqrt(math.prod(lengths))

    def _pulled(self, start: Tree, x: Any) -> list[Any]:
        """J^T u by autograd."""
        leaves = [value.clone().requires_grad_() for value in start.values()]
        outputs = self.function(dict(zip(start, leaves, strict=True)), x).reshape(-1)
        goal = (outputs * _waves(outputs)).sum()
        return list(torch.autograd.grad(goal, leaves, materialize_grads=True))

    def _run(self, x: Any) -> Callable[[Tree], Any]:
        return lambda params: self.function(params, x)

    def _forward(self, start: Tree, change: Tree, x: Any) -> tuple[Any, Any]:
        return forward_derivative(self._run(x), start, change)

    def _twice(self, start: Tree, change: Tree, x: Any) -> tuple[Any, Any]:
        return double_derivative(self._run(x), start, change)

    def _by_rows(self, start: Tree, change: Tree) -> tuple[Any, Any]:
        """From the gradients of all samples."""
        if self.gradients is None:
            self.gradients = TorchGradients(self.function, self.x, self.outputs, None, False)
        self.gradients.params = start
        value, slopes = self.function(start, self.x), []
        step = max(1, min(LARGEST, ROOM // max(1, self.gradients.held)))
        for at in range(0, len(self.x), step):
            rows = self.gradients.block(self.x[at : at + step], step).rows
            parts = (torch.as_tensor(rows[n]).to(v) @ v.flatten() for n, v in change.items())
            slopes.append(sum(parts))
        return value, torch.cat(slopes).reshape(value.shape)


def forward_derivative(run: Callable[[Tree], Any], start: Tree, change: Tree) -> tuple[Any, Any]:
    """f and J v by forward derivatives."""
    value, slope = torch.func.jvp(run, (start,), (change,))
    return value, slope


def double_derivative(run: Callable[[Tree], Any], start: Tree, change: Tree) -> tuple[Any, Any]:
    """f and J v, the derivative of u -> J^T u along v."""
    value, pull = torch.func.vjp(run, start)
    zeros = torch.utils._pytree.tree_map(torch.zeros_like, value)
    _, push = torch.func.vjp(lambda u: pull(u)[0], zeros)
    return value, push(change)[0]


def _waves(value: Any) -> Any:
    """Fixed numbers without a pattern, in the shape of `value`."""
    return torch.cos(1 + torch.arange(value.numel(), device=value.device)).to(value).view_as(value)


def _size(value: Any) -> float:
    """The root mean square of the entries, or 1 if all are zero."""
    return float(value.square().mean(dtype=torch.float64).sqrt()) or 1.0


def _dot(first: Any, second: Any) -> float:
    both = [part.to_dense() if part.is_sparse else part for part in (first, second)]
    return float((both[0].detach() * both[1].detach()).sum(dtype=torch.float64))
