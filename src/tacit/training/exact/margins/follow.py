"""Following a flow whose clock is the smoothed margin: records, and when to stop."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.flows.flow import Progress
from tacit.flows.stopping import Rule
from tacit.records import Kind, Outcome
from tacit.training.exact.follow import quiet
from tacit.training.exact.margins.integrator import (
    END,
    Course,
    MarginSnapshot,
    MarginSystem,
    Opening,
    Walk,
)


def course(who: str, flow: Any, rules: tuple[Rule, ...], model: Any, start_margin: float) -> Course:
    """The course that the settings of `flow` describe, or the reason why there is none."""
    if not rules and not flow.loss > 0:
        raise ValueError(f"{who}: a classification loss never reaches 0; give loss > 0 or until=")
    ends = [rule.smoothed_margin(who, model) for rule in rules]
    if not rules:
        ends = [start_margin - math.log(flow.loss)]
    end = min(ends)
    if not end > start_margin:
        raise ValueError(
            f"{who}: the target log loss {-end:.6g} must be below that of the start, "
            f"{-start_margin:.6g}; there is nothing to train"
        )
    log_t_max = math.inf if flow.t_max is None else math.log(flow.t_max)
    record = tuple(sorted(float(g) for g in (() if flow.record is None else flow.record)))
    if record and not (record[0] > 0 and math.isfinite(record[-1])):
        raise ValueError(f"{who}: record must hold smoothed margins > 0, got {record[0]:g}")
    if end == math.inf:  # only a direction to come to
        end = END
    pace = flow.points_per_decade, flow.rtol, flow.max_steps
    return Course(end, rules, log_t_max, record, *pace)


def march_margin(
    system: MarginSystem,
    course: Course,
    progress: Progress | None = None,
    opening: Opening | None = None,
) -> tuple[list[MarginSnapshot], Outcome]:
    """Snapshots at log-spaced smoothed margins, at those asked for and at the end; the outcome.

    An `opening` goes first, and its successor is followed from where it ends.
    """
    records = [system.first()]
    with quiet():
        if opening is not None:
            outcome = _leg(opening, course, records, progress)
            if outcome is not None:
                return records, outcome
            system = opening.successor()
        walk = Walk(system, course)
        outcome = _leg(walk, course, records, progress)
        assert outcome is not None
        return records, outcome


def _leg(
    walk: Walk | Opening, course: Course, records: list[MarginSnapshot], progress: Progress | None
) -> Outcome | None:
    """The records of one part of the way, added to `records`; None if another part follows."""
    stops = iter(_stops(walk.system, course, walk.end))
    stop = next(stops, math.inf)
    shown = 0.0
    for before, now in walk:
        while stop <= now:
            records.append(walk.at(stop))
            stop = next(stops, math.inf)
        met = _first_met(walk, course, before, now)
        if met is not None:
            sigma, outcome = met
            records[:] = _finished(records, walk.at(sigma))
            return outcome
        if progress is not None and now / walk.end >= shown + 0.02:
            shown = now / walk.end
            progress(min(shown, 1.0), f"smoothed margin {walk.system.g(now):.3g}")
    last = walk.at(walk.now)
    if walk.passes_on and walk.now >= walk.end:
        return None
    records[:] = _finished(records, last)
    return walk.outcome(last)


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


def _stops(system: MarginSystem, course: Course, end: float) -> list[float]:
    """The sigmas to record, in order."""
    step = math.log(10) / course.per_decade
    # sigma is already logarithmic in g but for its first unit
    spaced = list(np.arange(step, end, step))
    asked = [system.sigma(g) for g in course.record if g > system.begin_g]
    return sorted({*spaced, *(sigma for sigma in asked if sigma <= end)})


def _first_met(
    walk: Walk | Opening, course: Course, before: float, now: float
) -> tuple[float, Outcome] | None:
    """The first moment of the last step at which a rule other than the end is met."""
    if not course.looks:
        return None
    found: list[tuple[float, Outcome]] = []
    for rule in course.rules:
        if rule.gap(walk.at(now).predictor) <= 0:
            sigma = _crossing(lambda s, r=rule: r.gap(walk.at(s).predictor), before, now)
            g = walk.system.g(sigma)
            sentence = f"came to {rule} at smoothed margin {g:.6g}"
            found.append((sigma, Outcome(Kind.SOLVED, sentence)))
    if walk.at(now).log_t >= course.log_t_max:
        sigma = _crossing(lambda s: course.log_t_max - walk.at(s).log_t, before, now)
        g = walk.system.g(sigma)
        sentence = f"stopped at smoothed margin {g:.6g} by t_max; raise t_max"
        found.append((sigma, Outcome(Kind.BUDGET_SPENT, sentence)))
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
