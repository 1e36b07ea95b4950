"""Whether gradients of a block of samples agree with those of autograd for a sample alone."""

from __future__ import annotations

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
        total = sum(float(part.double().norm()) ** 2 for part in true.values()) ** 0.5
        if not total < float("inf"):
            return set()  # the kernel is not finite, which has a sentence of its own
        wrong = set()
        for name, part in true.items():
            apart = float((self._own(factors, name, place) - part.flatten()).double().norm())
            if not apart <= self.largest * float(part.double().norm()) + self.rounding * total:
                wrong.add(name)
        return wrong

    def _own(self, factors: Factors, name: str, place: int) -> Any:
        """The gradient of the sum in one parameter, from the factors."""
        value = self.gradients.params[name]
        if name in factors.rows:
            rows = torch.as_tensor(factors.rows[name][place])
        elif name in factors.layers:
            h, slopes = (torch.as_tensor(part[place : place + 1]) for part in factors.layers[name])
            step = self.gradients.plan.steps[self.gradients.plan.uses[name][0][0]]
            kind: Any = step.kind
            rows = kind.whole(h, slopes, value.shape)[0]
        else:
            return torch.zeros_like(value).flatten()
        return (self.weights.to(rows) @ rows).to(value)
