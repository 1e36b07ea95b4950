"""Rules that say when a run will grok, that of the watch and its rivals, and how far they are off.

A rule is given the record of a run until now. What it says is compared with the whole record.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from penchant import forecast
from penchant.forecasts import forecast_jump
from penchant.lab import Array

if TYPE_CHECKING:
    import xarray

SOLVED = 0.99  # training accuracy of a run that has memorized
STAYS = 1.2  # a level is reached where the curve stays above it for so many times as long
RISE = 0.1  # of the test accuracy after memorization, of a run that groks
LAST = 0.05  # share of the records that give the ceiling
ASKED = (1.0, 1.2, 1.5, 2.0, 3.0)  # times the memorization
# t_half / t_mem of the runs that the law of the watch was fitted on: geometric mean, and standard
# deviation of the logarithm
CLOCK, SPREAD = 5.84, 0.90
TENTH = 1.2816  # standard deviations that leave a tenth on each side


class Moments(NamedTuple):
    """Steps of memorization, of half the rise of the test accuracy, of 95% of its ceiling; or NaN.

    A run that does not grok has no t_half; one that does not memorize has no t_mem.
    """

    t_mem: float
    t_half: float
    t2: float
    plateau: float
    ceiling: float

    @property
    def groks(self) -> bool:
        return math.isfinite(self.t_half)


def reached(t: Array, curve: Array, level: float) -> float:
    """The first time from which the curve is at least `level` until STAYS times that time."""
    low = np.append(np.flatnonzero(~(curve >= level)), len(t))
    for place in np.flatnonzero(curve >= level):
        below = low[np.searchsorted(low, place)]
        if below == len(t) or t[below] > STAYS * t[place]:
            return float(t[place])
    return math.nan


def moments(t: Array, train: Array, test: Array) -> Moments:
    """When a run memorizes and groks, read off its whole record."""
    ceiling = float(np.median(test[-max(round(LAST * len(test)), 3) :]))
    t_mem = reached(t, train, SOLVED)
    if math.isnan(t_mem):
        return Moments(math.nan, math.nan, math.nan, math.nan, ceiling)
    later = t >= t_mem
    plateau = float(test[later][0])
    if not ceiling - plateau >= RISE:
        return Moments(t_mem, math.nan, math.nan, plateau, ceiling)
    half, most = (
        reached(t[later], test[later], level) for level in ((plateau + ceiling) / 2, 0.95 * ceiling)
    )
    return Moments(t_mem, half, most, plateau, ceiling)


@dataclasses.dataclass(frozen=True)
class RecordedRun:
    """A run (a ProbeRun or one like it), its curves by name, and its moments."""

    run: Any
    curves: dict[str, Array]
    moments: Moments

    def until(self, now: float) -> dict[str, Array]:
        """What was recorded until `now`."""
        seen = self.curves["step"] <= now
        return {name: curve[seen] for name, curve in self.curves.items()}

    def asked(self, factor: float) -> float:
        """So many times the memorization; without one it is put at a fifth of the run."""
        base = self.moments.t_mem
        return factor * (base if math.isfinite(base) else self.run.steps / 5)


class Said(NamedTuple):
    """A step with an interval; NaN where the rule says none.

    `chance` is a number that is larger where a jump is more likely, of rules that say one.
    """

    step: float = math.nan
    low: float = math.nan
    high: float = math.nan
    chance: float = math.nan


Rule = Callable[[RecordedRun, float], Said]


def of_the_watch(recorded: RecordedRun, now: float) -> Said:
    """What `watch.forecast` is on a record that ends now."""
    jump = forecast_jump(watched(recorded, now))
    return Said(jump.step, jump.low, jump.high)


def watched(recorded: RecordedRun, now: float) -> xarray.Dataset:
    """The record that a watch has of the run now."""
    import xarray

    seen, run = recorded.until(now), recorded.run
    columns = {f"glance_{name}": seen[name] for name in ("step", "norm", "turn")}
    columns["glance_rate"] = run.decay_rate * seen["learning_rate"] / run.learning_rate
    sides = [f"{side}_{kind}" for side in ("train", "test") for kind in ("accuracy", "loss")]
    calls = {"call_step": seen["step"], **{name: seen[name] for name in sides}}
    return xarray.Dataset(
        {name: ("glance", values) for name, values in columns.items()}
        | {name: ("call", values) for name, values in calls.items()},
        attrs={"weight_decay": run.weight_decay, "start_step": 0.0, "level": None},
    )


def norm_rule(recorded: RecordedRun, now: float) -> Said:
    """Where the displacement is as long as the decayed start, by two straight lines."""
    seen = recorded.until(now)
    try:
        predicted = forecast(
            {"t": seen["step"], "parameter_norm": seen["norm"], "turn": seen["turn"]}
        )
    except ValueError:
        return Said()
    return Said(predicted.transition, predicted.low, predicted.high)


def norm_separation(recorded: RecordedRun, now: float) -> Said:
    """t_mem + log(|theta_mem|^2 / |theta_post|^2) / (learning rate * decay), arXiv 2603.13331.

    theta_post is not known before the run groks: here the rule is given the norm that this very
    run has at t2, or at its end where there is no t2. If it is larger, there is no forecast.
    """
    t_mem, t2 = recorded.moments.t_mem, recorded.moments.t2
    steps, norms = recorded.curves["step"], recorded.curves["norm"]
    rate = recorded.run.decay_rate
    if not rate > 0 or math.isnan(t_mem):
        return Said()
    before, after = np.interp([t_mem, t2 if math.isfinite(t2) else steps[-1]], steps, norms)
    return Said(t_mem + 2 * math.log(before / after) / rate) if after < before else Said()


def naive_clock(recorded: RecordedRun, now: float) -> Said:
    """A fixed number of times t_mem."""
    widths = (0.0, -TENTH * SPREAD, TENTH * SPREAD)
    return Said(*(recorded.moments.t_mem * CLOCK * math.exp(width) for width in widths))


RULES: dict[str, Rule] = {
    "the watch": of_the_watch,
    "norm rule": norm_rule,
    "norm separation": norm_separation,
    "clock": naive_clock,
}


@dataclasses.dataclass(frozen=True)
class Score:
    """What a rule said of the runs that had not grokked when it was asked, and of the others.

    `pairs` are what it said and t_half, where it said something; `refused` counts where it did
    not. Of the `quiet` runs, which do not grok, `alarms` were said to, after their memorization.
    """

    pairs: list[tuple[Said, float]]
    refused: int
    alarms: int
    quiet: int

    @property
    def errors(self) -> list[float]:
        """Distances to t_half over t_half."""
        return [abs(said.step - truth) / truth for said, truth in self.pairs]

    @property
    def error(self) -> float:
        """Their mean."""
        return float(np.mean(self.errors)) if self.pairs else math.nan

    @property
    def median(self) -> float:
        """Their median."""
        return float(np.median(self.errors)) if self.pairs else math.nan

    @property
    def coverage(self) -> float:
        """The share of the runs with t_half in the interval; NaN for a rule without intervals.

        A run without a forecast counts as one whose interval misses.
        """
        inside = [s.low <= truth <= s.high for s, truth in self.pairs]
        if self.pairs and all(math.isnan(said.high) for said, _ in self.pairs):
            return math.nan
        return sum(inside) / self.asked if self.asked else math.nan

    def near(self, factor: float) -> float:
        """The share of the runs whose jump is within this factor of what was said.

        A run without a forecast counts as one that is not.
        """
        ratios = [said.step / truth for said, truth in self.pairs]
        near = sum(1 / factor <= ratio <= factor for ratio in ratios)
        return near / self.asked if self.asked else math.nan

    @property
    def width(self) -> float:
        """How many times its lower end the upper end of an interval is, in the median."""
        ends = [(s.low, s.high) for s, _ in self.pairs if not math.isnan(s.high)]
        ratios = [high / low if low > 0 else math.inf for low, high in ends]
        return float(np.median(ratios)) if ratios else math.nan

    @property
    def asked(self) -> int:
        """The number of runs that had not grokked."""
        return len(self.pairs) + self.refused


def score(runs: list[RecordedRun], rule: Rule, factor: float) -> Score:
    """How well a rule does when it is asked at `factor` times the memorization."""
    said = [(rule(run, run.asked(factor)), run) for run in runs]
    due = [
        (answer, run.moments.t_half)
        for answer, run in said
        if run.moments.groks and run.asked(factor) < run.moments.t_half
    ]
    quiet = [(answer.step, run.moments.t_mem) for answer, run in said if not run.moments.groks]
    known = [pair for pair in due if math.isfinite(pair[0].step)]
    alarms = sum(math.isfinite(step) and not step <= t_mem for step, t_mem in quiet)
    return Score(known, len(due) - len(known), alarms, len(quiet))
