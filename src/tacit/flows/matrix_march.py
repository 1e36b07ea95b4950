"""Following a matrix flow: when to record, when to stop and what to say then."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tacit.arguments import Array
from tacit.flows.flow import Progress
from tacit.flows.matrix_end import Rest, end_game
from tacit.flows.matrix_step import columns, extrapolated
from tacit.flows.matrix_system import FactorSystem, Modes
from tacit.problems.matrices import Completion, MatrixProblem
from tacit.records import Kind, Outcome
from tacit.training.exact.follow import SETTLED, GaveUp

SADDLE = "the start is a saddle: the gradient vanishes there and nothing moves"


class Plan(NamedTuple):
    """When to stop and what to record; `target` is a loss, `rtol` the accuracy of one step.

    Records are log-spaced, or at the times `asked`, which rise from above zero.
    """

    target: float
    t_max: float
    max_steps: int
    per_decade: int
    rtol: float
    asked: tuple[float, ...] | None = None

    def due(self, first: float, done: int) -> float:
        """The time of the record after the first `done`, of which the start is one."""
        if self.asked is None:
            return float(first * 10 ** ((done - 1) / self.per_decade))
        return self.asked[done - 1] if done <= len(self.asked) else math.inf


class State(NamedTuple):
    """A time of a flow and its variables: reduced factors, a lifted matrix or flat parameters."""

    t: float
    W: Array


def march(
    system: FactorSystem, plan: Plan, progress: Progress | None = None
) -> tuple[list[State], Outcome]:
    """The recorded states, the last one at the end, and the outcome."""
    watch = Watch(plan, progress)
    now = checkpoint = State(0.0, system.start)
    loss = watch.loss(system.residual(now.W))
    if loss <= plan.target and not system.rate:
        return [now], Outcome(Kind.SOLVED, "the start already fits the data")
    if not system.velocity(now.W).any():
        return [now], Outcome(Kind.STALLED, SADDLE)
    first = 0.01 * _unit(system)
    records, span, order = [now], first, columns(plan.rtol)
    for count in range(1, plan.max_steps + 1):
        modes = system.modes(now.W)
        rest = end_game(system, now.W, modes, plan.target, plan.rtol) if count > 1 else None
        if rest is not None:
            return _finish(system, records, now, rest, first, plan, watch)
        due = plan.due(first, len(records))
        try:
            now, span = _step(system, now, span, min(due, plan.t_max), modes, order, plan.rtol)
        except GaveUp as reason:
            return _with(records, now), watch.gave_up(now.t, loss, str(reason))
        loss = watch.loss(system.residual(now.W))
        watch.report(now.t, loss)
        if now.t >= due:
            records.append(now)
        if not system.rate and loss <= max(plan.target, system.rounding(now.W)):
            return _with(records, now), watch.fitted(now.t, loss)
        if now.t >= plan.t_max:
            return _with(records, now), watch.out_of_time(system.rate, now.t, loss)
        if now.t >= 10 * checkpoint.t:
            if settled(checkpoint.W, now.W) or _hovers(system, checkpoint.W, now.W, plan.rtol):
                return _with(records, now), watch.at_rest(system.problem, system.rate, now.t, loss)
            checkpoint = now
    sentence = f"{plan.max_steps} integrator steps; raise max_steps"
    return _with(records, now), watch.spent(now.t, loss, sentence)


def _unit(system: FactorSystem) -> float:
    """The shortest time scale at the start: of the tangent kernel, the escape or the decay."""
    gradient = system.problem.adjoint(system.residual(system.start))
    curvature = float(np.linalg.norm(gradient, ord=2))
    kernel = float(system.modes(system.start).rates[-1])
    return 0.5 / max(kernel, curvature, system.rate / 2)


def _step(
    system: FactorSystem, now: State, span: float, limit: float, modes: Modes, order: int,
    rtol: float,
) -> tuple[State, float]:  # fmt: skip
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
    system: FactorSystem, records: list[State], now: State, rest: Rest, first: float, plan: Plan,
    watch: Watch,
) -> tuple[list[State], Outcome]:  # fmt: skip
    """The records of the end game, up to the target or t_max."""
    end = min(now.t + rest.time, plan.t_max)
    near = 1 - 1e-9 if plan.asked is None else 1.0
    while (due := plan.due(first, len(records))) < end * near:
        records.append(State(due, rest.at(due - now.t)))
    records.append(State(end, rest.at(end - now.t)))
    loss = watch.loss(system.residual(records[-1].W))
    if now.t + rest.time > plan.t_max:
        return records, watch.spent(end, loss, "t_max; raise t_max")
    return records, watch.fitted(end, loss)


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


class Watch:
    """Knows the target and how to say what happened."""

    def __init__(self, plan: Plan, progress: Progress | None) -> None:
        self.plan, self.progress = plan, progress
        self.first: float | None = None
        self.reported = -1.0

    def loss(self, residual: Array) -> float:
        return float(residual @ residual)

    def report(self, t: float, loss: float) -> None:
        """Tell `progress` how far the logarithm of the loss has come, at most fifty times."""
        if self.progress is None or loss <= 0:
            return
        self.first = loss if self.first is None else self.first
        span = math.log(self.first / self.plan.target) if self.plan.target else 0.0
        done = math.log(self.first / loss) / span if span > 0 else 0.0
        if done >= self.reported + 0.02:
            self.reported = done
            self.progress(min(max(done, 0.0), 1.0), f"t={t:.4g}")

    def fitted(self, t: float, loss: float) -> Outcome:
        floor = "" if loss <= self.plan.target else ", as far as rounding allows from this start"
        return Outcome(Kind.SOLVED, f"the data are fitted at t={t:.4g} with loss {loss:.3g}{floor}")

    def spent(self, t: float, loss: float, by: str) -> Outcome:
        where = f"t={t:.4g} with loss {loss:.3g} > {self.plan.target:.3g}"
        return Outcome(Kind.BUDGET_SPENT, f"stopped at {where} by {by}")

    def gave_up(self, t: float, loss: float, reason: str) -> Outcome:
        where = f"t={t:.4g} with loss {loss:.3g}"
        return Outcome(Kind.STALLED, f"the integrator gave up at {where}: {reason}")

    def out_of_time(self, rate: float, t: float, loss: float) -> Outcome:
        if rate:  # decayed training never ends by itself
            return Outcome(Kind.SOLVED, f"followed to t={t:.6g} with loss {loss:.3g}")
        return self.spent(t, loss, "t_max; raise t_max")

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
