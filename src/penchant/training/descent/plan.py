"""The plan of one run: the steps to record and to measure, the last step, and the goals."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from penchant.door import Invalid
from penchant.records import Kind, Outcome
from penchant.training import record as recording
from penchant.training import stop as stopping
from penchant.training.descent.clock import Clock
from penchant.training.goals import listed
from penchant.training.path import Path
from penchant.training.task import Moment, Task

if TYPE_CHECKING:
    from penchant.training.descent.driver import Run


class Goals:
    """The rules of one run of a step-by-step method.

    A level of the loss, a direction and a time are `located` where it `seeks`: if a measurement
    finds one of them passed, the step at which it was met is searched for. Other goals are checked
    at the measurements only. A method is `steady` if its steps have one length in time.
    """

    def __init__(
        self,
        task: Task,
        rules: Sequence[stopping.Stop],
        recorded: Collection[str],
        *,
        seeks: bool,
        steady: bool,
    ) -> None:
        self.task, self.seeks = task, seeks
        self.goals = [rule for rule in rules if not rule.budget]
        unit = task.log_unit()
        levels = [(rule, rule.log_level(task.model, unit)) for rule in self.goals]
        self.levels = [(rule, level) for rule, level in levels if level > -math.inf]
        self.near = [rule for rule in self.goals if rule.directional]
        self.others = [rule for rule in self.goals if rule.levels]
        for rule in self.others:
            if missing := [name for name in rule.levels if name not in recorded]:
                raise Invalid(
                    f"{type(rule).__name__} uses {missing[0]}, which is not recorded "
                    f"here; there are {', '.join(recorded)}"
                )
        if self.near and not task.linear:
            raise Invalid(
                f"Near needs a linear predictor, which {type(task.model).__name__} does not have"
            )
        time = stopping.first(rules, stopping.Time)
        self.log_t = math.inf if time is None or steady else math.log(time.t)
        self.sought = bool(self.levels or self.near) or self.log_t < math.inf
        self.any = bool(self.goals) or self.log_t < math.inf

    def located(self, moment: Moment, numbers: Mapping[str, float]) -> bool:
        """Whether a rule is met whose step can be found between two measurements."""
        passed = self._passed(moment, numbers) is not None
        return self.seeks and (passed or self._is_over(moment))

    def _passed(self, moment: Moment, numbers: Mapping[str, float]) -> str | None:
        for rule, level in self.levels:
            if numbers["log_loss"] <= level:
                return f"reached {rule}"
        for rule in self.near:
            if rule.gap(self.task.predictor(moment.state)) <= 0:
                return f"reached {rule}"
        return None

    def _is_over(self, moment: Moment) -> bool:
        return moment.log_t >= self.log_t

    def met(self, moment: Moment, numbers: Mapping[str, float]) -> Outcome | None:
        """The outcome if a goal is met, or the time of a method of variable steps is over."""
        reason = self._passed(moment, numbers)
        for rule in self.others:
            if rule.missed(numbers) is None:
                seen = {name: f"{numbers[name]:.4g}" for name in rule.levels}
                reason = f"reached {listed(seen)}"
        if reason is None and not self._is_over(moment):
            return None
        if reason is None and self.goals:
            return self.ended(moment, numbers)
        reason = reason or f"reached t = {math.exp(moment.log_t):.6g}"
        loss = f"log loss {numbers['log_loss']:.6g}"
        return Outcome(Kind.SOLVED, f"{reason} after {moment.step} steps with {loss}")

    def ended(self, moment: Moment, numbers: Mapping[str, float]) -> Outcome:
        loss = f"loss {numbers['loss']:.3g}"
        if not numbers["loss"] > 0:
            loss = f"log loss {numbers['log_loss']:.6g}"
        if not self.goals:
            return Outcome(Kind.SOLVED, f"took all {moment.step} steps, {loss}")
        short = [f"{loss} above {rule}" for rule, _ in self.levels]
        for rule in self.near:
            gap = rule.gap(self.task.predictor(moment.state))
            short.append(f"{gap:.4g} degrees outside {rule}")
        short += [str(rule.missed(numbers)) for rule in self.others]
        sentence = f"{moment.step} steps ended at {' and '.join(short)}; allow more steps"
        return Outcome(Kind.BUDGET_SPENT, sentence)


MOST = 10**7  # steps of a run that only a goal ends
LOOKS = 20  # per decade of steps at a goal, where records are fewer


class StepPlan(NamedTuple):
    """Steps to record and to measure, or times if `timed`; the last step; and the goals."""

    records: Sequence[Any]
    looks: Sequence[Any]
    last: int
    goals: Goals
    timed: bool = False

    def done(self, moment: Moment) -> float:
        """The share of the run that is done."""
        share = moment.step / self.last
        return min(1.0, max(share, moment.t / self.looks[-1])) if self.timed else share

    def belonging(self, path: Path, rate: float) -> Any:
        """Which records of an earlier part of the same run belong to it."""
        if not self.timed:
            return np.isin(path.dataset.step.values, self.records)
        passed = np.array([t for t in (0.0, *self.records) if t < path.t + rate / 2])
        nearest = np.abs(path.dataset.t.values - passed[:, None]).argmin(axis=1)
        return np.isin(np.arange(path.dataset.sizes["time"]), nearest)


def plan(run: Run, stop: Sequence[Any], record: Sequence[Any]) -> StepPlan:
    epoch = run.batches.epoch
    last = last_step(run.scheme.clock, stop, epoch)
    steady = run.scheme.clock.steady
    goals = Goals(run.task, stop, run.meter.first, seeks=epoch is None, steady=steady)
    time = stopping.first(stop, stopping.Time)
    if time is not None and run.scheme.clock.timed:
        times = recording.times_to_record(record, run.rate(run.begin()), time.t)
        return StepPlan(times, times, last, goals, timed=True)
    records = recording.steps_to_record(record, last, epoch)
    looks = set(records)
    if goals.sought and epoch is None:
        looks |= set(recording.log_spaced(last, LOOKS))
    elif goals.any and epoch is not None:
        looks |= set(range(epoch, last + 1, epoch))
    return StepPlan(records, sorted(looks), last, goals)


def last_step(clock: Clock, stop: Sequence[Any], epoch: int | None) -> int:
    """The largest number of steps that the rules allow."""
    if not stop:
        raise Invalid("descent never ends by itself; give a rule, stop=Steps(1000)")
    limits = []
    for rule in stop:
        if isinstance(rule, stopping.Steps):
            limits.append(rule.count)
        elif isinstance(rule, stopping.Epochs):
            if epoch is None:
                raise Invalid("Epochs needs batch=; use Steps")
            limits.append(rule.count * epoch)
        elif isinstance(rule, stopping.Time) and (count := clock.steps_in(rule.t)) is not None:
            if count > 1e15:
                raise Invalid(f"Time({rule.t:g}) is {count:.3g} steps; give a larger learning_rate")
            limits.append(max(1, round(count)))
    return min(limits, default=MOST)
