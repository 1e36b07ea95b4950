"""The outer loop of every exact flow: records, stop rules, budgets, progress and the outcome.

How it works. An `Integrator` takes steps of its own choice and interpolates within the last one; a
`FlowPlan` says which times to record and what ends the run. After each step `_steps` looks for the
first goal that was met inside the step, at the place where its gap falls to zero; records the times
that were passed, by interpolation; and asks whether the loss is low enough, the time or the number
of steps is spent, or nothing moves any more.

So a record never changes the steps of a flow that interpolates, and a stop is located to rounding,
not to the end of a step. Integrators that cannot interpolate end a step at the `limit` they get.

Pitfalls. A flow near a saddle stands still for most of a run and goes on afterwards. It counts as
at rest only where no variable has moved by 1e-9 of itself over a whole decade of time and the loss
has not halved meanwhile. The loss that rounding leaves may be above the one asked for; then the
outcome says so and the run ends there. The loss of a fit is evaluated after every eighth of many
small steps only, or when the time has grown by a tenth.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from penchant.door import door_as
from penchant.interrupt import interrupted
from penchant.limits import Turns
from penchant.problems.regression import Regression
from penchant.records import Kind, Outcome
from penchant.solvers.constraints import reduce
from penchant.training import stop as stopping
from penchant.training.exact.flow import (
    Flow,
    RunSettings,
    own_time,
    requested_times,
    times_to_record,
)
from penchant.training.exact.loss import log_sum_of_squares
from penchant.training.exact.solver import GaveUp, crossing, quiet
from penchant.training.task import Moment, Progress

ROUNDING = 1e-26  # of the loss of the zero predictor: the loss that rounding leaves of an exact fit
SETTLED = 1e-9  # relative change of every variable over a decade of time that counts as none
LOOK = 8  # small steps between two evaluations of the loss of a fit
SADDLE = "the start is a saddle or a minimum: the gradient vanishes there and nothing moves"
STOPS = (stopping.Interpolated, stopping.Loss, stopping.LogLoss, stopping.Time)


class Goal(NamedTuple):
    """A reason to stop that is located within a step: `gap` falls to zero there."""

    gap: Callable[[Moment], float]
    outcome: Callable[[Moment], Outcome]


class FlowPlan(NamedTuple):
    """When to stop, and what to record, in the time of the flow."""

    times: Iterator[float]  # increasing
    max_steps: int
    t_max: float = math.inf
    log_level: float = -math.inf  # of the loss that is low enough
    bare: bool = False  # whether no goal was given, so that `t_max` is the goal
    unit: float = 1.0  # the shortest time scale at the start
    goals: tuple[Goal, ...] = ()
    rests: bool = True  # whether a flow at rest is at its end
    look: int = 1  # small steps between two evaluations of the loss
    progress: Progress | None = None

    @property
    def looks(self) -> bool:
        """True if anything other than time and the number of steps can stop the flow."""
        return self.rests or bool(self.goals) or self.log_level > -math.inf


def log_level(
    settings: RunSettings,
    model: object,
    log_unit: float,
    why: str,
    fitted: float = stopping.Interpolated().relative,
) -> float:
    """The log loss of values to stop at; without a goal where they are `fitted`."""
    stopping.understood(settings.stops, STOPS, why)
    fitted = fitted if settings.t_max is None else ROUNDING
    return settings.log_level(model, log_unit, fitted)


def planned(
    flow: Flow,
    settings: RunSettings,
    unit: float,
    first: float,
    level: float,
    log_unit: float = 0.0,
) -> FlowPlan:
    """The plan of a run in training time over exp(log_unit), with records from `first` on."""
    t_max = math.inf if settings.t_max is None else own_time(settings.t_max, log_unit)
    requested = [own_time(t, log_unit) for t in requested_times(settings)]
    times = times_to_record(first, settings.per_decade, requested, t_max)
    bare = not settings.goals and settings.t_max is not None
    return FlowPlan(times, flow.max_steps, t_max, level, bare, unit, progress=settings.progress)


class Integrator(abc.ABC):
    """One flow, step by step in its own time; `t` is that time after the last step."""

    t: float = 0.0
    steps: int = 0  # so far
    stuck: bool = False  # whether nothing moves from the start
    hint: str = ""  # why there may be many steps

    @abc.abstractmethod
    def advance(self, limit: float) -> None:
        """Takes a step, beyond `limit` only if `at` interpolates; raises GaveUp if it cannot.

        After GaveUp the flow is where its last accepted step ended.
        """

    @abc.abstractmethod
    def at(self, t: float) -> Moment:
        """The moment at a time within the last step."""

    def log_loss(self, now: Moment) -> float:
        """The logarithm of the loss, where that can end the flow."""
        return math.inf

    def log_floor(self, now: Moment) -> float:
        """The log loss that rounding leaves, where that ends the flow."""
        return -math.inf

    def time_text(self, t: float) -> str:
        return f"t={t:.4g}"

    def level(self, now: Moment) -> str:
        return f" with loss {math.exp(self.log_loss(now)):.3g}"

    def state_text(self, now: Moment) -> str:
        return f"{self.time_text(now.t)}{self.level(now)}"

    def still(self, before: Moment, now: Moment) -> bool:
        """True if no variable moved."""
        return bool((np.abs(now.state - before.state) <= SETTLED * np.abs(now.state)).all())

    def at_rest(self, now: Moment, plan: FlowPlan) -> Outcome:
        """The outcome of a flow that a decade of time has not moved."""
        where = f"at rest since {self.time_text(now.t / 10)}{self.level(now)}"
        if plan.bare:
            return Outcome(Kind.SOLVED, where)
        return Outcome(Kind.STALLED, f"{where}: {self.why(now, plan)}")

    def why(self, now: Moment, plan: FlowPlan) -> str:
        return "the model cannot move further"

    def reached(self, now: Moment, plan: FlowPlan) -> Outcome:
        if plan.bare:
            return Outcome(Kind.SOLVED, f"followed to {self.state_text(now)}")
        return self.spent(now, plan, "Time; allow more time")

    def spent(self, now: Moment, plan: FlowPlan, by: str) -> Outcome:
        goal = f" > {math.exp(plan.log_level):.3g}" if plan.log_level > -math.inf else ""
        return Outcome(Kind.BUDGET_SPENT, f"stopped at {self.state_text(now)}{goal} by {by}")


def follow(flow: Integrator, plan: FlowPlan, begin: Moment) -> tuple[list[Moment], Outcome]:
    """Moments at the start, at the times of the plan and at the end, and the outcome."""
    records = [begin]
    if flow.log_loss(begin) <= plan.log_level:
        return records, Outcome(Kind.SOLVED, "the start already fits the data")
    if flow.stuck:
        return records, Outcome(Kind.STALLED, SADDLE)
    return records, go_on(flow, plan, records)


def go_on(flow: Integrator, plan: FlowPlan, records: list[Moment]) -> Outcome:
    """Adds the moments of a flow that can move to `records`; the outcome."""
    with quiet():
        try:
            return _steps(flow, plan, records)
        except GaveUp as reason:
            now = flow.at(flow.t)
            now = _end(records, now) if np.isfinite(now.state).all() else records[-1]
            sentence = f"{reason.what} at {flow.state_text(now)}: {reason}"
            return Outcome(Kind.STALLED, sentence)


def _steps(flow: Integrator, plan: FlowPlan, records: list[Moment]) -> Outcome:
    checkpoint = last = records[-1]
    reporter, due = _Reporter(flow, plan, last), next(plan.times, math.inf)
    for _ in Turns(10 * plan.max_steps + 10_000, "the flow"):
        before = flow.t
        if interrupted():
            _end(records, flow.at(before) if flow.steps else records[-1])
            return Outcome(Kind.INTERRUPTED, f"stopped by Ctrl-C at {flow.time_text(before)}")
        flow.advance(min(due, plan.t_max))
        t = min(flow.t, plan.t_max)
        met = _first_met(flow, plan, before, t)
        t = t if met is None else met[0]
        passed = Turns(10_000_000, "the list of times to record")
        while due <= t and due < math.inf:  # no list ends at an infinite time
            passed.take()
            records.append(flow.at(due))
            due = next(plan.times, math.inf)
        if met is not None:
            outcome = met[1](_end(records, flow.at(t)))
            break
        if t < plan.t_max and _passes(flow, plan, 1.1 * last.t):
            if not plan.looks:
                reporter.report(t)
            continue
        last = now = records[-1] if records[-1].t == t else flow.at(t)
        loss = flow.log_loss(now) if plan.looks else -math.inf
        reporter.report(t, loss)
        if (ended := _ended(flow, plan, checkpoint, now, loss)) is not None:
            outcome = ended
            _end(records, now)
            break
        if now.t >= 10 * checkpoint.t:
            checkpoint = now
    return outcome


def _passes(flow: Integrator, plan: FlowPlan, soon: float) -> bool:
    """True if nothing is checked after this step, since it is small and others follow."""
    if plan.looks:
        return bool(flow.steps % plan.look) and flow.t < soon
    return flow.steps < plan.max_steps


def _ended(
    flow: Integrator, plan: FlowPlan, before: Moment, now: Moment, loss: float
) -> Outcome | None:
    if not (loss < math.inf and np.isfinite(now.state).all()):
        return Outcome(Kind.DIVERGED, f"not finite at {flow.time_text(now.t)}")
    if plan.log_level > -math.inf and (met := _met(flow, plan, now, loss)) is not None:
        return Outcome(Kind.SOLVED, f"the target is met at {flow.state_text(now)}{met}")
    if now.t == math.inf:
        return Outcome(Kind.STALLED, "the time of the flow is beyond float64")
    if now.t >= plan.t_max:
        return flow.reached(now, plan)
    if flow.steps >= plan.max_steps:
        by = f"{plan.max_steps} integrator steps{flow.hint}; raise max_steps"
        return flow.spent(now, plan, by)
    if plan.rests and now.t >= 10 * before.t > 0 and flow.still(before, now):
        halved = loss <= flow.log_loss(before) - math.log(2)
        return None if halved else flow.at_rest(now, plan)
    return None


def _met(flow: Integrator, plan: FlowPlan, now: Moment, loss: float) -> str | None:
    """None if the loss is too large, and otherwise a remark for the outcome."""
    if loss <= plan.log_level:
        return ""
    return ", as far as rounding allows from this start" if loss <= flow.log_floor(now) else None


def _first_met(
    flow: Integrator, plan: FlowPlan, before: float, now: float
) -> tuple[float, Callable[[Moment], Outcome]] | None:
    crossings = []
    for goal in plan.goals:
        if goal.gap(flow.at(now)) <= 0:
            t = crossing(lambda t, gap=goal.gap: gap(flow.at(t)), before, now)  # type: ignore[misc]
            crossings.append((t, goal.outcome))
    return min(crossings, key=lambda pair: pair[0], default=None)


def _end(records: list[Moment], last: Moment) -> Moment:
    if last.t > records[-1].t:
        records.append(last)
    return last


class _Reporter:
    """Reports the progress of a run in its time or its loss."""

    def __init__(self, flow: Integrator, plan: FlowPlan, begin: Moment) -> None:
        self.flow, self.plan = flow, plan
        self.by_loss = plan.t_max == math.inf
        self.first = flow.log_loss(begin) if self.by_loss else 0.0

    def report(self, t: float, loss: float = math.nan) -> None:
        if self.plan.progress is None:
            return
        self.plan.progress(min(max(self._share(t, loss), 0.0), 1.0), self.flow.time_text(t))

    def _share(self, t: float, loss: float) -> float:
        if not self.by_loss:
            return math.log1p(t / self.plan.unit) / math.log1p(self.plan.t_max / self.plan.unit)
        span = self.first - self.plan.log_level
        return (self.first - loss) / span if 0 < span < math.inf else 0.0


def planned_fit(
    flow: Flow,
    settings: RunSettings,
    model: object,
    problem: Regression,
    unit: float,
    log_unit: float = 0.0,
) -> FlowPlan:
    """The plan of a run on values, in units of exp(log_unit) of the training time."""
    log_scale = float(log_sum_of_squares(problem.y)) if problem.y.any() else 0.0
    why = "where a linear predictor learns values"
    level = log_level(settings, model, log_scale, why)
    return planned(flow, settings, unit, 0.01 * unit, level, log_unit)._replace(look=LOOK)


class FitIntegrator(Integrator):
    """Steps of a flow whose moments have a predictor of the values of `problem`."""

    def __init__(self, problem: Regression) -> None:
        self.problem = problem

    def log_loss(self, now: Moment) -> float:
        return float(log_sum_of_squares(self.problem.X @ now.predictor - self.problem.y))

    def why(self, now: Moment, plan: FlowPlan) -> str:
        X, y = self.problem.X, self.problem.y
        best = np.linalg.lstsq(X, y, rcond=None)[0]
        floor = float(np.sum((X @ best - y) ** 2))
        here, zero = math.exp(self.log_loss(now)), float(np.sum(y**2))
        if here < ROUNDING * zero:
            return "rounding leaves no less; stop at a larger loss"
        if floor > 0.5 * here and _contradictory(self.problem):
            return f"no linear predictor fits y, the least-squares loss is {floor:.3g}"
        if here < 1e-12 * zero:
            goal = math.exp(plan.log_level)
            return f"the steps are not accurate enough for {goal:.3g}; lower rtol"
        return super().why(now, plan)


@door_as("follow")
def _contradictory(problem: Regression) -> bool:
    """True if no linear predictor fits y, decided after scaling the rows and columns."""
    try:
        reduce(problem.X, problem.y)
    except ValueError:
        return True
    return False
