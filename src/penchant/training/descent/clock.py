"""The training time of step-by-step methods: the sum of the learning rates."""

from __future__ import annotations

import math
import sys
from typing import Any

from penchant.lazy import jax, jnp

LARGEST = math.log(sys.float_info.max)


class Clock:
    """Training time where every step takes `learning_rate` of it."""

    steady = True  # whether all steps take the same time
    timed = False  # whether records are spaced in training time, where Time ends the run

    def __init__(self, learning_rate: Any) -> None:
        self.learning_rate = learning_rate

    def rate(self, parameters: Any, k: Any) -> Any:
        """The learning rate of step k, from here."""
        return self.learning_rate

    def log_time(self, memory: Any, k: int) -> float:
        """The logarithm of the training time after k steps."""
        return math.log(k * self.learning_rate) if k else -math.inf

    def time(self, memory: Any, k: int) -> float:
        """The training time after k steps; inf where float64 cannot hold it."""
        return float(self.learning_rate * k)

    def steps_in(self, t: float) -> float | None:
        """How many steps take the training time `t`; None if that is not known before the run."""
        return t / self.learning_rate


class VariableClock(Clock):
    """Training time where the steps differ; `log_time` finds it."""

    steady = False

    def time(self, memory: Any, k: int) -> float:
        log_t = self.log_time(memory, k)
        return math.exp(log_t) if log_t < LARGEST else math.inf

    def steps_in(self, t: float) -> float | None:
        return None


class ScaledClock(VariableClock):
    """Steps of learning_rate or scaled / |w|^2, whichever is less; the memory is their sum."""

    timed = True

    def __init__(self, learning_rate: Any, scaled: Any) -> None:
        super().__init__(learning_rate)
        self.scaled = scaled

    def rate(self, parameters: Any, k: Any) -> Any:
        parts = jax.tree.leaves(parameters)
        square = sum(jnp.sum(jnp.square(part)).astype(jnp.float64) for part in parts)
        rate = jnp.minimum(self.learning_rate, self.scaled / square)
        return jnp.where(jnp.isfinite(square), rate, jnp.nan)  # steps of 0 would hide divergence

    def log_time(self, memory: Any, k: int) -> float:
        return math.log(memory) if memory > 0 else -math.inf


class LogClock(VariableClock):
    """Training time whose logarithm is the memory of the method."""

    def log_time(self, memory: Any, k: int) -> float:
        return float(memory)


class InnerClock(Clock):
    """The clock of a method whose memory is the first part of a larger one."""

    def __init__(self, inner: Clock) -> None:
        super().__init__(inner.learning_rate)
        self.inner, self.steady, self.timed = inner, inner.steady, inner.timed
        self.rate, self.steps_in = inner.rate, inner.steps_in  # type: ignore[method-assign]

    def log_time(self, memory: Any, k: int) -> float:
        return self.inner.log_time(memory[0], k)

    def time(self, memory: Any, k: int) -> float:
        return self.inner.time(memory[0], k)
