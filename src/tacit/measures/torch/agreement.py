"""Whether gradients of a block of samples agree with those of autograd for a sample alone."""

from __future__ import annotations

import math
from typing import Any

import torch

from tacit.measures.kernels.factors import Factors
from tacit.measures.torch.gradients import TorchGradients, tolerance

ROUNDING = 1000  # units of the last place of the whole gradient that count as rounding


class Agreement:
    """Compares gradients of the samples `x`, of one sum of the outputs with fixed weights.

    Rounding can change on which side of a kink a single sample is. So three samples are compared if
    the first of them differs, and two of the three decide.
    """

    def __init__(self, gradients: TorchGradients, x: Any):
        self.gradients, self.x = gradients, x
        self.weights = torch.cos(1 + torch.arange(gradients.outputs))
        self.true: dict[int, dict[str, Any]] = {}
        values = gradients.params.values()
        self.rounding = ROUNDING * max(torch.finfo(value.dtype).eps for value in values)
        self.largest = tolerance(values)

    def wrong(self, factors: Factors) -> set[str]:
        """The parameters in which the gradients differ."""
        last = len(self.x) - 1
        found = self._differing(factors, last)
        if not found or last < 2:
            return found
        first, second = (self._differing(factors, place) for place in (0, last // 2))
        return (found & first) | (found & second) | (first & second)

    def _differing(self, factors: Factors, place: int) -> set[str]:
        if place not in self.true:
            of = self.gradients
            (self.true[place],) = of.alone(of.params, self.x[place], self.weights)
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
