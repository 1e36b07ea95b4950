"""Bisection for a threshold: the largest value of an axis at which a measure still passes.

    [threshold]
    axis = "model.alpha"        # not in the grid; the grid and the seeds give the lines
    between = [1e-4, 10.0]
    measure = "test_error"
    below = 0.1                 # passes while test_error <= 0.1; `above` is the other way
    spacing = "log"             # or "linear", or "integer"
    tolerance = 0.01            # of the ratio (log) or the difference (linear)

Every line computes both ends, then midpoints; all lines advance in the same round, so that the
workers are busy. The midpoints depend only on earlier results, so an interrupted run needs the
same cells again and finds them on disk.

The dataset has the dimensions of the grid and the seed: `threshold` (the last value that passes:
the largest if the low end passes, the smallest if the high end does), `lower` and `upper` (the
bracket), `trials`, `status`, `sentence`, and over the dimension `trial` what was `tried` and
`measured`. A line whose ends agree is "infeasible"; one that meets a failed cell has its status.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from penchant.arguments import one_of, positive, real
from penchant.door import Invalid, door_as
from penchant.lab.studies.cells import Cell, cell_name, spec_at
from penchant.lab.studies.compute import OK, USABLE, Result
from penchant.lab.studies.engines.complete import Rounds
from penchant.lab.studies.gather import counts, label, provenance
from penchant.limits import Turns
from penchant.records import Kind

if TYPE_CHECKING:
    import xarray

    from penchant.lab.studies.study import Study

KEYS = ("axis", "between", "measure", "below", "above", "spacing", "tolerance")
SPACINGS = ("log", "linear", "integer")


@dataclasses.dataclass(frozen=True)
class Threshold:
    """The table [threshold], checked."""

    axis: str
    low: float
    high: float
    measure: str
    level: float
    below: bool
    spacing: str
    tolerance: float

    def passes(self, value: float) -> bool:
        return value <= self.level if self.below else value >= self.level

    def value(self, number: float) -> float | int:
        return int(number) if self.spacing == "integer" else number

    def middle(self, low: float, high: float) -> float:
        if self.spacing == "log":
            return math.sqrt(low) * math.sqrt(high)
        middle = low + (high - low) / 2
        return math.floor(middle) if self.spacing == "integer" else middle

    def narrow(self, low: float, high: float) -> bool:
        """Whether a bracket is as narrow as the tolerance, or as floating point allows."""
        if not low < self.middle(low, high) < high:
            return True
        if self.spacing == "log":
            return high / low <= 1 + self.tolerance
        return high - low <= (1 if self.spacing == "integer" else self.tolerance)


def read_threshold(table: Mapping[str, Any]) -> Threshold:
    """The table [threshold], or a ValueError that names what is wrong with it."""
    if not isinstance(table, Mapping):
        raise Invalid(f"threshold must be a table, got {table!r:.80}")
    for key in table:
        one_of("key in threshold", key, KEYS)
    for key in ("axis", "measure"):
        if not isinstance(table.get(key), str):
            raise Invalid(f"threshold.{key} must be a name, got {table.get(key)!r:.80}")
    if ("below" in table) == ("above" in table):
        raise Invalid("threshold needs exactly one of below and above")
    side = "below" if "below" in table else "above"
    spacing = one_of("threshold.spacing", table.get("spacing", "log"), SPACINGS)
    low, high = _ends(table.get("between"), spacing)
    return Threshold(
        axis=table["axis"],
        low=low,
        high=high,
        measure=table["measure"],
        level=real(f"threshold.{side}", table[side]),
        below=side == "below",
        spacing=spacing,
        tolerance=positive("threshold.tolerance", table.get("tolerance", 0.01)),
    )


def _ends(given: Any, spacing: str) -> tuple[float, float]:
    if not isinstance(given, list | tuple) or len(given) != 2:
        raise Invalid(f"threshold.between must be [low, high], got {given!r:.80}")
    low, high = (real("threshold.between", end) for end in given)
    if not low < high or (spacing == "log" and low <= 0):
        rule = "0 < low < high" if spacing == "log" else "low < high"
        raise Invalid(f"threshold.between must have {rule}, got {given!r:.80}")
    if spacing == "integer" and not (low.is_integer() and high.is_integer()):
        raise Invalid(f"threshold.between must be whole numbers, got {given!r:.80}")
    return low, high


@door_as(lambda study: study.source)
def with_axis(study: Study) -> Study:
    """The plain study whose last axis is the one that is bisected, at its two ends."""
    rule = read_threshold(study.threshold or {})
    if rule.axis in [axis.key for axis in study.axes]:
        raise ValueError(
            f"{study.source}: threshold.axis {rule.axis!r} is also in the grid; drop one"
        )
    grid = {axis.key: list(axis.values) for axis in study.axes}
    ends = [rule.value(rule.low), rule.value(rule.high)]
    return dataclasses.replace(study, threshold=None, draw={}, grid={**grid, rule.axis: ends})


def most_trials(rule: Threshold) -> int:
    """The largest number of cells of one line."""
    if rule.spacing == "log":
        steps = (math.log(rule.high) - math.log(rule.low)) / math.log1p(rule.tolerance)
    else:
        steps = (rule.high - rule.low) / (1 if rule.spacing == "integer" else rule.tolerance)
    return 2 + math.ceil(math.log2(max(steps, 1)))


class Bisection:
    """One bisection: the values tried so far, and the bracket."""

    def __init__(self, rule: Threshold, study: Study, index: tuple[int, ...]):
        self.rule, self.study, self.index = rule, study, index
        self.tried: list[float] = []
        self.measured: list[float] = []
        self.failure: Result | None = None

    def next_values(self) -> list[float]:
        """The values to try next; none when the bracket is narrow or the line has ended."""
        if not self.tried:
            return [self.rule.low, self.rule.high]
        low, high = self.bracket
        if self.failure or self.ends_agree or self.rule.narrow(low, high):
            return []
        return [self.rule.middle(low, high)]

    def add(self, value: float, measured: float, result: Result) -> None:
        self.tried.append(value)
        self.measured.append(measured)
        if math.isnan(measured) and self.failure is None:
            reason = result.sentence if result.status not in OK else "the measure is NaN"
            status = Kind.STALLED.value if result.status in USABLE else result.status
            self.failure = Result(status, f"at {self.rule.axis} = {value:g}: {reason}", {}, 0.0)

    @property
    def rising(self) -> bool:
        """Whether the low end is the one that passes."""
        return self.rule.passes(self.measured[0])

    @property
    def ends_agree(self) -> bool:
        return self.rule.passes(self.measured[0]) == self.rule.passes(self.measured[1])

    @property
    def bracket(self) -> tuple[float, float]:
        """(the largest value on the side of the low end, the smallest on that of the high end)."""
        low, high = self.rule.low, self.rule.high
        for value, measured in zip(self.tried[2:], self.measured[2:], strict=True):
            if self.rule.passes(measured) == self.rising:
                low = value
            else:
                high = value
        return low, high

    def cell(self, value: float, code: str) -> Cell:
        *own, _ = self.study.axes  # the last one is bisected; the seed's place ends the index
        at = [axis.values[i] for axis, i in zip(own, self.index, strict=False)]
        seeds = self.study.seed_values
        seed = None if seeds is None else seeds[self.index[-1]]
        spec = spec_at(self.study, [*at, self.rule.value(value)], seed)
        return Cell(cell_name(spec, code), self.index, spec)

    def result(self) -> Result:
        """The line as one row of the dataset."""
        trials = {
            "tried": (("trial",), np.array(self.tried)),
            "measured": (("trial",), np.array(self.measured)),
        }
        if self.failure:
            return dataclasses.replace(self.failure, values=trials)
        if self.ends_agree:
            ends = f"{self.measured[0]:g} at {self.rule.low:g} and {self.measured[1]:g} at "
            sentence = f"{self.rule.measure} is {ends}{self.rule.high:g}: no threshold between"
            return Result(Kind.INFEASIBLE.value, sentence, trials, 0.0)
        low, high = self.bracket
        bounds = {
            "threshold": low if self.rising else high,
            "lower": low,
            "upper": high,
            "trials": len(self.tried),
        }
        return Result(Kind.SOLVED.value, "", {**bounds, **trials}, 0.0)


@door_as(lambda study: study.source)
def bisected(study: Study, rounds: Rounds, command: str) -> xarray.Dataset:
    """The threshold of every line of a study; all lines advance together, one round at a time."""
    rule, plain = read_threshold(study.threshold or {}), with_axis(study)
    indices = itertools.product(*(range(size) for size in study.shape))
    lines = [Bisection(rule, plain, index) for index in indices]
    seen: list[Result] = []
    turns = Turns(10_000, "the search for thresholds")
    while trials := [(line, value) for line in lines for value in line.next_values()]:
        turns.take()
        cells = [line.cell(value, rounds.cache.code.version) for line, value in trials]
        answers = rounds.measures(cells, rule.measure)
        for (line, value), (measured, result) in zip(trials, answers, strict=True):
            line.add(value, measured, result)
        seen += [result for _, result in answers]
    results = {line.index: line.result() for line in lines}
    dataset = label(study, results).assign_attrs(cells=sum(len(line.tried) for line in lines))
    origin = provenance(study, rounds.cache.code.version, command, seen)
    return dataset.assign_attrs(counts(results.values())).assign_attrs(origin)
