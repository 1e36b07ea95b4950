"""The interface of a step-by-step method, and what a step may compute from the objective."""

from __future__ import annotations

import abc
import dataclasses
import math
import operator
import sys
from typing import Any, ClassVar

from tacit.arguments import decay_rate, positive
from tacit.lazy import jax, jnp
from tacit.records import Checked, Checks

LARGEST = math.log(sys.float_info.max)


class Objective(abc.ABC):
    """The loss of a model on a problem; those with equal keys share what is compiled."""

    @property
    @abc.abstractmethod
    def key(self) -> Any:
        """A hashable key that distinguishes objectives."""

    @abc.abstractmethod
    def value(self, data: Any, parameters: Any, share: Any = None) -> Any:
        """The loss, or its unbiased estimate from a batch, whose samples `share` weighs."""

    @abc.abstractmethod
    def log_value(self, data: Any, parameters: Any) -> Any:
        """Its logarithm, also where the loss itself is below float64."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.key == self.key

    def __hash__(self) -> int:
        return hash(self.key)


class Oracle:
    """What one step may compute: values and gradients on its batch, and the penalty."""

    def __init__(self, objective: Objective, data: Any, share: Any, penalty: Any) -> None:
        self.objective, self.data, self.share, self.penalty = objective, data, share, penalty

    def value(self, parameters: Any) -> Any:
        return self.objective.value(self.data, parameters, self.share)

    def loss_gradient(self, parameters: Any) -> Any:
        return jax.grad(self.value)(parameters)

    def gradient(self, parameters: Any) -> Any:
        """The gradient of the loss plus a subgradient of the penalty."""
        found = self.loss_gradient(parameters)
        if self.penalty is None:
            return found
        return plus(found, 1.0, self.penalty.subgradient(parameters))

    def log_value_and_gradient(self, parameters: Any) -> tuple[Any, Any]:
        """log L and its gradient, grad L / L."""
        return jax.value_and_grad(lambda w: self.objective.log_value(self.data, w))(parameters)

    def prox(self, parameters: Any, length: Any) -> Any:
        """The minimiser over z of |z - parameters|^2 / 2 + length * penalty(z)."""
        if self.penalty is None:
            return parameters
        return self.penalty.prox(parameters, length)


def plus(parameters: Any, factor: Any, direction: Any) -> Any:
    """parameters + factor * direction, leaf by leaf."""
    return jax.tree.map(lambda a, b: a + _like(factor, a) * b, parameters, direction)


def _like(factor: Any, part: Any) -> Any:
    return factor.astype(part.dtype) if hasattr(factor, "astype") else factor


def zeros(parameters: Any) -> Any:
    return jax.tree.map(jnp.zeros_like, parameters)


@dataclasses.dataclass(frozen=True, repr=False)
class Descent(Checked, abc.ABC):
    """A step-by-step method. A new one defines `step`, and `memory` if it has any.

    Positive numbers among the fields may differ between runs without recompilation.
    `weight_decay` is decoupled: every step also subtracts
    learning_rate * weight_decay * parameters.
    """

    learning_rate: float
    weight_decay: float = dataclasses.field(default=0.0, kw_only=True)
    check: bool = dataclasses.field(default=True, kw_only=True)

    batches: ClassVar[bool] = True  # whether it can work on batches
    penalties: ClassVar[str] = "any"  # which it takes: "any", "smooth", "prox" or "none"
    decays: ClassVar[bool] = True  # whether it has weight decay
    logarithmic: ClassVar[bool] = False  # whether it sees the loss only by its logarithm
    checks: ClassVar[Checks] = {"learning_rate": positive, "weight_decay": decay_rate}

    def __post_init__(self) -> None:
        super().__post_init__()
        who, shrink = type(self).__name__, self.learning_rate * self.weight_decay
        if self.weight_decay and not self.decays:
            raise ValueError(f"{who}: has no weight decay, got weight_decay={self.weight_decay:g}")
        if shrink >= 2:
            raise ValueError(
                f"{who}: weight decay multiplies the parameters by 1 - learning_rate * "
                f"weight_decay, which must be above -1, got {1 - shrink:g}; take smaller ones"
            )

    def refuse(self, task: Any) -> None:
        """Raises an error if this task cannot be trained by the method."""

    def prepared(self, parameters: Any) -> Any:
        return parameters

    def memory(self, oracle: Oracle, parameters: Any) -> Any:
        """What the method carries from step to step, before the first."""
        return ()

    def ahead(self, parameters: Any, memory: Any) -> Any:
        """The point where the next step starts, if that is not the parameters."""
        return parameters

    @property
    def label_noise(self) -> float:
        """The standard deviation of fresh Gaussian noise on the labels of every step."""
        return 0.0

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

    def rate(self, parameters: Any, k: Any) -> Any:
        """The learning rate of step k, from here."""
        return self.learning_rate

    @abc.abstractmethod
    def step(self, oracle: Oracle, parameters: Any, memory: Any, k: Any) -> tuple[Any, Any]:
        """Parameters and memory after step k = 0, 1, ..."""

    def log_time(self, memory: Any, k: int) -> float:
        """The logarithm of the training time after k steps: of the sum of the learning rates."""
        return math.log(k * self.learning_rate) if k else -math.inf

    def note(self, memory: Any) -> str:
        """A remark to add to the sentence of a run that ends with this memory."""
        return ""

    def time(self, memory: Any, k: int) -> float:
        """The training time after k steps; inf where float64 cannot hold it."""
        if self.steady:
            return self.learning_rate * k
        log_t = self.log_time(memory, k)
        return math.exp(log_t) if log_t < LARGEST else math.inf

    def steps_in(self, t: float) -> float | None:
        """How many steps take the training time `t`; None if that is not known before the run."""
        return t / self.learning_rate if self.steady else None

    def limit(self, smoothness: float, curvature: float) -> tuple[float, str] | None:
        """The bound of stable learning rates for these curvatures, and its formula, if known."""
        return None

    def settings(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def describe(self) -> dict[str, Any]:
        """What is needed to build this method again, as plain JSON values."""
        return {"method": type(self).__name__, **self.settings()}

    def numbers(self) -> dict[str, float]:
        """The settings that are floating-point numbers; a zero stays one in compiled code."""
        return {k: v for k, v in self.settings().items() if isinstance(v, float) and v}

    def kind(self) -> tuple[Any, ...]:
        """What compiled code depends on: the class and the settings that are not numbers."""
        plain = self.settings() | dict.fromkeys(self.numbers(), "a number")
        return type(self), tuple(plain.items())

    def with_numbers(self, numbers: dict[str, Any]) -> Descent:
        """A copy whose numbers are those traced by JAX, without checks."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__ | numbers)
        return copy


def of_method(name: str) -> Any:
    """The attribute of this name of the method inside."""
    return property(operator.attrgetter(f"method.{name}"))


@dataclasses.dataclass(frozen=True, init=False, repr=False, eq=False)
class Wrapped(Descent):
    """A method that wraps another one and takes from it all that it does not define itself."""

    method: Descent

    def __init__(self, method: Descent) -> None:
        for name in ("learning_rate", "weight_decay", "check"):
            object.__setattr__(self, name, getattr(method, name))
        object.__setattr__(self, "method", method)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.method!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Wrapped) and repr(other) == repr(self)

    def __hash__(self) -> int:
        return hash(repr(self))

    refuse = of_method("refuse")
    prepared = of_method("prepared")
    memory = of_method("memory")
    ahead = of_method("ahead")
    rate = of_method("rate")
    steps_in = of_method("steps_in")
    log_time = of_method("log_time")
    limit = of_method("limit")
    numbers = of_method("numbers")
    label_noise = of_method("label_noise")
    elementwise = of_method("elementwise")
    steady = of_method("steady")
    timed = of_method("timed")
    batches = of_method("batches")
    penalties = of_method("penalties")
    decays = of_method("decays")
    logarithmic = of_method("logarithmic")

    def describe(self) -> dict[str, Any]:
        return {"method": type(self).__name__, "of": self.method.describe()}

    def kind(self) -> tuple[Any, ...]:
        return type(self), self.method.kind()

    def with_numbers(self, numbers: dict[str, Any]) -> Wrapped:
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__ | numbers)
        copy.__dict__["method"] = self.method.with_numbers(numbers)
        return copy


def over(top: float, curvature: float) -> float:
    """top / curvature, infinite where there is no curvature."""
    return top / curvature if curvature > 0 else math.inf
