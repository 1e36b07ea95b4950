"""The steps of a matrix flow, in factors or in the variables of any system."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from tacit.arguments import Array
from tacit.problems.matrix_problem import Completion, MatrixProblem
from tacit.records import Kind, Outcome
from tacit.training.exact.follow import SETTLED, Integrator, Plan
from tacit.training.exact.loss import log_sum_of_squares
from tacit.training.exact.matrices.end import Rest, end_game
from tacit.training.exact.matrices.step import columns, extrapolated
from tacit.training.exact.matrices.system import FactorSystem, Modes
from tacit.training.exact.solver import SHORT, GaveUp, state_at, step
from tacit.training.exact.task import Moment


class System(Protocol):
    """A matrix flow in some variables: reduced factors, a lifted matrix or flat parameters."""

    problem: MatrixProblem
    rate: float
    start: Array

    def residual(self, state: Array) -> Array: ...
    def velocity(self, state: Array) -> Array: ...


class MatrixSteps(Integrator):
    """What the steps of all systems share: the loss, and when and why they rest."""

    def __init__(self, system: System, rtol: float) -> None:
        self.system, self.rtol = system, rtol
        self.stuck = not system.velocity(system.start).any()

    def log_loss(self, now: Moment) -> float:
        return float(log_sum_of_squares(self.system.residual(now.state)))

    def still(self, before: Moment, now: Moment) -> bool:
        moved = np.abs(now.state - before.state).max()
        return bool(moved <= SETTLED * np.abs(now.state).max())

    def at_rest(self, now: Moment, plan: Plan) -> Outcome:
        outcome = super().at_rest(now, plan)
        if not self.system.rate:
            return outcome
        where = outcome.sentence.split(":")[0]
        return Outcome(Kind.SOLVED, f"{where}, held by weight decay")

    def why(self, now: Moment, plan: Plan) -> str:
        problem, floor = self.system.problem, 0.0
        if not isinstance(problem, Completion):  # entries seen once each can always be fitted
            best = problem.design @ np.linalg.lstsq(problem.design, problem.y, rcond=None)[0]
            floor = float(np.sum((best - problem.y) ** 2))
        if floor > 0.5 * math.exp(self.log_loss(now)):
            return f"no matrix fits y, the least-squares loss is {floor:.3g}"
        return "this model cannot fit y from here (its width, its signs or its symmetry forbid it)"


class FactorSteps(MatrixSteps):
    """Stiff steps of reduced factors, and their end in closed form where the flow is linear."""

    system: FactorSystem

    def __init__(self, system: FactorSystem, rtol: float, log_level: float) -> None:
        super().__init__(system, rtol)
        self.first = self.span = 0.01 * _unit(system)
        self.W, self.order = system.start, columns(rtol)
        ends = log_level > -math.inf and not system.rate
        self.target = math.exp(log_level) if ends else None
        self._rest: tuple[float, Rest] | None = None

    def advance(self, limit: float) -> None:
        if self._rest is not None:  # it did not end there
            self.W, self._rest = self.at(self.t).state, None
        modes = self.system.modes(self.W)
        if self.steps and self.target is not None:
            rest = end_game(self.system, self.W, modes, self.target, self.rtol)
            if rest is not None:
                self._rest, self.t = (self.t, rest), self.t + rest.time
        if self._rest is None:
            self._step(limit, modes)
        self.steps += 1

    def _step(self, limit: float, modes: Modes) -> None:
        """One accepted step that does not pass `limit`."""
        span = self.span
        for _ in range(60):
            last = self.t + span >= limit * (1 - 1e-12)
            taken = limit - self.t if last else span
            W, error = extrapolated(self.system, self.W, taken, modes, self.order)
            excess = error / (self.rtol * np.abs(W).max())
            growth = 0.9 * max(excess, 1e-30) ** (-1 / self.order) if np.isfinite(excess) else 0.1
            if excess <= 1:
                longer = taken * min(max(growth, 0.3), 6.0)
                self.span = max(longer, span) if last else longer
                self.t, self.W = limit if last else self.t + taken, W
                return
            span = taken * min(max(growth, 0.1), 0.7)
        raise GaveUp(SHORT)

    def at(self, t: float) -> Moment:
        if self._rest is None:
            return Moment(self.t, self.W)
        begin, rest = self._rest
        return Moment(t, rest.at(t - begin))

    def log_floor(self, now: Moment) -> float:
        rounding = 0.0 if self.system.rate else self.system.rounding(now.state)
        return math.log(rounding) if rounding else -math.inf

    def still(self, before: Moment, now: Moment) -> bool:
        return super().still(before, now) or self._hovers(before.state, now.state)

    def _hovers(self, before: Array, now: Array) -> bool:
        """True if nothing moved beyond the accuracy of the steps and no direction can grow.

        The curvature lift(G) of the residual that is left then has no negative side.
        """
        if np.abs(now - before).max() > 30 * self.rtol * np.abs(now).max() or self.system.rate:
            return False
        slope = self.system.problem.adjoint(self.system.residual(now))
        bends = np.linalg.eigvalsh(self.system.model.lift(slope))
        return bool(bends[0] > -1e-6 * bends[-1])


def _unit(system: FactorSystem) -> float:
    """The shortest time scale at the start: of the tangent kernel, the escape or the decay."""
    gradient = system.problem.adjoint(system.residual(system.start))
    curvature = float(np.linalg.norm(gradient, ord=2))
    kernel = float(system.modes(system.start).rates[-1])
    return 0.5 / max(kernel, curvature, system.rate / 2)


class PlainSteps(MatrixSteps):
    """Steps of a general adaptive integrator of SciPy."""

    hint = ", maybe because the flow is stiff"

    def __init__(
        self, system: System, rtol: float, t_max: float, method: Callable[..., Any]
    ) -> None:
        super().__init__(system, rtol)
        start, rtol = system.start, max(rtol, 1e-12)
        fastest = float(np.abs(system.velocity(start)).max()) or 1.0
        self.first = 1e-3 * (float(np.abs(start).max() / fastest) or 1.0)
        settings: Any = {"rtol": rtol, "atol": 1e-3 * rtol * float(np.abs(start).max())}
        settings["first_step"] = min(self.first, t_max)
        self.solver = method(lambda _, w: system.velocity(w), 0.0, start, t_max, **settings)

    def advance(self, limit: float) -> None:
        step(self.solver)
        self.t, self.steps = self.solver.t, self.steps + 1

    def at(self, t: float) -> Moment:
        return Moment(t, state_at(self.solver, t))
