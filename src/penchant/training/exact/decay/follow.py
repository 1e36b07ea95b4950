"""Following a flow under weight decay: records over training time, and how it ended."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from penchant.arguments import Array
from penchant.limits import Turns
from penchant.records import Outcome
from penchant.training.exact.decay.dual import (
    LAZY,
    DecayDual,
    MarginDecay,
    RowProducts,
    SquareDecay,
)
from penchant.training.exact.flow import Flow, Times
from penchant.training.exact.follow import FlowPlan, Integrator, go_on
from penchant.training.exact.solver import GaveUp, backward, state_at, try_step
from penchant.training.task import Moment, Progress

LEAST = 1e-10  # a slack 1 - |s| that still has half the digits of float64
STRIDE = 5.0  # the longest step in tau: a longer one extrapolates beyond float64
DEEP = "1 - |s| is below what float64 resolves at this depth; ParameterFlow may go further"


def follow_decay(
    dual: DecayDual, times: Times, flow: Flow, progress: Progress | None = None
) -> tuple[list[Moment], Outcome]:
    steps = DecaySteps(dual, times, flow.rtol)
    end = steps.end
    settings: Any = {"bare": True, "rests": False, "progress": progress, "unit": end}
    plan = FlowPlan(iter(steps.names), flow.max_steps, end, **settings)
    moments = [Moment(0.0, np.zeros(len(dual.rows)), log_t=-math.inf)]
    return moments, go_on(steps, plan, moments)


class DecaySteps(Integrator):
    """The flow of the scaled dual x in the variable tau; up to `begin` it has a closed form."""

    def __init__(self, dual: DecayDual, times: Times, rtol: float) -> None:
        self.dual, self.begin = dual, 0.0
        # records keep the requested times, which the conversion to tau would round
        self.names = {dual.tau(log_t): log_t for log_t in times.log}
        self.end = max(self.names)
        excess = dual.law.log_amplitude(0.0) - LAZY
        if isinstance(dual, SquareDecay) and excess > 0:
            # the kernel's closed form is exact to rounding until then
            self.begin = dual.tau(math.log(excess / (dual.law.depth * dual.law.rate)))
        self.rtol = max(rtol / dual.law.sensitivity(dual.time(self.end)), 1e-12)
        self.solver: Any = None

    def advance(self, limit: float) -> None:
        if self.t < self.begin:
            self.t = self.begin
            return
        if self.solver is None:
            self.dual.products = RowProducts(self.dual.rows, self.rtol)
            self.solvers = self._solvers()
            self.solver = next(self.solvers)
        elif self.dual.slack(self.t, self.solver.y) < LEAST:
            raise GaveUp(DEEP)
        turns = Turns(1000, "the list of solvers")
        while not try_step(self.solver):
            turns.take()
            successor = next(self.solvers, None)
            if successor is None:
                accuracy = "the integrator cannot continue at this accuracy; raise rtol"
                raise GaveUp(DEEP if self.dual.law.depth > 2 else accuracy)
            self.solver = successor
        self.t, self.steps = self.solver.t, self.steps + 1

    def _solvers(self) -> Iterator[Any]:
        from scipy.integrate import Radau

        dual, begin, end = self.dual, self.begin, self.end
        x = self.at(begin).state if begin > 0 else np.zeros(len(dual.rows))
        settings: Any = {"jac": dual.jacobian, "max_step": STRIDE}
        settings |= {"rtol": self.rtol, "atol": self.rtol * _size(dual)}
        first = min(1e-3, end - begin)
        yield backward(dual.velocity, begin, x, end, first_step=first, **settings)
        yield Radau(dual.velocity, self.solver.t, self.solver.y, end, **settings)

    def at(self, t: float) -> Moment:
        log_t = self.names.get(t)
        log_t = self.dual.log_time(t) if log_t is None else log_t
        if self.solver is None:
            assert isinstance(self.dual, SquareDecay)
            return Moment(t, self.dual.lazy(t), log_t=log_t)
        return Moment(t, state_at(self.solver, t), log_t=log_t)

    def time_text(self, t: float) -> str:
        return f"t={self.dual.time(t):.6g}"

    def level(self, now: Moment) -> str:
        return ""


def _size(dual: DecayDual) -> float:
    """The size of a small entry of x: its change over a tenth of the time 1/R."""
    speed = np.abs(dual.velocity(0.0, np.zeros(len(dual.rows))))
    return min(0.01 * float(speed.max()), 0.01) or 1.0


def recorded(dual: DecayDual, times: Times, moments: list[Moment]) -> dict[str, Array]:
    law, states, rows = dual.law, np.array([moment.state for moment in moments]), []
    with np.errstate(over="ignore", under="ignore"):
        log_t = np.array([moment.log_t for moment in moments])
        names = dict(zip(times.log, times.t, strict=True))
        t = np.array([names.get(log, np.exp(log)) for log in log_t])
        for time, pull in zip(t, dual.pull(states), strict=True):
            now = law.at(float(time))
            slopes = law.log_slopes(now, pull) + np.zeros_like(pull)
            turned = _norm_and_turn(dual, float(time), law.log_growth(now, pull))
            rows.append((law.predictor(now, pull), slopes, *turned))
    known = "predictor", "log_slopes", "parameter_norm", "turn"
    columns = zip(known, zip(*rows, strict=True), strict=True)
    record = {name: np.array(values) for name, values in columns}
    duals = states @ dual.basis.T if isinstance(dual, SquareDecay) else states
    record |= {"t": t, "log_t": log_t, "dual": duals}
    if isinstance(dual, MarginDecay):
        record["margins"] = record["predictor"] @ dual.rows.T
    return record


def _norm_and_turn(dual: DecayDual, t: float, growth: Array) -> tuple[float, float]:
    """|theta| and its angle with the start in degrees, from expm1(growth); exact for small ones."""
    law = dual.law
    log_start = np.broadcast_to(law.log_start, growth.shape)
    top, most = float(log_start.max()), max(float(growth.max()), 0.0)
    start, unit = np.exp(log_start - top), math.exp(-most)
    moved = start * (np.expm1(growth) if most < 1 else np.exp(growth - most) - unit)
    unit = 1.0 if most < 1 else unit
    most = 0.0 if most < 1 else most
    size = float(np.linalg.norm(start))
    along = float((moved * start).sum()) / size**2
    across = float(np.linalg.norm(moved - along * start))
    ahead = (unit + along) * size
    norm = float(np.exp(top - law.rate * t + most) * math.hypot(across, ahead))
    return norm, math.degrees(math.atan2(across, ahead))
