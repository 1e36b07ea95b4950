"""Integration of theta' = -grad L(theta) - rate theta for any model with few samples.

A large start under a small decay has time scales far apart: the loss is fitted within
1 / |start|^2, and the decay takes 1 / rate. Steps grow to the time scale of the motion that is
left.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from penchant.arguments import Array
from penchant.door import Invalid, class_name, door_as
from penchant.models.model import Separable
from penchant.problems.classification import Classification
from penchant.training import stop as stopping
from penchant.training.exact.bdf import LAZY, Backward, Decayed, Displaced, GaussNewton
from penchant.training.exact.flow import Flow, Followed, RunSettings, decay_times, last_time
from penchant.training.exact.follow import ROUNDING, STOPS, FlowPlan, Integrator, follow, planned
from penchant.training.exact.loss import finite
from penchant.training.exact.solver import GaveUp
from penchant.training.exact.task import Derivative
from penchant.training.samples import SampleTask
from penchant.training.task import Moment


class StiffIntegrator(Integrator):
    """The flow of one task under decay at `rate`, to accuracy `rtol` in each step."""

    def __init__(self, task: SampleTask, rate: float, rtol: float, t_max: float = math.inf) -> None:
        self.samples, self.loss, self.start = task.outputs, task.loss, task.start
        self.rate, self.rtol, self.t_max = rate, rtol, t_max
        separable = isinstance(task.model, Separable)
        self.plain = Decayed(self.samples, self.loss, rate, rtol, separable)
        with np.errstate(over="ignore", under="ignore"):
            predictions = self.samples.predict(self.start)
            velocity = self.plain.velocity(0.0, self.start)
        if not (finite(self.loss, predictions) and np.isfinite(velocity).all()):
            raise Invalid(
                f"the gradients of this start are beyond float64 (its largest prediction "
                f"is {np.abs(predictions).max():.3g}); take a smaller start"
            )
        self.begin = Moment(0.0, self.start, predictions, np.zeros_like(self.start))
        self.stuck = not velocity.any() and bool(self.loss.slopes(predictions).any())
        self._measure(predictions, self.samples.derivative(self.start), velocity)
        system = self.displaced if self.lazy else self.plain
        state = np.zeros_like(self.start) if self.lazy else self.start
        # a first step of order one that meets the tolerance
        speed = float(np.abs(velocity * (rtol / system.weights(state))).max())
        first = min(1e-3 * self.unit, math.sqrt(rtol) / speed if speed else math.inf)
        self.solver = Backward(system, 0.0, state, min(first, t_max))

    def _measure(self, predictions: Array, derivative: Derivative, velocity: Array) -> None:
        """The shortest time at the start, and whether the flow stays near it for long."""
        tangent = GaussNewton(derivative, self.loss.bends(predictions), self.rate)
        largest = float(np.abs(self.start).max())
        # a small start leaves at the speed of its curvature, long before its kernel matters
        escape = float(np.abs(velocity).max()) / largest if largest else 0.0
        stiffest = float(np.linalg.norm(tangent.kernel, 2)) + self.rate
        self.unit = 0.5 / (max(stiffest, escape) or 1.0)
        wanted = self.loss.wanted(predictions)
        aim = np.asarray(np.linalg.lstsq(derivative.kernel(), wanted, rcond=1e-12)[0], dtype=float)
        move = float(np.abs(derivative.pull(aim)).max())  # of the linearised flow
        self.lazy = 0 < move < LAZY * largest
        self.displaced = Displaced(self.samples, self.loss, self.rate, self.rtol, self.start, move)
        self.plain.least = 0.0 if largest else move

    def advance(self, limit: float) -> None:
        solver = self.solver
        if solver.system is self.displaced and not self.displaced.lazy(solver.t, solver.table[0]):
            solver.change(self.plain, self.displaced.parameters)  # far from the start by now
        try:
            solver.step()
        except GaveUp as reason:
            raise GaveUp(self._kink(self.at(self.t)) or str(reason)) from None
        self.t, self.steps = solver.t, solver.taken

    def _kink(self, now: Moment) -> str | None:
        """What to do at a jump of the gradient, as a ReLU has at zero; None where there is none."""
        with np.errstate(all="ignore"):
            velocity = self.plain.velocity(now.t, now.state)
            fastest = float(np.abs(velocity).max()) or 1.0
            ahead = velocity / fastest * float(np.abs(now.state).max())
            far, near = (
                self.plain.velocity(now.t, now.state + size * ahead)
                - self.plain.velocity(now.t, now.state - size * ahead)
                for size in (1e-8, 1e-10)
            )
        jump = float(np.abs(near).max())
        # a smooth gradient changes a hundred times less over a hundredth of the way
        if not (jump > 1e-9 * fastest and jump > 0.3 * float(np.abs(far).max())):
            return None
        step = float(f"{0.1 * self.unit:.1g}")
        steps = "steps" if self.t_max == math.inf else f"{math.ceil(self.t_max / step)}"
        decay = f", weight_decay={self.rate:g}" if self.rate else ""
        use = f"GradientDescent({step:g}{decay}) with stop=Steps({steps})"
        return (
            "the gradient jumps there (a kink, as of a ReLU at zero), which no smaller step and no "
            f"other rtol gets past; use {use}, whose steps jump over kinks, or a smooth activation"
        )

    def at(self, t: float) -> Moment:
        state = self.solver.state if t == self.solver.t else self.solver.at(t)
        lazy = self.solver.system is self.displaced
        system = self.displaced if lazy else self.plain
        parameters, predictions = system.parameters(t, state), system.predictions(t, state)
        return Moment(t, parameters, predictions, state if lazy else None)

    def log_loss(self, now: Moment) -> float:
        return float(self.loss.log_loss(now.predictions))


@door_as(class_name)
def follow_stiff(flow: Flow, model: object, problem: object, settings: RunSettings) -> Followed:
    """theta' = -grad L - rate theta of any model, with the settings of `flow`."""
    rate = settings.weight_decay
    task = SampleTask(model, problem)
    if rate:
        check_decay(task, settings)
    level = -math.inf if rate else fit_level(task, settings)
    t_max = math.inf if settings.t_max is None else settings.t_max
    system = StiffIntegrator(task, rate, flow.rtol, t_max)
    first = 0.02 * system.unit
    if rate:
        times = decay_times(settings, math.log(min(first, 0.1 * t_max)), t_max).t
        ends: Any = {
            "bare": True,
            "unit": system.unit,
            "rests": False,
            "progress": settings.progress,
        }
        plan = FlowPlan(iter(times.tolist()), flow.max_steps, t_max, **ends)
    else:
        plan = planned(flow, settings, system.unit, first, level)
    moments, outcome = follow(system, plan, system.begin)
    return Followed(task.dataset(moments, {}, rate), outcome, moments[-1].state)


def check_decay(task: SampleTask, settings: RunSettings) -> None:
    """Raises an error unless time ends a run with decay."""
    rate = settings.weight_decay
    why = "under weight decay, where time alone ends training"
    stopping.understood(settings.stops, (stopping.Time,), why)
    if settings.t_max is None:
        raise Invalid(
            f"training with weight decay never ends by itself; give stop=Time(t), some "
            f"multiples of 1/weight_decay = {1 / rate:.4g}"
        )
    largest = float(np.abs(task.start).max())
    last_time(rate, math.log(largest) if largest else 0.0, settings.t_max)


def fit_level(task: SampleTask, settings: RunSettings) -> float:
    """The log loss that ends a run without decay."""
    labels = isinstance(task.problem, Classification)
    why = f"where {type(task.model).__name__} learns {'labels' if labels else 'values'}"
    stopping.understood(settings.stops, (*STOPS, stopping.Scale) if labels else STOPS, why)
    fitted: float | None = stopping.Interpolated().relative
    if settings.t_max is not None:
        fitted = None if labels else ROUNDING
    unit = task.loss.log_unit(task.outputs.predict(task.start))
    return settings.log_level(task.model, unit, fitted)
