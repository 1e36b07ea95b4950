"""When to stop training that never ends: at a loss, at a scale, or near a direction."""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from tacit.arguments import Array, finite_array, positive, real
from tacit.models.model import Model
from tacit.records import Record


class Rule(Record, abc.ABC):
    """A reason to stop a flow whose clock is the smoothed margin, log(1/loss)."""

    directional: ClassVar[bool] = False  # True if the rule looks at the predictor

    def smoothed_margin(self, who: str, model: Model) -> float:
        """The smoothed margin at which to stop; infinite where the rule looks elsewhere."""
        return math.inf

    def gap(self, predictor: Array) -> float:
        """How far `predictor` is from where the rule stops, in degrees; 0 and less is there."""
        return math.inf

    @abc.abstractmethod
    def __str__(self) -> str:
        """The rule in words that complete the sentence "stopped at ..."."""

    def describe(self) -> dict[str, Any]:
        """What is needed to build this rule again, as plain JSON values."""
        fields = dataclasses.asdict(self).items()  # type: ignore[call-overload]
        plain = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in fields}
        return {"rule": type(self).__name__, **plain}


@dataclasses.dataclass(frozen=True, repr=False)
class LogLoss(Rule):
    """Stop where the natural logarithm of the loss is `value`; -1e7 is a loss of 10^-4342945."""

    value: float

    def __post_init__(self) -> None:
        real("LogLoss", "value", self.value)

    def smoothed_margin(self, who: str, model: Model) -> float:
        return -self.value

    def __str__(self) -> str:
        return f"log loss {self.value:.6g}"


@dataclasses.dataclass(frozen=True, repr=False)
class Scale(Rule):
    """Stop at the smoothed margin alpha^D / mu, where M theorem 6 expects the Q_mu direction."""

    mu: float

    def __post_init__(self) -> None:
        positive("Scale", "mu", self.mu)

    def smoothed_margin(self, who: str, model: Model) -> float:
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
        return math.exp(log_margin)

    def __str__(self) -> str:
        return f"alpha^D / {self.mu:.6g}"


@dataclasses.dataclass(frozen=True, init=False, repr=False, eq=False)
class Near(Rule):
    """Stop once the predictor is within `degrees` of `direction`."""

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


def rules(who: str, until: Rule | Sequence[Rule] | None) -> tuple[Rule, ...]:
    """`until` as a tuple of rules; the first that is met stops."""
    if until is None:
        return ()
    given = tuple(until) if isinstance(until, Sequence) else (until,)
    for rule in given:
        if not isinstance(rule, Rule):
            raise ValueError(
                f"{who}: until must be a rule (LogLoss, Scale or Near) or several, "
                f"got {type(rule).__name__}"
            )
    return given


def settings(flow: Any) -> dict[str, Any]:
    """The settings of `flow` as plain JSON values; rules only where they are given."""
    plain = {f.name: getattr(flow, f.name) for f in dataclasses.fields(flow)}
    until, record = plain.pop("until"), plain.pop("record")
    if until is not None:
        plain["until"] = [rule.describe() for rule in rules(type(flow).__name__, until)]
    if record is not None:
        plain["record"] = [float(g) for g in record]
    return plain
