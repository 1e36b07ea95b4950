"""Following a flow whose clock is the smoothed margin: records, and when to stop."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tacit.arguments import Array
from tacit.records import Kind, Outcome
from tacit.training import stop as stopping
from tacit.training.exact.flow import Course, Flow
from tacit.training.exact.follow import SADDLE, STOPS, Goal, Plan, go_on
from tacit.training.exact.labelling import columns
from tacit.training.exact.margins import integrator
from tacit.training.exact.margins.integrator import PASSED, MarginSteps, MarginSystem, Opening
from tacit.training.exact.task import Moment
from tacit.training.task import Progress

GOALS = (*STOPS, stopping.Scale, stopping.Near)
END = 1e13  # the smoothed margin at which a direction that is never met is given up


class MarginPlan(NamedTuple):
    """Where to go: the `end` of the smoothed margin, what to record and what stops earlier."""

    end: float
    rules: tuple[stopping.Stop, ...]  # the goals
    log_t_max: float
    margins: tuple[float, ...]  # to record
    per_decade: int | None
    rtol: float
    max_steps: int
    progress: Progress | None
    met: bool = False  # whether the start is there already

    def of(self, part: MarginSteps) -> Plan:
        """The plan of one part of the way, in its own clock."""
        goals: tuple[Goal, ...] = ()
        if self.log_t_max < math.inf or any(rule.directional for rule in self.rules):
            goals = (*map(_direction, self.rules), Goal(self._time_left, self._out_of_time))
        end = part.end
        settings: Any = {"goals": goals, "rests": False, "progress": self.progress}
        return Plan(self._records(part), self.max_steps, end, unit=end, **settings)

    def _records(self, part: MarginSteps) -> Iterator[float]:
        spaced: list[float] = []
        if self.per_decade is not None:
            step = math.log(10) / self.per_decade
            # the clock is already logarithmic in g but for its first unit
            spaced = list(np.arange(step, part.end, step))
        system = part.system
        asked = [system.sigma(g) for g in self.margins if g > system.begin_g]
        return iter(sorted({*spaced, *(sigma for sigma in asked if sigma <= part.end)}))

    def _time_left(self, now: Moment) -> float:
        return self.log_t_max - float(now.log_t)

    def _out_of_time(self, now: Moment) -> Outcome:
        g = f"smoothed margin {now.smoothed_margin:.6g}"
        if self.rules:
            return Outcome(Kind.BUDGET_SPENT, f"stopped at {g} by Time; give more of it")
        return Outcome(Kind.SOLVED, f"followed to t={math.exp(self.log_t_max):.6g}, {g}")


def _direction(rule: stopping.Stop) -> Goal:
    def met(now: Moment) -> Outcome:
        return Outcome(Kind.SOLVED, f"came to {rule} at smoothed margin {now.smoothed_margin:.6g}")

    return Goal(lambda now: rule.gap(now.predictor), met)


def planned_margin(
    who: str, flow: Flow, course: Course, model: Any, start_margin: float
) -> MarginPlan:
    """The plan of a run on labels, or the reason why there is none."""
    stopping.understood(who, course.stops, GOALS)
    fitted = stopping.Interpolated().relative if course.t_max is None else None
    end = -course.log_level(who, model, -start_margin, fitted)
    met = not end > start_margin
    end = END if end == math.inf else end  # only a direction or a time to come to
    log_t_max = math.inf if course.t_max is None else math.log(course.t_max)
    asked = tuple(g for g in course.asked(who, "margins") or () if g > 0)
    settings = asked, course.per_decade, flow.rtol, flow.max_steps, course.progress
    return MarginPlan(end, course.goals, log_t_max, *settings, met)


def follow_margin(
    system: MarginSystem, plan: MarginPlan, opening: Opening | None = None
) -> tuple[list[Moment], Outcome]:
    """Moments at log-spaced smoothed margins, at those asked for and at the end; the outcome.

    An `opening` goes first, and its successor is followed from where it ends.
    """
    moments = [system.first()]
    if plan.met:
        return moments, Outcome(Kind.SOLVED, "the loss of the start is small enough already")
    if system.stuck:
        return moments, Outcome(Kind.STALLED, SADDLE)
    if opening is None:
        return moments, _integrated(system, plan, moments)
    outcome = go_on(opening, plan.of(opening), moments)
    if outcome is not PASSED:
        return moments, outcome
    rest = [moments.pop()._replace(t=0.0)]
    outcome = _integrated(opening.successor(), plan, rest)
    return moments + rest[1:], outcome


def _integrated(system: MarginSystem, plan: MarginPlan, moments: list[Moment]) -> Outcome:
    steps = integrator.MarginIntegrator(system, plan.end, plan.rtol, plan.rules)
    return go_on(steps, plan.of(steps), moments)


def margin_records(moments: list[Moment]) -> dict[str, Array]:
    """The moments as arrays, ready to be labelled."""
    names = "smoothed_margin", "predictor", "margins", "log_slopes", "dual", "parameters"
    found = columns(moments, "log_t", *names)
    with np.errstate(over="ignore", under="ignore"):
        return {"t": np.exp(found["log_t"])} | found
