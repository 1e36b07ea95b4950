"""When training stops: after steps or time, at a loss, an accuracy, a scale or a direction."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from penchant.arguments import Array, integer, positive, real, share
from penchant.door import Invalid
from penchant.records import Checked

COUNT, OPEN_SHARE = functools.partial(integer, least=1), functools.partial(share, interval="(0, 1)")


class Stop(Checked):
    """A reason to stop. Of several rules, the first one that is met stops training.

    A rule of your own defines one of `log_level` (of the loss), `levels` (of recorded numbers) and
    `gap` (of the direction of the predictor), and `words`, what it stops at.

    Examples
    --------
    >>> import dataclasses, math
    >>> import penchant
    >>> @dataclasses.dataclass(frozen=True, repr=False)
    ... class Halved(penchant.stop.Stop):
    ...     words, checks = "half of the loss of the zero predictor", {}
    ...     def log_level(self, model, unit):
    ...         return unit - math.log(2)
    >>> net, problem = penchant.DiagonalNet(2, alpha=1.0), penchant.Regression([[1.0, 2.0]], [5.0])
    >>> stop = [penchant.Steps(1000), Halved()]
    >>> penchant.train(net, problem, penchant.GradientDescent(1e-3), stop=stop).steps
    5
    """

    budget: ClassVar[bool] = False  # True if the rule bounds the effort and sets no goal
    directional: ClassVar[bool] = False  # True if the rule looks at the predictor
    words: ClassVar[str]  # what it stops at, with the names of its fields

    @property
    def levels(self) -> dict[str, float]:
        """The values that the recorded numbers used by the rule must reach."""
        return {}

    def log_level(self, model: Any, unit: float) -> float:
        """The log loss at which to stop, `unit` being that of the relative ones; else -inf."""
        return -math.inf

    def gap(self, predictor: Array) -> float:
        """The angle in degrees that `predictor` still has to turn; at 0 or less the rule is met."""
        return math.inf

    def missed(self, numbers: Mapping[str, float]) -> str | None:
        """How a record misses the goal, in words; None if the goal is met."""
        return None

    def __str__(self) -> str:
        return self.words.format_map(vars(self))


@dataclasses.dataclass(frozen=True, repr=False)
class Steps(Stop):
    """Stop after `count` steps of a step-by-step method.

    Parameters
    ----------
    count
        The number of steps.

    Examples
    --------
    >>> import penchant
    >>> problem, net = penchant.problems.three_points("3b"), penchant.DiagonalNet(2, alpha=1.0)
    >>> penchant.train(net, problem, penchant.GradientDescent(0.1), stop=penchant.Steps(100)).steps
    100
    """

    budget, words, checks = True, "{count} steps", {"count": COUNT}
    count: int


@dataclasses.dataclass(frozen=True, repr=False)
class Epochs(Stop):
    """Stop after `count` passes over the samples, in batches.

    Parameters
    ----------
    count
        The number of passes over the samples.

    Examples
    --------
    >>> import penchant
    >>> problem, net = penchant.problems.three_points("3b"), penchant.DiagonalNet(2, alpha=1.0)
    >>> method, stop = penchant.GradientDescent(0.1), penchant.stop.Epochs(4)
    >>> penchant.train(net, problem, method, stop=stop, batch=2).steps
    8
    """

    budget, words, checks = True, "{count} epochs", {"count": COUNT}
    count: int


@dataclasses.dataclass(frozen=True, repr=False)
class Time(Stop):
    """Stop at the training time `t`: for steps, the sum of the learning rates.

    Parameters
    ----------
    t
        The training time.

    Examples
    --------
    >>> import penchant
    >>> problem, net = penchant.problems.three_points("3b"), penchant.DiagonalNet(2, alpha=1.0)
    >>> penchant.train(net, problem, penchant.GradientDescent(0.1), stop=penchant.Time(5.0)).steps
    50
    """

    budget, words, checks = True, "t = {t:g}", {"t": positive}
    t: float


@dataclasses.dataclass(frozen=True, repr=False)
class Loss(Stop):
    """Stop where the loss of the problem is at most `value`.

    Parameters
    ----------
    value
        The level of the loss.

    Examples
    --------
    >>> import penchant
    >>> problem, net = penchant.problems.three_points("3b"), penchant.DiagonalNet(2, alpha=1.0)
    >>> stop = [penchant.Steps(10_000), penchant.stop.Loss(0.1)]
    >>> penchant.train(net, problem, penchant.GradientDescent(0.1), stop=stop).outcome.ok
    True
    """

    words, checks = "loss {value:g}", {"value": positive}
    value: float

    def log_level(self, model: Any, unit: float) -> float:
        return math.log(self.value)


@dataclasses.dataclass(frozen=True, repr=False)
class LogLoss(Stop):
    """Stop where the natural logarithm of the loss is `value`; -1e7 is a loss of 10^-4342945.

    Parameters
    ----------
    value
        The natural logarithm of the level.

    Examples
    --------
    >>> import penchant
    >>> problem, net = penchant.problems.three_points("3b"), penchant.DiagonalNet(2, alpha=1.0)
    >>> path = penchant.train(net, problem, penchant.DualFlow(), stop=penchant.stop.LogLoss(-1e6))
    >>> round(path.log_loss)
    -1000000
    """

    words, checks = "log loss {value:.6g}", {"value": real}
    value: float

    def log_level(self, model: Any, unit: float) -> float:
        return self.value


@dataclasses.dataclass(frozen=True, repr=False)
class Interpolated(Stop):
    """Stop where the data are fitted: at `relative` times the loss of the zero predictor.

    On a Classification, whose loss never vanishes, it is relative to the loss of the start.

    Parameters
    ----------
    relative
        The level over the loss of the zero predictor.

    Examples
    --------
    >>> import penchant
    >>> problem = penchant.problems.sparse_regression(5, 8, sparsity=1)
    >>> net, stop = penchant.DiagonalNet(2, alpha=0.1), penchant.stop.Interpolated(1e-10)
    >>> penchant.train(net, problem, penchant.DualFlow(), stop=stop).outcome.ok
    True
    """

    words: ClassVar[str] = "a loss of {relative:g} times that of the zero predictor"
    checks: ClassVar[dict[str, Any]] = {"relative": OPEN_SHARE}
    relative: float = 1e-20

    def log_level(self, model: Any, unit: float) -> float:
        return math.log(self.relative) + unit


@dataclasses.dataclass(frozen=True, repr=False)
class Scale(Stop):
    """Stop at the smoothed margin alpha^D / mu, where the direction of Q_mu is expected.

    It is expected there by Moroshko et al. 2020, theorem 6.

    Parameters
    ----------
    mu
        The scale mu of Q.

    References
    ----------
    .. [1] Moroshko et al. (2020), Implicit Bias in Deep Linear Classification: Initialization Scale
       vs Training Accuracy.

    Examples
    --------
    >>> import penchant
    >>> problem, net = penchant.problems.three_points("3b"), penchant.DiagonalNet(2, alpha=10.0)
    >>> path = penchant.train(net, problem, penchant.DualFlow(), stop=penchant.stop.Scale(mu=1.0))
    >>> round(-path.log_loss, 6)
    100.0
    """

    words, checks = "alpha^D / {mu:.6g}", {"mu": positive}
    mu: float

    def log_level(self, model: Any, unit: float) -> float:
        log_alpha, depth = getattr(model, "log_alpha", None), model.homogeneity
        if log_alpha is None or depth is None:
            raise Invalid(
                f"Scale(mu) needs a model that starts at alpha times a shape, such as "
                f"DiagonalNet, got {type(model).__name__}; use LogLoss"
            )
        log_margin = depth * log_alpha - math.log(self.mu)
        if log_margin > 700:
            raise Invalid(
                f"alpha^{depth} / mu is e^{log_margin:.4g} and no float64 holds such a "
                "smoothed margin; take a larger mu or a smaller start"
            )
        return -math.exp(log_margin)


def rules(stop: Stop | Sequence[Stop] | None) -> tuple[Stop, ...]:
    """`stop` as a tuple of rules, one of a kind each."""
    given = () if stop is None else tuple(stop) if isinstance(stop, Sequence) else (stop,)
    for rule in given:
        if not isinstance(rule, Stop):
            raise Invalid(
                f"stop must be a rule such as Steps(1000) or Interpolated(), or several, "
                f"got {type(rule).__name__}"
            )
    budgets = [type(rule).__name__ for rule in given if rule.budget]
    if len(set(budgets)) < len(budgets):
        raise Invalid(f"stop has {max(budgets, key=budgets.count)} twice; give one")
    return given


def understood(given: Sequence[Stop], kinds: tuple[type[Stop], ...], why: str = "") -> None:
    """A ValueError if a rule is of another kind than those named."""
    for rule in given:
        if not isinstance(rule, kinds):
            name, names = type(rule).__name__, ", ".join(kind.__name__ for kind in kinds)
            reason = f" {why}" if why else ""
            raise Invalid(f"{name} does not apply here{reason}; use {names}")


def understood_by_steps(given: Sequence[Stop]) -> None:
    """A ValueError if a rule defines nothing that step-by-step methods can check."""
    for rule in given:
        level = type(rule).log_level is not Stop.log_level
        goal = not rule.budget and (level or rule.directional or rule.levels)
        if not (goal or isinstance(rule, Steps | Epochs | Time)):
            raise Invalid(
                f"{type(rule).__name__} has no log_level, levels or gap to stop at, which "
                "steps check; define one of them, or use Steps, Loss, Accuracy or Below"
            )


def first(given: Sequence[Stop], kind: type[Stop]) -> Any:
    """The rule of this kind, or None."""
    return next((rule for rule in given if isinstance(rule, kind)), None)
