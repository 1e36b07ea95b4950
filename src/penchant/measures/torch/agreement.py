"""Whether gradients of a block of samples agree with those of autograd for a sample alone."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Protocol

from penchant.lazy import torch
from penchant.measures.kernels.factors import Factors

FINEST = 1e-6  # largest relative difference of two gradients in float64
STEPS = 8192  # and in a coarser precision, in units of the last place,
COARSEST = 0.1  # but at most this
ROUNDING = 1000  # units of the last place of the whole gradient that count as rounding


def tolerance(values: Iterable[Any]) -> float:
    """The largest relative difference of two gradients in the precision of these parameters."""
    eps = max(torch.finfo(value.dtype).eps for value in values)
    return float(min(COARSEST, max(FINEST, STEPS * eps)))


class Compared(Protocol):
    """Gradients at `params` by a `plan`, and those of one sample `alone` by autograd."""

    params: dict[str, Any]
    plan: Any
    outputs: int

    def alone(
        self, inner: dict[str, Any], sample: Any, weights: Any = None
    ) -> list[dict[str, Any]]: ...


class Agreement:
    """Compares gradients of the samples `x`, of one sum of the outputs with fixed weights.

    Rounding can change on which side of a kink a single sample is. So three samples are compared if
    the first of them differs, and two of the three decide.
    """

    def __init__(self, gradients: Compared, x: Any):
        self.gradients, self.x = gradients, x
        self.weights = torch.cos(1 + torch.arange(gradients.outputs))
        self.true: dict[int, dict[str, Any]] = {}
        values = gradients.params.values()
        self.largest = tolerance(values)
        eps = max(torch.finfo(value.dtype).eps for value in values)
        self.rounding = min(ROUNDING * eps, self.largest)

    def wrong(self, factors: Factors) -> set[str]:
        """The parameters in which the gradients differ."""
        last = len(self.x) - 1
        third = self._differing(factors, last)
        if not third or last < 2:
            return third
        first, second = (self._differing(factors, place) for place in (0, last // 2))
        return (first & second) | (first & third) | (second & third)

    def _differing(self, factors: Factors, place: int) -> set[str]:
        if place not in self.true:
            params = self.gradients.params
            (self.true[place],) = self.gradients.alone(params, self.x[place], self.weights)
        true = self.true[place]
        sizes = {name: _length(part) for name, part in true.items()}
        total = math.hypot(*sizes.values())
        if not total < float("inf"):
            return set()  # the kernel is not finite, which has a sentence of its own
        wrong = set()
        for name, part in true.items():
            apart = _length(self._own(factors, name, place) - part.flatten())
            if not apart <= self.largest * sizes[name] + self.rounding * total:
                wrong.add(name)
        return wrong

    def _own(self, factors: Factors, name: str, place: int) -> Any:
        """The gradient of the sum in one parameter, from the factors."""
        value = self.gradients.params[name]
        if name in factors.rows:
            rows = torch.as_tensor(factors.rows[name][place])
            return (self.weights.to(rows) @ rows).to(value)
        if name in factors.layers:
            h, slopes = (torch.as_tensor(part[place : place + 1]) for part in factors.layers[name])
            step = self.gradients.plan.steps[self.gradients.plan.uses[name][0][0]]
            kind: Any = step.kind
            summed = torch.einsum("ntco,c->nto", slopes, self.weights.to(slopes))
            return kind.whole(h, summed[:, :, None], value.shape).flatten().to(value)
        return torch.zeros_like(value).flatten()


def _length(vector: Any) -> float:
    return float(torch.linalg.vector_norm(vector, dtype=torch.float64))
