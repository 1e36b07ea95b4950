"""The interface of an exact flow, and what a run of it is to do."""

from __future__ import annotations

import abc
import dataclasses
import math
from typing import Any, ClassVar, NamedTuple

from tacit.arguments import integer, positive, real
from tacit.records import Outcome, Record
from tacit.training import record as recording
from tacit.training import stop as stopping
from tacit.training.task import Progress


class Followed(NamedTuple):
    """A flow that was followed: records without attributes, the outcome, the last parameters."""

    dataset: Any
    outcome: Outcome
    parameters: Any


class Course(NamedTuple):
    """What a run is to do: when to stop, what to record, and how the parameters decay."""

    stops: tuple[stopping.Stop, ...] = ()
    records: tuple[recording.Rule, ...] = (recording.LogSpaced(),)
    weight_decay: float = 0.0
    progress: Progress | None = None

    @property
    def t_max(self) -> float | None:
        """The time that ends the run, where it is given."""
        time = stopping.first(self.stops, stopping.Time)
        return None if time is None else time.t

    @property
    def goals(self) -> tuple[stopping.Stop, ...]:
        """The rules that are no budget."""
        return tuple(rule for rule in self.stops if not rule.budget)

    def log_level(self, who: str, model: Any, unit: float, fitted: float | None = None) -> float:
        """The log loss to stop at; without a goal where the data are `fitted` to that level."""
        goals = self.goals
        if not goals and fitted is not None:
            goals = (stopping.Interpolated(fitted),)
        return max((rule.log_level(who, model, unit) for rule in goals), default=-math.inf)

    @property
    def per_decade(self) -> int | None:
        """Records in a factor of ten of the time, where some are log-spaced."""
        return recording.density(self.records)

    def asked(self, who: str, *kinds: str) -> tuple[float, ...] | None:
        """The moments that At names, which must be of these kinds; None where none are."""
        rules = [rule for rule in self.records if isinstance(rule, recording.At)]
        found = {moment for rule in rules for moment in rule.moments(who, *kinds)}
        return tuple(sorted(found)) if rules else None


@dataclasses.dataclass(frozen=True, repr=False, kw_only=True)
class Flow(Record, abc.ABC):
    """theta' = -grad L(theta) - weight_decay * theta, followed as exactly as `rtol` says.

    `rtol` is the accuracy of one step of the integrator, of which there are at most `max_steps`.
    """

    tolerances: ClassVar[tuple[float, float]] = (1e-13, 1e-2)  # the least and the largest rtol
    rtol: float = 1e-10
    max_steps: int = 100_000
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        who = type(self).__name__
        least, most = self.tolerances
        if not least <= positive(who, "rtol", self.rtol) <= most:
            raise ValueError(
                f"{who}: rtol must be between {least:g} and {most:g}, got {self.rtol:g}"
            )
        decay = real(who, "weight_decay", self.weight_decay, rule="a finite number >= 0")
        if decay < 0:
            raise ValueError(
                f"{who}: weight_decay must be >= 0, got {decay:g}; a negative one blows the "
                "parameters up"
            )
        object.__setattr__(self, "max_steps", integer(who, "max_steps", self.max_steps, least=1))
        object.__setattr__(self, "weight_decay", decay)

    @abc.abstractmethod
    def follow(self, model: Any, problem: Any, course: Course) -> Followed:
        """Follows the flow of `model` on `problem`, whose loss is no "half squares"."""

    def describe(self) -> dict[str, Any]:
        """What is needed to build this method again, as plain JSON values."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {"method": type(self).__name__, **fields}
