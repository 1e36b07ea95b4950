"""What the rules say about one run: the steps to record and to look at, the last one, the goals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tacit.training import record as recording
from tacit.training import stop as stopping
from tacit.training.goals import Goals
from tacit.training.path import Path
from tacit.training.task import Moment

if TYPE_CHECKING:
    from tacit.training.descent.driver import Run

MOST = 10**7  # steps of a run that only a goal ends
LOOKS = 20  # per decade of steps at a goal, where records are fewer


class Plan(NamedTuple):
    """Steps to record and to look at, or times if `timed`; the last step; and the goals."""

    records: Sequence[Any]
    looks: Sequence[Any]
    last: int
    goals: Goals
    timed: bool = False

    def done(self, moment: Moment) -> float:
        """The share of the run that is done."""
        share = moment.step / self.last
        return min(1.0, max(share, moment.t / self.looks[-1])) if self.timed else share

    def kept(self, path: Path, rate: float) -> Any:
        """Which records of an earlier part of the same run belong to it."""
        if not self.timed:
            return np.isin(path.dataset.step.values, self.records)
        passed = np.array([t for t in (0.0, *self.records) if t < path.t + rate / 2])
        nearest = np.abs(path.dataset.t.values - passed[:, None]).argmin(axis=1)
        return np.isin(np.arange(path.dataset.sizes["time"]), nearest)


def plan(run: Run, stop: Sequence[Any], record: Sequence[Any]) -> Plan:
    """What the rules say about this run."""
    who, epoch, last = run.who, run.batches.epoch, _last_step(run, stop)
    goals = Goals(who, run.task, stop, run.meter.first, epoch is None, run.method.steady)
    time = stopping.first(stop, stopping.Time)
    if time is not None and run.method.timed:
        times = recording.times_to_record(who, record, run.rate(run.begin()), time.t)
        return Plan(times, times, last, goals, timed=True)
    records = recording.steps_to_record(who, record, last, epoch)
    looks = set(records)
    if goals.sought and epoch is None:
        looks |= set(recording.log_spaced(last, LOOKS))
    elif goals.any and epoch is not None:
        looks |= set(range(epoch, last + 1, epoch))
    return Plan(records, sorted(looks), last, goals)


def _last_step(run: Run, stop: Sequence[Any]) -> int:
    """The step after which a budget ends the run."""
    if not stop:
        raise ValueError(f"{run.who}: descent never ends by itself; give stop=Steps(1000), say")
    found, epoch = [], run.batches.epoch
    for rule in stop:
        if isinstance(rule, stopping.Steps):
            found.append(rule.count)
        elif isinstance(rule, stopping.Epochs):
            if epoch is None:
                raise ValueError(f"{run.who}: Epochs needs batch=; use Steps")
            found.append(rule.count * epoch)
        elif isinstance(rule, stopping.Time) and run.method.steady:
            count = rule.t / run.method.learning_rate
            if count > 1e15:
                raise ValueError(
                    f"{run.who}: Time({rule.t:g}) is {count:.3g} steps; give a larger learning_rate"
                )
            found.append(max(1, round(count)))
    return min(found, default=MOST)
