"""Integrating a matrix flow: when to record, when to stop and what to say then."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tacit.arguments import Array
from tacit.problems.matrices import Completion, MatrixProblem
from tacit.records import Kind, Outcome
from tacit.training.exact.flow import Course
from tacit.training.exact.follow import SETTLED, GaveUp
from tacit.training.exact.matrices.end import Rest, end_game
from tacit.training.exact.matrices.step import columns, extrapolated
from tacit.training.exact.matrices.system import FactorSystem, Modes
from tacit.training.exact.times import asked_times, times_to_record

WHO = "MatrixFlow"
SADDLE = "the start is a saddle: the gradient vanishes there and nothing moves"


class State(NamedTuple):
    """A time of a flow and its variables: reduced factors, a lifted matrix or flat parameters."""

    t: float
    W: Array


class Plan(NamedTuple):
    """When to stop and what to record.

    `target` is the loss that ends the run, None where time alone does. `rtol` is the accuracy of
    one step.
    """

    target: float | None
    course: Course
    max_steps: int
    rtol: float

    @property
    def t_max(self) -> float:
        return math.inf if self.course.t_max is None else self.course.t_max

    def met(self, loss: float, rounding: float = 0.0) -> bool:
        """Whether the loss is where the run ends, or as small as rounding allows."""
        return self.target is not None and loss <= max(self.target, rounding)

    def times(self, first: float) -> Times:
        """The times to record, where `first` is the first of the log-spaced ones."""
        asked = asked_times(WHO, self.course)
        return Times(times_to_record(first, self.course.per_decade, asked))


class Times:
    """Increasing times, of which `due` is the next; infinity when there are no more."""

    def __init__(self, times: Iterator[float]) -> None:
        self.times = times
        self.advance()

    def advance(self) -> None:
        self.due = next(self.times, math.inf)


def integrate(system: FactorSystem, plan: Plan) -> tuple[list[State], Outcome]:
    """The recorded states, the last one at the end, and the outcome."""
    report = Report(plan)
    now = checkpoint = State(0.0, system.start)
    loss = report.loss(system.residual(now.W))
    if plan.met(loss):
        return [now], Outcome(Kind.SOLVED, "the start already fits the data")
    if not system.velocity(now.W).any():
        return [now], Outcome(Kind.STALLED, SADDLE)
    span = 0.01 * _unit(system)
    records, times, order = [now], plan.times(span), columns(plan.rtol)
    for count in range(1, plan.max_steps + 1):
        modes = system.modes(now.W)
        rest = None
        if count > 1 and plan.target is not None and not system.rate:
            rest = end_game(system, now.W, modes, plan.target, plan.rtol)
        if rest is not None:
            return _finish(system, records, now, rest, times, report)
        try:
            limit = min(times.due, plan.t_max)
            now, span = _step(system, now, span, limit, modes, order, plan.rtol)
        except GaveUp as reason:
            return _with(records, now), report.gave_up(now.t, loss, str(reason))
        loss = report.loss(system.residual(now.W))
        report.progress(now.t, loss)
        if now.t >= times.due:
            records.append(now)
            times.advance()
        if plan.met(loss, 0.0 if system.rate else system.rounding(now.W)):
            return _with(records, now), report.fitted(now.t, loss)
        if now.t >= plan.t_max:
            return _with(records, now), report.out_of_time(now.t, loss)
        if now.t >= 10 * checkpoint.t:
            if settled(checkpoint.W, now.W) or _hovers(system, checkpoint.W, now.W, plan.rtol):
                return _with(records, now), report.at_rest(system.problem, system.rate, now.t, loss)
            checkpoint = now
    sentence = f"{plan.max_steps} integrator steps; raise max_steps"
    return _with(records, now), report.spent(now.t, loss, sentence)


def _unit(system: FactorSystem) -> float:
    """The shortest time scale at the start: of the tangent kernel, the escape or the decay."""
    gradient = system.problem.adjoint(system.residual(system.start))
    curvature = float(np.linalg.norm(gradient, ord=2))
    kernel = float(system.modes(system.start).rates[-1])
    return 0.5 / max(kernel, curvature, system.rate / 2)


def _step(
    system: FactorSystem,
    now: State,
    span: float,
    limit: float,
    modes: Modes,
    order: int,
    rtol: float,
) -> tuple[State, float]:
    """The state after one accepted step that does not pass `limit`, and the next span to try."""
    for _ in range(60):
        last = now.t + span >= limit * (1 - 1e-12)
        taken = limit - now.t if last else span
        with np.errstate(over="ignore", invalid="ignore"):
            W, error = extrapolated(system, now.W, taken, modes, order)
            excess = error / (rtol * np.abs(W).max())
        growth = 0.9 * max(excess, 1e-30) ** (-1 / order) if np.isfinite(excess) else 0.1
        if excess <= 1:
            t = limit if last else now.t + taken
            longer = taken * min(max(growth, 0.3), 6.0)
            return State(t, W), max(longer, span) if last else longer
        span = taken * min(max(growth, 0.1), 0.7)
    raise GaveUp("its steps became too small; raise rtol")


def _with(records: list[State], last: State) -> list[State]:
    return records if records[-1].t == last.t else [*records, last]


def _finish(
    system: FactorSystem,
    records: list[State],
    now: State,
    rest: Rest,
    times: Times,
    report: Report,
) -> tuple[list[State], Outcome]:
    """The records of the end game, up to the target or t_max."""
    t_max = report.plan.t_max
    end = min(now.t + rest.time, t_max)
    # a log-spaced record this close to the end would be a second one of it
    near = 1 - 1e-9 if report.plan.course.asked(WHO, "times") is None else 1.0
    while times.due < end * near:
        records.append(State(times.due, rest.at(times.due - now.t)))
        times.advance()
    records.append(State(end, rest.at(end - now.t)))
    loss = report.loss(system.residual(records[-1].W))
    if now.t + rest.time > t_max:
        return records, report.out_of_time(end, loss)
    return records, report.fitted(end, loss)


def settled(before: Array, now: Array) -> bool:
    """True if a decade of time moved nothing."""
    return bool(np.abs(now - before).max() <= SETTLED * np.abs(now).max())


def _hovers(system: FactorSystem, before: Array, now: Array, rtol: float) -> bool:
    """True if nothing moved beyond the accuracy of the steps, the loss did not fall and no
    direction can grow: the curvature lift(G) of the residual that is left has no negative side.
    """
    residual, earlier = system.residual(now), system.residual(before)
    if np.abs(now - before).max() > 30 * rtol * np.abs(now).max() or system.rate:
        return False
    bends = np.linalg.eigvalsh(system.model.lift(system.problem.adjoint(residual)))
    return bool(residual @ residual > 0.5 * earlier @ earlier and bends[0] > -1e-6 * bends[-1])


class Report:
    """Tells how far a run has come, and how it ended."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.first: float | None = None
        self.reported = -1.0

    def loss(self, residual: Array) -> float:
        return float(residual @ residual)

    def progress(self, t: float, loss: float) -> None:
        """Tells how far the logarithm of the loss has come, at most fifty times."""
        tell = self.plan.course.progress
        if tell is None or loss <= 0:
            return
        self.first = loss if self.first is None else self.first
        span = math.log(self.first / self.plan.target) if self.plan.target else 0.0
        done = math.log(self.first / loss) / span if span > 0 else 0.0
        if done >= self.reported + 0.02:
            self.reported = done
            tell(min(max(done, 0.0), 1.0), f"t={t:.4g}")

    def fitted(self, t: float, loss: float) -> Outcome:
        floor = "" if self.plan.met(loss) else ", as far as rounding allows from this start"
        return Outcome(Kind.SOLVED, f"the data are fitted at t={t:.4g} with loss {loss:.3g}{floor}")

    def spent(self, t: float, loss: float, by: str) -> Outcome:
        goal = "" if self.plan.target is None else f" > {self.plan.target:.3g}"
        where = f"t={t:.4g} with loss {loss:.3g}{goal}"
        return Outcome(Kind.BUDGET_SPENT, f"stopped at {where} by {by}")

    def gave_up(self, t: float, loss: float, reason: str) -> Outcome:
        where = f"t={t:.4g} with loss {loss:.3g}"
        return Outcome(Kind.STALLED, f"the integrator gave up at {where}: {reason}")

    def out_of_time(self, t: float, loss: float) -> Outcome:
        if self.plan.course.goals:
            return self.spent(t, loss, "its Time; give more")
        return Outcome(Kind.SOLVED, f"followed to t={t:.6g} with loss {loss:.3g}")

    def at_rest(self, problem: MatrixProblem, rate: float, t: float, loss: float) -> Outcome:
        where = f"at rest since t={t / 10:.4g} with loss {loss:.3g}"
        if rate:
            return Outcome(Kind.SOLVED, f"{where}, held by weight decay")
        floor = 0.0  # entries that are seen once each can always be fitted
        if not isinstance(problem, Completion):
            best = problem.design @ np.linalg.lstsq(problem.design, problem.y, rcond=None)[0]
            floor = float(np.sum((best - problem.y) ** 2))
        why = "this model cannot fit y from here (its width, its signs or its symmetry forbid it)"
        if floor > 0.5 * loss:
            why = f"no matrix fits y, the least-squares loss is {floor:.3g}"
        return Outcome(Kind.STALLED, f"{where}: {why}")
