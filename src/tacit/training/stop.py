"""When training stops: after steps or time, at a loss, an accuracy, a scale or a direction."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from tacit.arguments import Array, finite_array, integer, positive, real
from tacit.records import Record


class Stop(Record):
    """A reason to stop. Of several, the first that is met stops."""

    budget: ClassVar[bool] = False  # True if the rule bounds the effort and sets no goal
    directional: ClassVar[bool] = False  # True if the rule looks at the predictor

    def log_level(self, who: str, model: Any, unit: float) -> float:
        """The log loss at which to stop, `unit` being that of the relative ones; else -inf."""
        return -math.inf

    def gap(self, predictor: Array) -> float:
        """How far `predictor` is from where the rule stops, in degrees; 0 and less is there."""
        return math.inf

    @property
    def looks_at(self) -> tuple[str, ...]:
        """The recorded numbers that the rule looks at."""
        return ()

    def missed(self, numbers: Mapping[str, float]) -> str | None:
        """What a record lacks of the goal, in words; None if it is met or is no number."""
        return None

    def met(self, numbers: Mapping[str, float]) -> str | None:
        """Which goal a record meets, in words; None if it meets none."""
        return None

    def describe(self) -> dict[str, Any]:
        """What is needed to build this rule again, as plain JSON values."""
        fields = dataclasses.asdict(self).items()  # type: ignore[call-overload]
        plain = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in fields}
        return {"rule": type(self).__name__, **plain}


@dataclasses.dataclass(frozen=True, repr=False)
class Steps(Stop):
    """Stop after `count` steps of a step-by-step method.

    Parameters
    ----------
    count
        The number of steps.

    Examples
    --------
    >>> import tacit
    >>> problem = tacit.sparse_regression(5, 8, sparsity=1)
    >>> net, stop = tacit.DiagonalNet(2, alpha=0.1), tacit.Steps(100)
    >>> path = tacit.train(net, problem, tacit.GradientDescent(1e-3), stop=stop)
    >>> path.steps
    100
    """

    budget = True
    count: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", integer("Steps", "count", self.count, least=1))

    def __str__(self) -> str:
        return f"{self.count} steps"


@dataclasses.dataclass(frozen=True, repr=False)
class Epochs(Stop):
    """Stop after `count` passes over the samples, in batches.

    Parameters
    ----------
    count
        The number of passes over the samples.

    Examples
    --------
    >>> import tacit
    >>> problem = tacit.sparse_regression(5, 8, sparsity=1)
    >>> net, stop = tacit.DiagonalNet(2, alpha=0.1), tacit.Epochs(4)
    >>> path = tacit.train(net, problem, tacit.SGD(1e-3), stop=stop, batch=2)
    >>> path.steps
    12
    """

    budget = True
    count: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", integer("Epochs", "count", self.count, least=1))

    def __str__(self) -> str:
        return f"{self.count} epochs"


@dataclasses.dataclass(frozen=True, repr=False)
class Time(Stop):
    """Stop at the training time `t`: for steps, the sum of the learning rates.

    Parameters
    ----------
    t
        The training time.

    Examples
    --------
    >>> import tacit
    >>> problem = tacit.sparse_regression(5, 8, sparsity=1)
    >>> net, stop = tacit.DiagonalNet(2, alpha=0.1), tacit.Time(0.05)
    >>> path = tacit.train(net, problem, tacit.GradientDescent(1e-3), stop=stop)
    >>> path.steps
    50
    """

    budget = True
    t: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "t", positive("Time", "t", self.t))

    def __str__(self) -> str:
        return f"t = {self.t:g}"


class _Level(Stop):
    """A rule that a small enough loss meets."""

    def _at(self, numbers: Mapping[str, float], log_level: float) -> bool:
        return numbers["log_loss"] <= log_level


@dataclasses.dataclass(frozen=True, repr=False)
class Loss(_Level):
    """Stop where the loss of the problem is at most `value`.

    Parameters
    ----------
    value
        The level of the loss.

    Examples
    --------
    >>> import tacit
    >>> problem = tacit.sparse_regression(5, 8, sparsity=1)
    >>> net, stop = tacit.DiagonalNet(2, alpha=0.1), [tacit.Steps(10_000), tacit.Loss(1e-3)]
    >>> path = tacit.train(net, problem, tacit.GradientDescent(1e-2), stop=stop)
    >>> path.log_loss <= -6.9
    True
    """

    value: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", positive("Loss", "value", self.value))

    def log_level(self, who: str, model: Any, unit: float) -> float:
        return math.log(self.value)

    def __str__(self) -> str:
        return f"loss {self.value:g}"


@dataclasses.dataclass(frozen=True, repr=False)
class LogLoss(_Level):
    """Stop where the natural logarithm of the loss is `value`; -1e7 is a loss of 10^-4342945.

    Parameters
    ----------
    value
        The natural logarithm of the level.

    Examples
    --------
    >>> import tacit
    >>> problem = tacit.three_points("M-F3b")
    >>> path = tacit.train(
    ...     tacit.DiagonalNet(2, alpha=1.0), problem, tacit.DualFlow(), stop=tacit.LogLoss(-1e6)
    ... )
    >>> round(path.log_loss)
    -1000000
    """

    value: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", real("LogLoss", "value", self.value))

    def log_level(self, who: str, model: Any, unit: float) -> float:
        return self.value

    def __str__(self) -> str:
        return f"log loss {self.value:.6g}"


@dataclasses.dataclass(frozen=True, repr=False)
class Interpolated(_Level):
    """Stop where the data are fitted: at `relative` times the loss of the zero predictor.

    On a Classification, whose loss never vanishes, it is relative to the loss of the start.

    Parameters
    ----------
    relative
        The level over the loss of the zero predictor.

    Examples
    --------
    >>> import tacit
    >>> problem = tacit.sparse_regression(5, 8, sparsity=1)
    >>> net, stop = tacit.DiagonalNet(2, alpha=0.1), tacit.Interpolated(1e-10)
    >>> path = tacit.train(net, problem, tacit.DualFlow(), stop=stop)
    >>> path.outcome.ok
    True
    """

    relative: float = 1e-20

    def __post_init__(self) -> None:
        level = real("Interpolated", "relative", self.relative, rule="a number in (0, 1)")
        if not 0 < level < 1:
            raise ValueError(f"Interpolated: relative must be in (0, 1), got {level:g}")
        object.__setattr__(self, "relative", level)

    def log_level(self, who: str, model: Any, unit: float) -> float:
        return math.log(self.relative) + unit

    def __str__(self) -> str:
        return f"a loss of {self.relative:g} times that of no predictor"


@dataclasses.dataclass(frozen=True, repr=False)
class Scale(_Level):
    """Stop at the smoothed margin alpha^D / mu, where M theorem 6 expects the Q_mu direction.

    Parameters
    ----------
    mu
        The scale mu of Q.

    Examples
    --------
    >>> import tacit
    >>> problem, net = tacit.three_points("M-F3b"), tacit.DiagonalNet(2, alpha=10.0)
    >>> path = tacit.train(net, problem, tacit.DualFlow(), stop=tacit.Scale(mu=1.0))
    >>> round(-path.log_loss, 6)
    100.0
    """

    mu: float

    def __post_init__(self) -> None:
        positive("Scale", "mu", self.mu)

    def log_level(self, who: str, model: Any, unit: float) -> float:
        log_alpha, depth = getattr(model, "log_alpha", None), model.homogeneity
        if log_alpha is None or depth is None:
            raise ValueError(
                f"{who}: Scale(mu) needs a model that starts at alpha times a shape, such as "
                f"DiagonalNet, got {type(model).__name__}; use LogLoss"
            )
        log_margin = depth * log_alpha - math.log(self.mu)
        if log_margin > 700:
            raise ValueError(
                f"{who}: alpha^{depth} / mu is e^{log_margin:.4g} and no float64 holds such a "
                "smoothed margin; take a larger mu or a smaller start"
            )
        return -math.exp(log_margin)

    def __str__(self) -> str:
        return f"alpha^D / {self.mu:.6g}"


@dataclasses.dataclass(frozen=True, repr=False)
class Accuracy(Stop):
    """Stop at the first record with a `train` and a `test` accuracy of at least these.

    Parameters
    ----------
    train
        The accuracy on the training samples; None asks for none.
    test
        The accuracy on the test samples; None asks for none.

    Examples
    --------
    >>> import tacit
    >>> problem = tacit.separable_points(12, 5, margin=0.3, seed=1)
    >>> stop = [tacit.Steps(1000), tacit.Accuracy(train=1.0)]
    >>> net = tacit.DiagonalNet(2, alpha=0.1)
    >>> path = tacit.train(net, problem, tacit.GradientDescent(0.1), stop=stop)
    >>> float(path.dataset.train_accuracy[-1])
    1.0
    """

    train: float | None = None
    test: float | None = None

    def __post_init__(self) -> None:
        for name, level in self._levels().items():
            if not 0 < real("Accuracy", name.split("_")[0], level) <= 1:
                raise ValueError(f"Accuracy: levels must be above 0 and at most 1, got {level:g}")
        if not self._levels():
            raise ValueError("Accuracy: give train= or test=, an accuracy to come to")

    def _levels(self) -> dict[str, float]:
        given = {"train_accuracy": self.train, "test_accuracy": self.test}
        return {name: level for name, level in given.items() if level is not None}

    @property
    def looks_at(self) -> tuple[str, ...]:
        return tuple(self._levels())

    def missed(self, numbers: Mapping[str, float]) -> str | None:
        short = [
            f"{name.replace('_', ' ')} {numbers[name]:.4g} below {level:g}"
            for name, level in self._levels().items()
            if not numbers[name] >= level
        ]
        return " and ".join(short) or None

    def met(self, numbers: Mapping[str, float]) -> str | None:
        if self.missed(numbers):
            return None
        return " and ".join(f"{n.replace('_', ' ')} {numbers[n]:.4g}" for n in self._levels())

    def __str__(self) -> str:
        levels = self._levels().items()
        return " and ".join(f"{name.replace('_', ' ')} {level:g}" for name, level in levels)


@dataclasses.dataclass(frozen=True, repr=False)
class Below(Stop):
    """Stop at the first record where the recorded number `name` is at most `value`.

    Parameters
    ----------
    name
        The name of a recorded number.
    value
        The level that it must come down to.

    Examples
    --------
    >>> import tacit
    >>> problem = tacit.sparse_regression(5, 8, sparsity=1)
    >>> net = tacit.DiagonalNet(2, alpha=0.1)
    >>> stop = [tacit.Steps(10_000), tacit.Below("loss", 0.01)]
    >>> path = tacit.train(net, problem, tacit.GradientDescent(1e-2), stop=stop)
    >>> float(path.dataset.loss[-1]) <= 0.01
    True
    """

    name: str
    value: float

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise ValueError(f"Below: name must be that of a recorded number, got {self.name!r}")
        object.__setattr__(self, "value", real("Below", "value", self.value))

    @property
    def looks_at(self) -> tuple[str, ...]:
        return (self.name,)

    def missed(self, numbers: Mapping[str, float]) -> str | None:
        found = numbers[self.name]
        return None if found <= self.value else f"{self.name} {found:.3g} above {self.value:g}"

    def met(self, numbers: Mapping[str, float]) -> str | None:
        return None if self.missed(numbers) else f"{self.name} {numbers[self.name]:.3g}"

    def __str__(self) -> str:
        return f"{self.name} {self.value:g}"


@dataclasses.dataclass(frozen=True, init=False, repr=False, eq=False)
class Near(Stop):
    """Stop once the predictor is within `degrees` of `direction`.

    Parameters
    ----------
    direction
        A vector with an entry per feature.
    degrees
        The largest angle.

    Examples
    --------
    >>> import tacit
    >>> problem, net = tacit.three_points("M-F3b"), tacit.DiagonalNet(2, alpha=0.1)
    >>> goal = tacit.max_margin(problem, tacit.L1()).beta
    >>> path = tacit.train(net, problem, tacit.DualFlow(), stop=tacit.Near(goal, degrees=10))
    >>> round(float(tacit.angle(path.predictor, goal)), 4)
    10.0
    """

    directional = True
    direction: Array
    degrees: float

    def __init__(self, direction: ArrayLike, degrees: float) -> None:
        vector = finite_array("Near", "direction", direction, ndim=1)
        if not vector.any():
            raise ValueError("Near: direction must not be zero")
        object.__setattr__(self, "direction", vector / np.linalg.norm(vector))
        object.__setattr__(self, "degrees", positive("Near", "degrees", degrees))

    def gap(self, predictor: Array) -> float:
        size = np.abs(predictor).max()
        if not size > 0:
            return 180.0
        unit = predictor / size
        unit = unit / np.linalg.norm(unit)
        # 2 atan2(|a - b|, |a + b|): accurate for the smallest angles, where arccos is not
        apart, along = np.linalg.norm(unit - self.direction), np.linalg.norm(unit + self.direction)
        return math.degrees(2 * math.atan2(apart, along)) - self.degrees

    def __str__(self) -> str:
        return f"{self.degrees:g} degrees from the direction"


def rules(who: str, stop: Stop | Sequence[Stop] | None) -> tuple[Stop, ...]:
    """`stop` as a tuple of rules, one of a kind each."""
    if stop is None:
        return ()
    given = tuple(stop) if isinstance(stop, Sequence) else (stop,)
    for rule in given:
        if not isinstance(rule, Stop):
            raise ValueError(
                f"{who}: stop must be a rule such as Steps(1000) or Interpolated(), or several, "
                f"got {type(rule).__name__}"
            )
    budgets = [type(rule).__name__ for rule in given if rule.budget]
    if len(set(budgets)) < len(budgets):
        raise ValueError(f"{who}: stop has {max(budgets, key=budgets.count)} twice; give one")
    return given


def understood(
    who: str, given: Sequence[Stop], kinds: tuple[type[Stop], ...], why: str = ""
) -> None:
    """A ValueError if a rule is of another kind than those named."""
    for rule in given:
        if not isinstance(rule, kinds):
            names = ", ".join(kind.__name__ for kind in kinds)
            reason = f" {why}" if why else ""
            raise ValueError(
                f"{who}: {type(rule).__name__} does not apply here{reason}; use {names}"
            )


def first(given: Sequence[Stop], kind: type[Stop]) -> Any:
    """The rule of this kind, or None."""
    return next((rule for rule in given if isinstance(rule, kind)), None)
