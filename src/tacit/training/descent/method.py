"""The interface of a method that goes step by step, and what a step may ask of the objective."""

from __future__ import annotations

import abc
import dataclasses
import math
import sys
from typing import Any, ClassVar, Protocol

from tacit.arguments import positive, real
from tacit.records import Record

LARGEST = math.log(sys.float_info.max)


class Objective(Protocol):
    """The loss of a model on a problem, as a function of parameters and data; hashable.

    `share` weighs the samples of a batch; without it they all count.
    """

    def value(self, data: Any, parameters: Any, share: Any = None) -> Any:
        """The loss, or its unbiased estimate from a batch."""

    def log_value(self, data: Any, parameters: Any) -> Any:
        """Its logarithm, also where the loss itself is below float64."""

    def __hash__(self) -> int: ...


class Oracle:
    """What one step may ask: values and gradients on its batch, and the penalty."""

    def __init__(self, objective: Objective, data: Any, share: Any, penalty: Any) -> None:
        self.objective, self.data, self.share, self.penalty = objective, data, share, penalty

    def value(self, parameters: Any) -> Any:
        """The loss."""
        return self.objective.value(self.data, parameters, self.share)

    def loss_gradient(self, parameters: Any) -> Any:
        """The gradient of the loss."""
        import jax

        return jax.grad(self.value)(parameters)

    def gradient(self, parameters: Any) -> Any:
        """The gradient of the loss plus a subgradient of the penalty."""
        found = self.loss_gradient(parameters)
        if self.penalty is None:
            return found
        return plus(found, 1.0, self.penalty.subgradient(parameters))

    def log_value_and_gradient(self, parameters: Any) -> tuple[Any, Any]:
        """log L and its gradient, grad L / L."""
        import jax

        return jax.value_and_grad(lambda w: self.objective.log_value(self.data, w))(parameters)

    def prox(self, parameters: Any, length: Any) -> Any:
        """The minimiser over z of |z - parameters|^2 / 2 + length * penalty(z)."""
        if self.penalty is None:
            return parameters
        return self.penalty.prox(parameters, length)


def plus(parameters: Any, factor: Any, direction: Any) -> Any:
    """parameters + factor * direction, leaf by leaf."""
    import jax

    return jax.tree.map(lambda a, b: a + _like(factor, a) * b, parameters, direction)


def _like(factor: Any, part: Any) -> Any:
    """A float64 factor in the precision of the parameters; one without a type has it anyway."""
    return factor.astype(part.dtype) if hasattr(factor, "astype") else factor


def zeros(parameters: Any) -> Any:
    """Zeros of the same structure."""
    import jax
    import jax.numpy as jnp

    return jax.tree.map(jnp.zeros_like, parameters)


@dataclasses.dataclass(frozen=True, repr=False)
class Descent(Record, abc.ABC):
    """A method that goes step by step. A new one defines `step`, and `memory` if it has any.

    Positive numbers among the fields may change from run to run without compiling anew.
    `weight_decay` is decoupled: every step also takes learning_rate * weight_decay * parameters
    away.
    """

    learning_rate: float
    weight_decay: float = dataclasses.field(default=0.0, kw_only=True)
    check: bool = dataclasses.field(default=True, kw_only=True)

    batches: ClassVar[bool] = True  # whether it can work on batches
    penalties: ClassVar[str] = "any"  # which it takes: "any", "smooth", "prox" or "none"
    decays: ClassVar[bool] = True  # whether it has weight decay
    logarithmic: ClassVar[bool] = False  # whether it sees the loss only by its logarithm

    def __post_init__(self) -> None:
        who = type(self).__name__
        rate = positive(who, "learning_rate", self.learning_rate)
        decay = real(who, "weight_decay", self.weight_decay, rule="a finite number >= 0")
        if decay < 0:
            raise ValueError(
                f"{who}: weight_decay must be >= 0, got {decay:g}; a negative one blows the "
                "parameters up"
            )
        if decay and not self.decays:
            raise ValueError(f"{who}: has no weight decay, got weight_decay={decay:g}")
        if rate * decay >= 2:
            raise ValueError(
                f"{who}: weight decay multiplies the parameters by 1 - learning_rate * "
                f"weight_decay, which must be above -1, got {1 - rate * decay:g}; take smaller ones"
            )
        object.__setattr__(self, "learning_rate", rate)
        object.__setattr__(self, "weight_decay", decay)

    def prepared(self, parameters: Any) -> Any:
        """The parameters that training begins with, as NumPy arrays."""
        return parameters

    def memory(self, oracle: Oracle, parameters: Any) -> Any:
        """What the method carries from step to step, before the first."""
        return ()

    def ahead(self, parameters: Any, memory: Any) -> Any:
        """The point from which the next step goes, where that is not the parameters."""
        return parameters

    @property
    def steady(self) -> bool:
        """Whether every step takes learning_rate of training time."""
        return True

    @property
    def elementwise(self) -> bool:
        """Whether a parameter moves by its own derivatives alone, and not at all without them."""
        return False

    @property
    def timed(self) -> bool:
        """Whether records are spaced in training time, where Time ends the run."""
        return False

    def rate(self, parameters: Any) -> Any:
        """The learning rate of the step from here."""
        return self.learning_rate

    @abc.abstractmethod
    def step(self, oracle: Oracle, parameters: Any, memory: Any, k: Any) -> tuple[Any, Any]:
        """Parameters and memory after step k = 0, 1, ..."""

    def log_time(self, memory: Any, k: int) -> float:
        """The logarithm of the training time after k steps: of the sum of the learning rates."""
        return math.log(k * self.learning_rate) if k else -math.inf

    def time(self, memory: Any, k: int) -> float:
        """The training time after k steps; inf where float64 cannot hold it."""
        if self.steady:
            return self.learning_rate * k
        log_t = self.log_time(memory, k)
        return math.exp(log_t) if log_t < LARGEST else math.inf

    def limit(self, smoothness: float, curvature: float) -> tuple[float, str] | None:
        """The bound of stable learning rates on a quadratic, and how it reads; None if unknown.

        It reads as in "below 2/(largest curvature of the loss)". `smoothness` is the largest
        eigenvalue of the Hessian of the loss.
        """
        return None

    def describe(self) -> dict[str, Any]:
        """What is needed to build this method again, as plain JSON values."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {"method": type(self).__name__, **fields}

    def numbers(self) -> dict[str, float]:
        """The settings that are floating-point numbers; a zero stays one in compiled code."""
        named = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {name: value for name, value in named.items() if isinstance(value, float) and value}

    def kind(self) -> tuple[Any, ...]:
        """What compiled code depends on: the class and the settings that are not numbers."""
        named = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return type(self), tuple(
            (name, value) if not (isinstance(value, float) and value) else (name, "a number")
            for name, value in named.items()
        )

    def with_numbers(self, numbers: dict[str, Any]) -> Descent:
        """A copy whose numbers are those traced by JAX, without checks."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        copy.__dict__.update(numbers)
        return copy
