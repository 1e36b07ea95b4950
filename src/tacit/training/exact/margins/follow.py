"""Following a flow whose clock is the smoothed margin: records, and when to stop."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.records import Kind, Outcome
from tacit.training import stop as stopping
from tacit.training.exact.flow import Course, Flow
from tacit.training.exact.follow import quiet
from tacit.training.exact.margins.integrator import (
    END,
    Integrator,
    MarginSnapshot,
    MarginSystem,
    Opening,
    Plan,
)
from tacit.training.task import Progress

GOALS = (
    stopping.Interpolated,
    stopping.Loss,
    stopping.LogLoss,
    stopping.Scale,
    stopping.Near,
    stopping.Time,
)


def planned(who: str, flow: Flow, course: Course, model: Any, start_margin: float) -> Plan:
    """The plan of a run on labels, or the reason why there is none."""
    stopping.understood(who, course.stops, GOALS)
    fitted = stopping.Interpolated().relative if course.t_max is None else None
    end = -course.log_level(who, model, -start_margin, fitted)
    met = not end > start_margin
    if end == math.inf:  # only a direction or a time to come to
        end = END
    log_t_max = math.inf if course.t_max is None else math.log(course.t_max)
    asked = tuple(g for g in course.asked(who, "margins") or () if g > 0)
    settings = asked, course.per_decade, flow.rtol, flow.max_steps
    return Plan(end, course.goals, log_t_max, *settings, met)


def follow_margin(
    system: MarginSystem,
    plan: Plan,
    progress: Progress | None = None,
    opening: Opening | None = None,
) -> tuple[list[MarginSnapshot], Outcome]:
    """Snapshots at log-spaced smoothed margins, at those asked for and at the end; the outcome.

    An `opening` goes first, and its successor is followed from where it ends.
    """
    records = [system.first()]
    if plan.met:
        return records, Outcome(Kind.SOLVED, "the loss of the start is small enough already")
    with quiet():
        if opening is not None:
            outcome = _part(opening, plan, records, progress)
            if outcome is not None:
                return records, outcome
            system = opening.successor()
        integrator = Integrator(system, plan)
        outcome = _part(integrator, plan, records, progress)
        assert outcome is not None
        return records, outcome


def _part(
    part: Integrator | Opening, plan: Plan, records: list[MarginSnapshot], progress: Progress | None
) -> Outcome | None:
    """The records of one part of the way, added to `records`; None if another part follows."""
    stops = iter(_stops(part.system, plan, part.end))
    stop = next(stops, math.inf)
    shown = 0.0
    for before, now in part:
        while stop <= now:
            records.append(part.at(stop))
            stop = next(stops, math.inf)
        met = _first_met(part, plan, before, now)
        if met is not None:
            sigma, outcome = met
            records[:] = _finished(records, part.at(sigma))
            return outcome
        if progress is not None and now / part.end >= shown + 0.02:
            shown = now / part.end
            progress(min(shown, 1.0), f"smoothed margin {part.system.g(now):.3g}")
    last = part.at(part.now)
    if part.passes_on and part.now >= part.end:
        return None
    records[:] = _finished(records, last)
    return part.outcome(last)


def _finished(records: list[MarginSnapshot], last: MarginSnapshot) -> list[MarginSnapshot]:
    """The records up to `last`, with it."""
    first, *rest = records
    return [first, *(r for r in rest if r.smoothed_margin < last.smoothed_margin), last]


def margin_records(records: list[MarginSnapshot]) -> dict[str, Array]:
    """The snapshots as arrays, ready to be labelled."""
    with np.errstate(over="ignore", under="ignore"):
        log_t = np.array([record.log_t for record in records])
        found = {"t": np.exp(log_t), "log_t": log_t}
    names = ["smoothed_margin", "predictor", "margins", "log_slopes", "dual", "parameters"]
    for name in names:
        if getattr(records[0], name) is not None:
            found[name] = np.array([getattr(record, name) for record in records])
    return found


def _stops(system: MarginSystem, plan: Plan, end: float) -> list[float]:
    """The sigmas to record, in order."""
    spaced: list[float] = []
    if plan.per_decade is not None:
        step = math.log(10) / plan.per_decade
        # sigma is already logarithmic in g but for its first unit
        spaced = list(np.arange(step, end, step))
    asked = [system.sigma(g) for g in plan.record if g > system.begin_g]
    return sorted({*spaced, *(sigma for sigma in asked if sigma <= end)})


def _first_met(
    part: Integrator | Opening, plan: Plan, before: float, now: float
) -> tuple[float, Outcome] | None:
    """The first moment of the last step at which a rule other than the end is met."""
    if not plan.looks:
        return None
    found: list[tuple[float, Outcome]] = []
    for rule in plan.rules:
        if rule.gap(part.at(now).predictor) <= 0:
            sigma = _crossing(lambda s, r=rule: r.gap(part.at(s).predictor), before, now)
            g = part.system.g(sigma)
            sentence = f"came to {rule} at smoothed margin {g:.6g}"
            found.append((sigma, Outcome(Kind.SOLVED, sentence)))
    if part.at(now).log_t >= plan.log_t_max:
        sigma = _crossing(lambda s: plan.log_t_max - part.at(s).log_t, before, now)
        g = part.system.g(sigma)
        sentence = f"stopped at smoothed margin {g:.6g} by Time; give more of it"
        outcome = Outcome(Kind.BUDGET_SPENT, sentence)
        if not plan.rules:
            t = f"t={math.exp(plan.log_t_max):.6g}"
            outcome = Outcome(Kind.SOLVED, f"followed to {t}, smoothed margin {g:.6g}")
        found.append((sigma, outcome))
    return min(found, key=lambda pair: pair[0], default=None)


def _crossing(gap: Any, low: float, high: float) -> float:
    """Where `gap` falls through zero inside a step, by bisection."""
    if gap(low) <= 0:
        return low
    for _ in range(60):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (low, middle) if gap(middle) <= 0 else (middle, high)
    return high
