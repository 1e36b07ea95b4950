"""A method whose learning rate and weight decay follow a schedule."""

from __future__ import annotations

import bisect
import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from penchant.arguments import Array, entries, finite_array
from penchant.door import Invalid, door
from penchant.lazy import jnp
from penchant.records import assign
from penchant.training.descent.clock import Clock, VariableClock
from penchant.training.descent.method import Oracle, Scheme, StepMethod, Wrapped

PIECES = 12  # pieces of constant learning rate by which a prediction replaces a linear change


class Piece(NamedTuple):
    """Steps of nearly constant rate: their number, mean rate and mean factor of the decay."""

    steps: int
    rate: float
    decay: float


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Scheduled(Wrapped):
    """A step-by-step method whose learning rate is multiplied by a factor that changes.

    The factor has given values at given steps and is linear in between; before the first and after
    the last it is constant. Two equal steps make it jump. The weight decay may have factors, too:
    a step multiplies the parameters by 1 - learning_rate * weight_decay, both as they are then.

    Parameters
    ----------
    method
        A method with a fixed learning rate.
    steps
        The steps at which the factor is given, which must not fall.
    factors
        The factor at each of them, at least 0 and not all 0.
    decays
        The factor of the weight decay at each of them, at least 0; None leaves it as it is.

    Examples
    --------
    >>> import penchant
    >>> plain = penchant.GradientDescent(0.01)
    >>> warm = penchant.methods.Scheduled(plain, [0, 100, 1000], [0.0, 1.0, 0.0])
    >>> problem = penchant.problems.sparse_regression(8, 20, sparsity=2)
    >>> net = penchant.DiagonalNet(2, alpha=0.1)
    >>> round(penchant.train(net, problem, warm, stop=penchant.Steps(1000)).t, 6)
    5.0

    A decay that ends after 500 steps:

    >>> decaying = penchant.GradientDescent(0.01, weight_decay=0.5)
    >>> off = penchant.methods.Scheduled(decaying, [0, 500, 500], [1, 1, 1], decays=[1, 1, 0])
    >>> round(penchant.train(net, problem, off, stop=penchant.Steps(1000)).t, 6)
    10.0
    """

    steps: Sequence[int]
    factors: Sequence[float]
    decays: Sequence[float] | None = None

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
        if self.decays is not None:
            decays = entries("decays", self.decays, len(at), "as many entries as steps")
            if decays.min() < 0:
                raise Invalid(f"decays must be >= 0, got {self.decays!r}")
            if not method.scheme.weight_decay:
                raise Invalid(f"decays are factors of a weight decay, and {method!r} has none")
            _refuse_overshooting(method.scheme, max(values), max(decays))
            assign(self, decays=tuple(map(float, decays)))

    @property
    def scheme(self) -> Scheme:
        inner = self.method.scheme
        largest = inner.learning_rate * max(self.factors)
        clock = self.clock
        return inner._replace(
            step=self.step, clock=clock, learning_rate=largest, decay_factor=clock.decay
        )

    @property
    def clock(self) -> ScheduleClock:
        return ScheduleClock(self.method.scheme.clock, self.steps, self.factors, self.decays)

    def step(self, oracle: Oracle, parameters: Any, memory: Any, k: Any) -> tuple[Any, Any]:
        now = self.method.with_numbers({"learning_rate": self.clock.rate(parameters, k)})
        return now.scheme.step(oracle, parameters, memory, k)


class ScheduleClock(VariableClock):
    """Training time where the rates of a steady clock are multiplied by a factor."""

    def __init__(
        self,
        inner: Clock,
        steps: Sequence[int],
        factors: Sequence[float],
        decays: Sequence[float] | None = None,
    ) -> None:
        super().__init__(inner.learning_rate)
        self.steps, self.factors, self.decays = steps, factors, decays

    def factor(self, k: Any) -> Any:
        """The factor of step k; at a jump the later value."""
        return jnp.interp(k, jnp.array(_apart(self.steps)), jnp.array(self.factors))

    def decay(self, k: Any) -> Any:
        """The factor of the weight decay in step k."""
        if self.decays is None:
            return 1.0
        return jnp.interp(k, jnp.array(_apart(self.steps)), jnp.array(self.decays))

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

    def pieces(self, steps: int) -> list[Piece]:
        """The first steps in pieces of nearly constant rate."""
        at = _apart(self.steps)
        marks = [np.linspace(a, b, PIECES + 1) for a, b in itertools.pairwise(at)]
        ends = np.unique(
            [0, *(min(math.ceil(x), steps) for x in np.concatenate([at, *marks])), steps]
        )
        sums = self.learning_rate * np.diff([self.total(int(end)) for end in ends])
        counts = np.diff(ends)
        middles = (ends[:-1] + ends[1:] - 1) / 2
        decays = [1.0] * len(counts)
        if self.decays is not None:
            decays = [float(decay) for decay in np.interp(middles, at, self.decays)]
        rows = zip(counts, sums, decays, strict=True)
        return [Piece(int(n), s / n, decay) for n, s, decay in rows if s > 0]


def _refuse_overshooting(scheme: Scheme, factor: float, decay: float) -> None:
    """Raises an error if one step could turn the parameters around and enlarge them."""
    shrink = scheme.learning_rate * scheme.weight_decay * factor * decay
    if shrink >= 2:
        raise Invalid(
            "weight decay multiplies the parameters by 1 - learning_rate * weight_decay, which "
            f"must be above -1, got {1 - shrink:g} with the largest factors; take smaller ones"
        )


def _apart(steps: Sequence[int]) -> Array:
    """The steps, where equal ones are moved apart so that the later value holds at the step."""
    positions = np.array(steps, dtype=float)
    for index in range(len(positions) - 1, 0, -1):
        if positions[index - 1] >= positions[index]:
            positions[index - 1] = positions[index] - 1e-6
    return positions
