"""A method whose learning rate follows a schedule."""

from __future__ import annotations

import bisect
import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from penchant.arguments import Array, finite_array
from penchant.door import Invalid, door
from penchant.lazy import jnp
from penchant.records import assign
from penchant.training.descent.clock import Clock, VariableClock
from penchant.training.descent.method import Oracle, Scheme, StepMethod, Wrapped

PIECES = 12  # pieces of constant learning rate by which a prediction replaces a linear change


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Scheduled(Wrapped):
    """A step-by-step method whose learning rate is multiplied by a factor that changes.

    The factor has given values at given steps and is linear in between; before the first and after
    the last it is constant. Two equal steps make it jump.

    Parameters
    ----------
    method
        A method with a fixed learning rate.
    steps
        The steps at which the factor is given, which must not fall.
    factors
        The factor at each of them, at least 0 and not all 0.

    Examples
    --------
    >>> import penchant
    >>> plain = penchant.GradientDescent(0.01)
    >>> warm = penchant.methods.Scheduled(plain, [0, 100, 1000], [0.0, 1.0, 0.0])
    >>> problem = penchant.problems.sparse_regression(8, 20, sparsity=2)
    >>> net = penchant.DiagonalNet(2, alpha=0.1)
    >>> round(penchant.train(net, problem, warm, stop=penchant.Steps(1000)).t, 6)
    5.0
    """

    steps: Sequence[int]
    factors: Sequence[float]

    @door
    def __post_init__(self) -> None:
        method, steps, factors = self.method, self.steps, self.factors
        if not (isinstance(method, StepMethod) and method.scheme.clock.steady):
            raise Invalid(f"needs a step-by-step method with a fixed learning rate, got {method!r}")
        at = finite_array("steps", steps, ndim=1)
        values = finite_array("factors", factors, ndim=1)
        if len(at) != len(values):
            raise Invalid(
                f"steps and factors must have one length, got {len(at)} and {len(values)}"
            )
        if (np.diff(at) < 0).any() or at[0] < 0 or (at != np.round(at)).any():
            raise Invalid(f"steps must be whole, >= 0 and not fall, got {steps!r}")
        if values.min() < 0 or not values.max() > 0:
            raise Invalid(f"factors must be >= 0 and not all 0, got {factors!r}")
        assign(self, steps=tuple(map(int, at)), factors=tuple(map(float, values)))

    @property
    def scheme(self) -> Scheme:
        inner = self.method.scheme
        largest = inner.learning_rate * max(self.factors)
        return inner._replace(step=self.step, clock=self.clock, learning_rate=largest)

    @property
    def clock(self) -> ScheduleClock:
        return ScheduleClock(self.method.scheme.clock, self.steps, self.factors)

    def step(self, oracle: Oracle, parameters: Any, memory: Any, k: Any) -> tuple[Any, Any]:
        now = self.method.with_numbers({"learning_rate": self.clock.rate(parameters, k)})
        return now.scheme.step(oracle, parameters, memory, k)


class ScheduleClock(VariableClock):
    """Training time where the rates of a steady clock are multiplied by a factor."""

    def __init__(self, inner: Clock, steps: Sequence[int], factors: Sequence[float]) -> None:
        super().__init__(inner.learning_rate)
        self.steps, self.factors = steps, factors

    def factor(self, k: Any) -> Any:
        """The factor of step k; at a jump the later value."""
        return jnp.interp(k, jnp.array(_apart(self.steps)), jnp.array(self.factors))

    def rate(self, parameters: Any, k: Any) -> Any:
        return self.factor(k) * self.learning_rate

    def log_time(self, memory: Any, k: int) -> float:
        total = self.learning_rate * self.total(k)
        return math.log(total) if total > 0 else -math.inf

    def steps_in(self, t: float) -> float | None:
        """The first step by which the rates sum to t; inf where they never do."""
        wanted, last = t / self.learning_rate, self.steps[-1]
        if self.total(last) < wanted:
            rest = wanted - self.total(last)
            return last + rest / self.factors[-1] if self.factors[-1] else math.inf
        return float(bisect.bisect_left(range(last), wanted, key=self.total))

    def total(self, k: int) -> float:
        """The sum of the factors of the steps before k."""
        at = _apart(self.steps)
        ends = np.unique([0, *(min(math.ceil(step), k) for step in at), k])
        # linear from each end to the step before the next
        return float(
            sum(
                (last - first) * np.interp([first, last - 1], at, self.factors).mean()
                for first, last in itertools.pairwise(ends)
            )
        )

    def pieces(self, steps: int) -> list[tuple[int, float]]:
        """The first steps in pieces of nearly constant rate: their lengths and mean rates."""
        at = _apart(self.steps)
        marks = [np.linspace(a, b, PIECES + 1) for a, b in itertools.pairwise(at)]
        ends = np.unique(
            [0, *(min(math.ceil(x), steps) for x in np.concatenate([at, *marks])), steps]
        )
        sums = self.learning_rate * np.diff([self.total(int(end)) for end in ends])
        counts = np.diff(ends)
        return [(int(n), s / n) for n, s in zip(counts, sums, strict=True) if s > 0]


def _apart(steps: Sequence[int]) -> Array:
    """The steps, where equal ones are moved apart so that the later value holds at the step."""
    positions = np.array(steps, dtype=float)
    for index in range(len(positions) - 1, 0, -1):
        if positions[index - 1] >= positions[index]:
            positions[index - 1] = positions[index] - 1e-6
    return positions
