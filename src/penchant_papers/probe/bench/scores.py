"""How far rules are off: when a run groks, and whether.

A rule is asked at ASKED times the memorization, as long as the run has not grokked: half of the way
from the test accuracy at memorization to that of the end. A run that has not ended (its test
accuracy still moves) is left out. Every run that is asked at all has the same weight.

- when: the median of |step / truth - 1|, and the share of the truths in the interval of 80%.
- whether: the area under the curve of hits against false alarms (a half is chance), where a rule
  ranks by its chance, or else by how soon it says that the run groks; a refusal ranks last.
- refusals: the share of the questions about runs that grok that a rule does not answer.
- false alarms: the share of the runs that do not grok whose jump is said to come before their end.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from penchant.lab import Array
from penchant_papers.probe.bench.recorded import ended
from penchant_papers.probe.bench.rules import cut
from penchant_papers.probe.forecast_rules import RecordedRun, Rule, Said

ASKED = (1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 8.0)  # times the memorization
WHETHER = 1.2  # when it is asked whether a run groks
TAILS = (0.1, 0.9)
NINE = 9  # runs, of which the largest is below a tenth of other runs


@dataclasses.dataclass(frozen=True)
class RuleAnswer:
    """What a rule said of a run at a step."""

    run: RecordedRun
    factor: float
    now: float
    said: Said

    @property
    def truth(self) -> float:
        return self.run.moments.t_half

    @property
    def error(self) -> float:
        return abs(self.said.step / self.truth - 1)

    @property
    def inside(self) -> bool:
        return self.said.low <= self.truth <= self.said.high

    @property
    def rank(self) -> float:
        if math.isfinite(self.said.chance):
            return self.said.chance
        step = self.said.step
        return -math.log(step / self.now) if math.isfinite(step) else -math.inf


def answers(
    rule: Rule, runs: Iterable[RecordedRun], asked: Iterable[float] = ASKED
) -> list[RuleAnswer]:
    """All that a rule says of the runs that memorize and end, `asked` times the memorization."""
    return [
        RuleAnswer(run, factor, now, rule(cut(run, now), now))
        for run in runs
        if math.isfinite(run.moments.t_mem) and ended(run)
        for factor in asked
        if (now := factor * run.moments.t_mem) < min(_until(run), run.run.steps)
    ]


def _until(run: RecordedRun) -> float:
    return run.moments.t_half if run.moments.groks else math.inf


@dataclasses.dataclass(frozen=True)
class Tally:
    """The scores of a rule on some runs; NaN where there is nothing to score."""

    grok: int
    quiet: int
    error: float
    coverage: float
    width: float  # the upper end of an interval over its lower end, in the median
    refused: float
    auroc: float
    alarms: float


def tally(given: list[RuleAnswer]) -> Tally:
    """The scores of answers."""
    due = [answer for answer in given if answer.run.moments.groks]
    known = [answer for answer in due if math.isfinite(answer.said.step)]
    bounded = [answer for answer in known if math.isfinite(answer.said.high)]
    asked = [answer for answer in given if answer.factor == WHETHER]
    groks = np.array([answer.run.moments.groks for answer in asked], dtype=bool)
    quiet = [answer for answer in asked if not answer.run.moments.groks]
    early = [answer.said.step <= answer.run.run.steps for answer in quiet]
    missing = [not math.isfinite(answer.said.step) for answer in due]
    return Tally(
        grok=len({answer.run.run.seed for answer in due}),
        quiet=len(quiet),
        error=median([answer.error for answer in known], weights(known)),
        coverage=mean([answer.inside for answer in bounded], weights(bounded)),
        width=median([a.said.high / max(a.said.low, 1.0) for a in bounded], weights(bounded)),
        refused=mean(missing, weights(due)),
        auroc=area(np.array([answer.rank for answer in asked]), groks),
        alarms=mean(early, np.ones(len(early))) if known else math.nan,
    )


def weights(given: list[RuleAnswer]) -> Array:
    """One over the number of answers about the same run."""
    seeds = [answer.run.run.seed for answer in given]
    return np.array([1 / seeds.count(seed) for seed in seeds])


def mean(values: Iterable[float], weight: Array) -> float:
    return float(np.average(list(values), weights=weight)) if len(weight) else math.nan


def median(values: Iterable[float], weight: Array) -> float:
    return quantile(np.array(list(values), dtype=float), weight, 0.5)


def quantile(values: Array, weight: Array, share: float) -> float:
    """The least value such that values up to it have this share of the weight."""
    if not len(values):
        return math.nan
    order = np.argsort(values)
    reached = np.cumsum(weight[order]) / weight.sum()
    place = min(int(np.searchsorted(reached, share)), len(values) - 1)
    return float(values[order[place]])


def area(ranks: Array, groks: NDArray[np.bool_]) -> float:
    """The chance that a run that groks ranks above one that does not; ties count a half."""
    if groks.all() or not groks.any():
        return math.nan
    high, low = ranks[groks][:, None], ranks[~groks][None]
    return float(np.mean((high > low) + 0.5 * (high == low)))


def remembered(rule: Rule) -> Rule:
    """The rule, asked once for every run and step."""
    known: dict[tuple[int, float], Said] = {}

    def asked(seen: RecordedRun, now: float) -> Said:
        key = (seen.run.seed, now)
        if key not in known:
            known[key] = rule(seen, now)
        return known[key]

    return asked


Place = Callable[[RecordedRun], str]


def calibrated(
    rule: Rule, runs: list[RecordedRun], asked: Iterable[float] = ASKED, family: Place | None = None
) -> Rule:
    """The rule with intervals of 80%, from its errors on `runs`, family by family.

    The interval is the step said, times the weighted quantiles of truth / step (split conformal
    prediction, with a tenth of a run more on each side). A family with fewer than NINE runs has the
    interval of all runs: of fewer, not even the largest leaves a tenth of other runs outside.
    """
    place = family or (lambda recorded: recorded.run.family)
    due = [
        a for a in answers(rule, runs, asked) if a.run.moments.groks and math.isfinite(a.said.step)
    ]
    groups = {
        name: [a for a in due if place(a.run) == name] for name in {place(a.run) for a in due}
    }
    groups = {name: part for name, part in groups.items() if _count(part) >= NINE} | {"": due}
    ends = {name: _ends(part) for name, part in groups.items()}

    def bounded(seen: RecordedRun, now: float) -> Said:
        said = rule(seen, now)
        low, high = ends.get(place(seen), ends[""])
        if not math.isfinite(said.step):
            return said
        return said._replace(low=max(low * said.step, now), high=max(high * said.step, now))

    return bounded


def _count(part: list[RuleAnswer]) -> int:
    return len({answer.run.run.seed for answer in part})


def _ends(part: list[RuleAnswer]) -> tuple[float, float]:
    """Quantiles of truth / step, corrected for the number of runs."""
    if not part:
        return math.nan, math.nan
    ratios = np.array([answer.truth / answer.said.step for answer in part])
    more = min((1 + 1 / _count(part)) * TAILS[1], 1.0)
    weight = weights(part)
    return quantile(ratios, weight, 1 - more), quantile(ratios, weight, more)
