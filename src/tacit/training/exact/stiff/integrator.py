"""Following theta' = -grad L(theta) - rate theta of any model with few samples, however stiff.

A large start under a small decay has time scales far apart: the loss is fitted within
1 / |start|^2, and the decay takes 1 / rate. Steps grow to the scale of what still moves.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from tacit.arguments import Array
from tacit.records import Kind, Outcome
from tacit.training.exact.follow import SETTLED, GaveUp, quiet
from tacit.training.exact.loss import Loss, finite
from tacit.training.exact.samples import Derivative, Samples
from tacit.training.exact.stiff.bdf import Backward
from tacit.training.exact.stiff.newton import GaussNewton
from tacit.training.exact.stiff.system import LAZY, Decayed, Displaced
from tacit.training.exact.task import Moment
from tacit.training.task import Progress


class Plan(NamedTuple):
    """When to stop: at the log loss `log_level` or at `t_max`.

    Without a goal, to come to `t_max` is all; under decay nothing else ends training.
    """

    t_max: float
    log_level: float
    max_steps: int
    bare: bool  # whether no goal was given
    decays: bool


class StiffIntegrator:
    """The flow of one model on one problem from `start`, to accuracy `rtol` in each step."""

    def __init__(
        self,
        who: str,
        samples: Samples,
        loss: Loss,
        start: Array,
        rate: float,
        rtol: float,
        separable: bool = False,
    ) -> None:
        self.samples, self.loss, self.start, self.rate = samples, loss, start, rate
        self.plain = Decayed(samples, loss, rate, rtol, separable)
        self.rtol = rtol
        with np.errstate(over="ignore", under="ignore"):
            predictions = samples.predict(start)
            velocity = self.plain.velocity(0.0, start)
        if not (finite(loss, predictions) and np.isfinite(velocity).all()):
            raise ValueError(
                f"{who}: the gradients of this start are beyond float64 (its largest prediction "
                f"is {np.abs(predictions).max():.3g}); take a smaller start"
            )
        self.begin = Moment(0.0, start, predictions, np.zeros_like(start))
        self.stuck = not velocity.any() and bool(loss.slopes(predictions).any())
        self._measure(samples.derivative(start), velocity)
        self.first = self._first(velocity)

    def _measure(self, derivative: Derivative, velocity: Array) -> None:
        """The shortest time at the start, and whether the flow stays near it for long."""
        bends = self.loss.bends(self.begin.predictions)
        tangent = GaussNewton(derivative, bends, self.rate)
        largest = float(np.abs(self.start).max())
        # a small start leaves at the speed of its curvature, long before its kernel matters
        escape = float(np.abs(velocity).max()) / largest if largest else 0.0
        stiffest = float(np.linalg.norm(tangent.kernel, 2)) + self.rate
        self.unit = 0.5 / (max(stiffest, escape) or 1.0)
        wanted = self.loss.wanted(self.begin.predictions)
        aim = np.asarray(np.linalg.lstsq(derivative.kernel(), wanted, rcond=1e-12)[0], dtype=float)
        move = float(np.abs(derivative.pull(aim)).max())  # of the linearised flow
        self.lazy = 0 < move < LAZY * largest
        self.displaced = Displaced(self.samples, self.loss, self.rate, self.rtol, self.start, move)
        self.plain.least = 0.0 if largest else move

    def _first(self, velocity: Array) -> float:
        """A first step of order one that meets the tolerance."""
        system, state = self._system(), np.zeros_like(self.start) if self.lazy else self.start
        speed = float(np.abs(velocity * (self.rtol / system.weights(state))).max())
        return min(1e-3 * self.unit, math.sqrt(self.rtol) / speed if speed else math.inf)

    def _system(self) -> Decayed | Displaced:
        """The form that the flow starts in."""
        return self.displaced if self.lazy else self.plain

    def run(
        self, times: Iterable[float], plan: Plan, progress: Progress | None = None
    ) -> tuple[list[Moment], Outcome]:
        """The moments at 0, at the increasing `times` and at the end, and how it ended."""
        records = [self.begin]
        if not plan.decays and self._log_loss(self.begin) <= plan.log_level:
            return records, Outcome(Kind.SOLVED, "the start already fits the data")
        with quiet():
            outcome = self._follow(records, iter(times), plan, progress)
        return records, outcome

    def _follow(
        self,
        records: list[Moment],
        times: Iterator[float],
        plan: Plan,
        progress: Progress | None,
    ) -> Outcome:
        due, shown, checkpoint = next(times, math.inf), 0.0, self.begin
        try:
            solver = self._solver(plan.t_max)
            while True:
                solver.step()
                while due <= min(solver.t, plan.t_max):
                    records.append(self._moment(solver, due))
                    due = next(times, math.inf)
                now = self._moment(solver, min(solver.t, plan.t_max))
                if (end := self._ended(now, checkpoint, plan, solver.taken)) is not None:
                    if now.t > records[-1].t:
                        records.append(now)
                    return end
                if now.t >= 10 * checkpoint.t:
                    checkpoint = now
                if progress is not None and (done := self._done(now, plan)) >= shown + 0.02:
                    shown = done
                    progress(min(done, 1.0), f"t={now.t:.4g}")
                self._leave(solver)
        except GaveUp as reason:
            now = self._moment(solver, solver.t)
            if now.t > records[-1].t:
                records.append(now)
            why = self._kink(now, plan.t_max) or str(reason)
            return Outcome(Kind.STALLED, f"the integrator gave up at {self._place(now)}: {why}")

    def _kink(self, now: Moment, t_max: float) -> str | None:
        """What to do at a jump of the gradient, as a ReLU has at zero; None where there is none."""
        with np.errstate(all="ignore"):
            velocity = self.plain.velocity(now.t, now.parameters)
            fastest = float(np.abs(velocity).max()) or 1.0
            ahead = velocity / fastest * float(np.abs(now.parameters).max())
            far, near = (
                self.plain.velocity(now.t, now.parameters + size * ahead)
                - self.plain.velocity(now.t, now.parameters - size * ahead)
                for size in (1e-8, 1e-10)
            )
        jump = float(np.abs(near).max())
        # a smooth gradient changes a hundred times less over a hundredth of the way
        if not (jump > 1e-9 * fastest and jump > 0.3 * float(np.abs(far).max())):
            return None
        step = float(f"{0.1 * self.unit:.1g}")
        steps = "steps" if t_max == math.inf else f"{math.ceil(t_max / step)}"
        decay = f", weight_decay={self.rate:g}" if self.rate else ""
        use = f"GradientDescent({step:g}{decay}) with stop=Steps({steps})"
        return (
            "the gradient jumps there (a kink, as of a ReLU at zero), which no smaller step and no "
            f"other rtol gets past; use {use}, whose steps jump over kinks, or a smooth activation"
        )

    def _solver(self, t_max: float) -> Backward:
        state = np.zeros_like(self.start) if self.lazy else self.start
        return Backward(self._system(), 0.0, state, min(self.first, t_max))

    def _leave(self, solver: Backward) -> None:
        """Turn to the parameters themselves once they have moved far from their start."""
        if solver.system is self.displaced and not self.displaced.lazy(solver.t, solver.table[0]):
            solver.change(self.plain, self.displaced.parameters)

    def _moment(self, solver: Backward, t: float) -> Moment:
        state = solver.state if t == solver.t else solver.at(t)
        system = self.displaced if solver.system is self.displaced else self.plain
        displacement = state if solver.system is self.displaced else None
        return Moment(t, system.parameters(t, state), system.predictions(t, state), displacement)

    def _log_loss(self, moment: Moment) -> float:
        return float(self.loss.log_loss(moment.predictions))

    def _ended(self, now: Moment, before: Moment, plan: Plan, taken: int) -> Outcome | None:
        if not np.isfinite(now.parameters).all():
            return Outcome(Kind.DIVERGED, f"not finite at t={now.t:.4g}")
        if not plan.decays and self._log_loss(now) <= plan.log_level:
            return Outcome(Kind.SOLVED, f"the target is met at {self._place(now)}")
        if now.t >= plan.t_max:
            if plan.bare:
                return Outcome(Kind.SOLVED, f"followed to {self._place(now)}")
            sentence = f"stopped at {self._place(now)} by Time; give more of it"
            return Outcome(Kind.BUDGET_SPENT, sentence)
        if taken >= plan.max_steps:
            sentence = f"{plan.max_steps} integrator steps; raise max_steps or rtol"
            return Outcome(Kind.BUDGET_SPENT, f"stopped at {self._place(now)} by {sentence}")
        if not plan.decays and now.t >= 10 * before.t > 0 and self._settled(before, now):
            sentence = f"at rest since t={now.t / 10:.4g} with {self._place(now)}"
            if plan.bare:
                return Outcome(Kind.SOLVED, sentence)
            return Outcome(Kind.STALLED, f"{sentence}: the model cannot move further")
        return None

    def _settled(self, before: Moment, now: Moment) -> bool:
        """True if a decade of time moved no parameter and did not halve the loss."""
        moved = np.abs(now.parameters - before.parameters) > SETTLED * np.abs(now.parameters)
        return not moved.any() and self._log_loss(now) > self._log_loss(before) - math.log(2)

    def _place(self, now: Moment) -> str:
        return f"t={now.t:.4g} with loss {math.exp(self._log_loss(now)):.3g}"

    def _done(self, now: Moment, plan: Plan) -> float:
        if plan.t_max < math.inf:
            return math.log1p(now.t / self.unit) / math.log1p(plan.t_max / self.unit)
        first = self._log_loss(self.begin)
        span = first - plan.log_level
        return (first - self._log_loss(now)) / span if 0 < span < math.inf else 0.0
