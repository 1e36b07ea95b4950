"""The interface of a step-by-step method, and what a step may compute from the objective.

How it works: a method is a frozen record of settings with one property, its `scheme`. The scheme
holds all that training uses: the function of a step, the memory before the first one, the clock,
and facts such as which penalties it takes. `Descent` makes a scheme of its `step` and `memory`, so
that a new method needs nothing else; a method that knows more replaces parts of that scheme, and a
method that wraps another one replaces parts of the scheme of that one. What it does not replace is
the other's, and nothing is forwarded name by name.

The settings that are floating-point numbers are arguments of the compiled steps: `numbers` takes
them out, `kind` is what is left, and `with_numbers` puts traced ones in their place.
"""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Self

from penchant.arguments import decay_rate, positive
from penchant.door import Invalid, door
from penchant.lazy import jax, jnp
from penchant.records import Checked, Checks
from penchant.training.descent.clock import Clock, InnerClock


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
    """What one step may compute: values and gradients on its batch, and the penalty.

    Training makes it and hands it to `Descent.step`; nobody else needs to construct one.

    Parameters
    ----------
    objective
        The loss of the model on the problem.
    data
        The samples of the batch.
    share
        How the samples of the batch are weighted; None for all samples.
    penalty
        What training adds to the loss; None for nothing.

    Examples
    --------
    >>> import dataclasses
    >>> import penchant
    >>> @dataclasses.dataclass(frozen=True, repr=False)
    ... class Plain(penchant.methods.Descent):
    ...     def step(self, oracle: penchant.methods.Oracle, parameters, memory, k):
    ...         return parameters - self.learning_rate * oracle.gradient(parameters), memory
    >>> net, problem = penchant.DiagonalNet(2, alpha=1.0), penchant.Regression([[1.0, 2.0]], [5.0])
    >>> penchant.train(net, problem, Plain(0.01), stop=penchant.Steps(10)).steps
    10
    """

    def __init__(self, objective: Objective, data: Any, share: Any, penalty: Any) -> None:
        self.objective, self.data, self.share, self.penalty = objective, data, share, penalty

    def value(self, parameters: Any) -> Any:
        return self.objective.value(self.data, parameters, self.share)

    def total(self, parameters: Any) -> Any:
        """The loss plus the penalty."""
        loss = self.value(parameters)
        return loss if self.penalty is None else loss + self.penalty.value(parameters)

    def loss_gradient(self, parameters: Any) -> Any:
        return jax.grad(self.value)(parameters)

    def gradient(self, parameters: Any) -> Any:
        """The gradient of the loss plus a subgradient of the penalty."""
        gradient = self.loss_gradient(parameters)
        if self.penalty is None:
            return gradient
        return plus(gradient, 1.0, self.penalty.subgradient(parameters))

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


class Scheme(NamedTuple):
    """What training uses of a step-by-step method."""

    step: Callable[[Oracle, Any, Any, Any], tuple[Any, Any]]  # after step k = 0, 1, ...
    memory: Callable[[Oracle, Any], Any]  # before the first step
    clock: Clock
    learning_rate: Any  # the largest of the run; None if it is not known
    weight_decay: Any = 0.0
    decay_factor: Callable[[Any], Any] = lambda k: 1.0  # which multiplies it in step k
    label_noise: Any = 0.0  # the deviation of fresh Gaussian noise on the labels of every step
    penalties: str = "any"  # which it takes: "any", "smooth", "prox" or "none"
    batches: bool = True  # whether it can work on batches
    elementwise: bool = False  # whether a parameter moves by its own derivatives alone
    logarithmic: bool = False  # whether it sees the loss only by its logarithm
    check: bool = True  # whether a learning rate beyond `limit` is refused
    # the parameters to start from; a ValueError if this task cannot be trained
    start: Callable[[Any], Any] = lambda task: task.start
    # the bound of stable learning rates for the curvatures of loss and penalty, and its formula
    limit: Callable[[float, float], tuple[float, str] | None] = lambda smoothness, curvature: None
    # a remark to add to the sentence of a run that ends with this memory
    note: Callable[[Any], str] = lambda memory: ""


class StepMethod(Checked, abc.ABC):
    """A frozen record of the settings of a step-by-step method, and its scheme."""

    @property
    @abc.abstractmethod
    def scheme(self) -> Scheme:
        """What training uses of the method."""

    def settings(self) -> dict[str, Any]:
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        return {field.name: getattr(self, field.name) for field in fields}

    def numbers(self) -> dict[str, Any]:
        """The settings that are floating-point numbers; a zero stays one in compiled code."""
        given = self.settings().items()
        inner = {name: part.numbers() for name, part in given if isinstance(part, StepMethod)}
        return inner | {name: part for name, part in given if isinstance(part, float) and part}

    def kind(self) -> tuple[Any, ...]:
        """What compiled code depends on: the class and the settings that are not numbers."""

        def key(part: Any) -> Any:
            if isinstance(part, StepMethod):
                return part.kind()
            return "a number" if isinstance(part, float) and part else part

        return type(self), tuple((name, key(part)) for name, part in self.settings().items())

    def with_numbers(self, numbers: dict[str, Any]) -> Self:
        """A copy whose numbers are those traced by JAX, without checks."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__ | numbers)
        for name, part in self.settings().items():
            if isinstance(part, StepMethod):
                copy.__dict__[name] = part.with_numbers(numbers.get(name, {}))
        return copy


@dataclasses.dataclass(frozen=True, repr=False)
class Descent(StepMethod):
    """A method with a learning rate. A new one defines `step`, and `memory` if it has any.

    Positive numbers among the fields may differ between runs without recompilation.

    Parameters
    ----------
    learning_rate
        The learning rate.
    weight_decay
        Decoupled: every step also subtracts learning_rate * weight_decay * parameters.
    check
        False trains also at a learning rate beyond the bound of stability.

    Examples
    --------
    >>> import dataclasses
    >>> import penchant
    >>> @dataclasses.dataclass(frozen=True, repr=False)
    ... class Slowing(penchant.methods.Descent):
    ...     def step(self, oracle, parameters, memory, k):
    ...         rate = self.learning_rate / (1 + k) ** 0.5
    ...         return parameters - rate * oracle.gradient(parameters), memory
    >>> net, problem = penchant.DiagonalNet(2, alpha=1.0), penchant.Regression([[1.0, 2.0]], [5.0])
    >>> penchant.train(net, problem, Slowing(0.01), stop=penchant.Steps(100)).outcome.ok
    True
    """

    learning_rate: float
    weight_decay: float = dataclasses.field(default=0.0, kw_only=True)
    check: bool = dataclasses.field(default=True, kw_only=True)

    checks: ClassVar[Checks] = {"learning_rate": positive, "weight_decay": decay_rate}

    @door
    def __post_init__(self) -> None:
        super().__post_init__()
        shrink = self.learning_rate * self.weight_decay
        if shrink >= 2:
            raise Invalid(
                f"weight decay multiplies the parameters by 1 - learning_rate * "
                f"weight_decay, which must be above -1, got {1 - shrink:g}; take smaller ones"
            )

    def memory(self, oracle: Oracle, parameters: Any) -> Any:
        """What the method carries from step to step, before the first."""
        return ()

    @abc.abstractmethod
    def step(self, oracle: Oracle, parameters: Any, memory: Any, k: Any) -> tuple[Any, Any]:
        """Parameters and memory after step k = 0, 1, ..."""

    @property
    def scheme(self) -> Scheme:
        rate, decay = self.learning_rate, self.weight_decay
        return Scheme(self.step, self.memory, Clock(rate), rate, decay, check=self.check)


def no_decay(name: str, value: float) -> float:
    """The check of methods without weight decay."""
    if value:
        raise Invalid(f"has no weight decay, got weight_decay={value:g}")
    return value


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Wrapped(StepMethod):
    """A method that replaces parts of the scheme of another one."""

    method: StepMethod

    @property
    def scheme(self) -> Scheme:
        return self.method.scheme


class Observer(Wrapped):
    """A method whose steps are those of another one, with numbers summed up beside them.

    Its memory is a tuple, and the first part of it is the memory of the other method. `note` adds
    what was summed up to the sentence with which the run ends.

    Parameters
    ----------
    method
        The step-by-step method whose steps are observed.

    Examples
    --------
    >>> import penchant
    >>> class Travelled(penchant.methods.Observer):
    ...     def memory(self, oracle, parameters):
    ...         return self.method.scheme.memory(oracle, parameters), 0.0
    ...     def step(self, oracle, parameters, memory, k):
    ...         inner, length = memory
    ...         new, inner = self.method.scheme.step(oracle, parameters, inner, k)
    ...         return new, (inner, length + ((new - parameters) ** 2).sum() ** 0.5)
    ...     def note(self, memory):
    ...         return f"; the steps were {float(memory[1]):.2f} long together"
    >>> net, problem = penchant.DiagonalNet(2, alpha=1.0), penchant.Regression([[1.0, 2.0]], [5.0])
    >>> method = Travelled(penchant.GradientDescent(0.002))
    >>> print(penchant.train(net, problem, method, stop=penchant.Steps(10)).outcome)
    solved: took all 10 steps, loss 0.48; the steps were 0.65 long together
    """

    @abc.abstractmethod
    def memory(self, oracle: Oracle, parameters: Any) -> tuple[Any, ...]:
        """The memory of the method, and what is summed up, before the first step."""

    @abc.abstractmethod
    def step(self, oracle: Oracle, parameters: Any, memory: Any, k: Any) -> tuple[Any, Any]:
        """The step of the method, and the sums after it."""

    @property
    def scheme(self) -> Scheme:
        inner = self.method.scheme
        clock, note = InnerClock(inner.clock), self.note
        return inner._replace(step=self.step, memory=self.memory, clock=clock, note=note)

    def note(self, memory: Any) -> str:
        """A remark to add to the sentence of a run that ends with this memory."""
        return ""


def over(top: float, curvature: float) -> float:
    """top / curvature, infinite where there is no curvature."""
    return top / curvature if curvature > 0 else math.inf
