"""Which moments of training are recorded: log-spaced ones, or those that are named."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import Any

from penchant.arguments import integer, real
from penchant.door import Invalid, door, door_as
from penchant.records import Record

DENSEST = 1000  # records in a decade: some 20,000 in the path of a flow
KINDS = ("steps", "epochs", "times", "margins")


class Rule(Record):
    """Which moments of a run are recorded."""


@dataclasses.dataclass(frozen=True, repr=False)
class LogSpaced(Rule):
    """`per_decade` records in every factor of ten of the steps, or of the time of a flow.

    Where step sizes vary and Time ends the run, records are log-spaced in time as well.

    Parameters
    ----------
    per_decade
        Records in every factor of ten.

    Examples
    --------
    >>> import penchant
    >>> problem = penchant.problems.sparse_regression(5, 8, sparsity=1)
    >>> net, record = penchant.DiagonalNet(2, alpha=0.1), penchant.record.LogSpaced(2)
    >>> method, stop = penchant.GradientDescent(1e-3), penchant.Steps(100)
    >>> penchant.train(net, problem, method, stop=stop, record=record).dataset.step.values
    array([  0,   1,   3,  10,  32, 100])
    """

    per_decade: int = 20

    @door
    def __post_init__(self) -> None:
        count = integer("per_decade", self.per_decade, least=1)
        if count > DENSEST:
            raise Invalid(
                f"per_decade must be at most {DENSEST}, got {count}; a path keeps every "
                "record in memory: name single moments with At"
            )


@dataclasses.dataclass(frozen=True, repr=False)
class At(Rule):
    """Records at the given `steps`, `epochs`, `times` or smoothed `margins`.

    The start and the end are always recorded.

    Parameters
    ----------
    steps
        Steps of a step-by-step method.
    epochs
        Passes over the samples, in batches.
    times
        Training times of a flow.
    margins
        Smoothed margins log(1/loss) of a flow on labels.

    Examples
    --------
    >>> import penchant
    >>> problem = penchant.problems.sparse_regression(5, 8, sparsity=1)
    >>> net, record = penchant.DiagonalNet(2, alpha=0.1), penchant.record.At(steps=[10, 20])
    >>> method, stop = penchant.GradientDescent(1e-3), penchant.Steps(100)
    >>> penchant.train(net, problem, method, stop=stop, record=record).dataset.step.values
    array([  0,  10,  20, 100])
    """

    steps: Iterable[int] | None = None
    _: dataclasses.KW_ONLY
    epochs: Iterable[int] | None = None
    times: Iterable[float] | None = None
    margins: Iterable[float] | None = None

    def __post_init__(self) -> None:
        if sum(getattr(self, name) is not None for name in KINDS) != 1:
            raise ValueError("At: give exactly one of steps=, epochs=, times= and margins=")
        object.__setattr__(self, self.kind, _moments(self.kind, getattr(self, self.kind)))

    @property
    def kind(self) -> str:
        return next(name for name in KINDS if getattr(self, name) is not None)

    def moments(self, *kinds: str) -> tuple[Any, ...]:
        """The moments, if they are of one of these kinds."""
        if self.kind not in kinds:
            known = " or ".join(f"At({kind}=...)" for kind in kinds)
            raise Invalid(f"cannot record at {self.kind}; use {known} or LogSpaced()")
        moments: tuple[Any, ...] = getattr(self, self.kind)
        return moments


@door_as("At")
def _moments(name: str, values: Any) -> tuple[float, ...]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise Invalid(f"{name} must list moments to record, got {values!r}")
    if name in ("steps", "epochs"):
        return tuple(sorted({integer(name, k, least=0) for k in values}))
    times = sorted({real(name, t) for t in values})
    if times and times[0] < 0:
        raise Invalid(f"{name} must be >= 0, got {times[0]:g}")
    return tuple(times)


def rules(record: Rule | Sequence[Rule] | None) -> tuple[Rule, ...]:
    if record is None:
        return (LogSpaced(),)
    given = tuple(record) if isinstance(record, Sequence) else (record,)
    for rule in given:
        if not isinstance(rule, LogSpaced | At):
            raise Invalid(
                f"record must be LogSpaced(20), At(steps=[...]) or several, got "
                f"{type(rule).__name__}"
            )
    return given


def steps_to_record(given: Sequence[Rule], last: int, epoch: int | None) -> list[int]:
    steps = {0, last}
    for rule in given:
        if isinstance(rule, LogSpaced):
            steps |= set(log_spaced(last, rule.per_decade))
            continue
        assert isinstance(rule, At)
        requested = rule.moments("steps", *(["epochs"] if epoch else []))
        unit = epoch or 1 if rule.kind == "epochs" else 1
        if requested and requested[-1] * unit > last:
            raise Invalid(
                f"At({rule.kind}=...) must stay within the {last // unit} {rule.kind} of "
                f"this run, got {requested[-1]}"
            )
        steps |= {k * unit for k in requested}
    return sorted(steps)


def times_to_record(given: Sequence[Rule], first: float, last: float) -> list[float]:
    """The times to record, from that of the first step to the last one."""
    if first > last:
        raise Invalid(f"Time must reach one step, {first:.3g}, got {last:g}")
    times = {last}
    for rule in given:
        if isinstance(rule, At):
            times |= {t for t in rule.moments("times") if 0 < t < last}
        elif isinstance(rule, LogSpaced):
            count = int(rule.per_decade * math.log10(last / first) * (1 + 1e-12)) + 1
            times |= {first * 10 ** (k / rule.per_decade) for k in range(count)}
    return sorted(t for t in times if t <= last)


@door
def log_spaced(last: int, per_decade: int) -> list[int]:
    """Whole numbers from 1 to `last`, `per_decade` in every decade, evenly in the logarithm.

    Parameters
    ----------
    last
        The largest number.
    per_decade
        How many there are in every factor of ten.

    Returns
    -------
    list of int
        The numbers, increasing; small ones repeat where there are fewer whole numbers than that.

    Examples
    --------
    >>> import penchant
    >>> penchant.record.log_spaced(100, 2)
    [1, 3, 10, 32, 100]
    """
    last = integer("last", last, least=1)
    per_decade = integer("per_decade", per_decade, least=1)
    count = int(per_decade * math.log10(last)) + 1
    return [round(10 ** (k / per_decade)) for k in range(count)]


def density(given: Sequence[Rule]) -> int | None:
    return next((rule.per_decade for rule in given if isinstance(rule, LogSpaced)), None)
