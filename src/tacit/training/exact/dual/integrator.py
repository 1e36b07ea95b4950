"""A dual flow on values: stiff steps from anchor to anchor, near which all digits are held."""

from __future__ import annotations

import abc
import math
from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.problems.regression import Regression
from tacit.training.exact.dual.form import DualForm
from tacit.training.exact.fit import FitIntegrator
from tacit.training.exact.follow import SETTLED, Plan
from tacit.training.exact.solver import SHORT, GaveUp, stiff, try_step
from tacit.training.exact.task import Moment

PATIENCE = 5000  # steps that must bring the time or a weight forward
STUCK = 25  # anchors in a row from which no step could be taken
CRAWL = (
    f"{PATIENCE} steps brought neither the time nor a weight forward, for one weight grows too "
    "suddenly for float64; take a larger alpha, or interpolate() for the end of the flow"
)


class Anchor(abc.ABC):
    """The flow from time `t` on, in variables that are `start` there; times count from `t`."""

    newton: float  # the part of the tolerance that Newton's iteration may leave

    def __init__(self, form: DualForm, t: float, start: Array) -> None:
        self.form, self.t, self.start = form, t, start

    @abc.abstractmethod
    def unit(self) -> float:
        """The shortest time scale: of the tangent kernel or of the escape."""

    @abc.abstractmethod
    def velocity(self, _: float, state: Array) -> Array: ...

    @abc.abstractmethod
    def jacobian(self, _: float, state: Array) -> Array: ...

    @abc.abstractmethod
    def atol(self, rtol: float, state: Array) -> float | Array: ...

    @abc.abstractmethod
    def moment(self, t: float, state: Array) -> Moment: ...

    def follows(self, state: Array) -> bool:
        """False if the anchor cannot follow so far; GaveUp if none can."""
        return True

    def far(self, solver: Any) -> bool:
        """True if another anchor is due."""
        return False

    def next(self, t: float, state: Array) -> Anchor:
        """The anchor at a time after this one."""
        raise GaveUp(SHORT)

    def first_step(self, t: float, solver: Any) -> float:
        """The step to try from the next anchor."""
        return solver.step_size or 0.0


class DualIntegrator(FitIntegrator):
    """The flow of the dual; its clock is training time over exp(log_unit)."""

    def __init__(
        self, problem: Regression, anchor: Anchor, rtol: float, plan: Plan, log_unit: float
    ) -> None:
        super().__init__(problem)
        self.rtol, self.t_max, self.log_unit = rtol, plan.t_max, log_unit
        self.begin = self.marked = anchor.moment(0.0, anchor.start)
        self.h, self.failed = 1e-4 * plan.unit, 0
        self._set(anchor)

    def _set(self, anchor: Anchor) -> None:
        atol = anchor.atol(self.rtol, anchor.start)
        given = anchor.start, self.t_max - anchor.t, self.h, atol, anchor.newton
        self.anchor, self.solver = anchor, stiff(anchor.velocity, anchor.jacobian, *given)

    def _renew(self, t: float, state: Array) -> None:
        """Goes on from another anchor, `t` after the last one."""
        self.failed = self.failed + 1 if t == 0 else 0
        if self.failed > STUCK:
            raise GaveUp("coordinates crowd the wall of the dual box; use ParameterFlow")
        anchor = self.anchor.next(t, state)
        self.h = self.h / 10 if self.failed else self.anchor.first_step(t, self.solver)
        self._set(anchor)

    def advance(self, limit: float) -> None:
        if self.solver.status != "running" or (self.solver.t and self.anchor.far(self.solver)):
            self._renew(self.solver.t, self.solver.y.copy())
        while not self._stepped():
            pass
        self.t, self.steps = self.anchor.t + self.solver.t, self.steps + 1
        if self.solver.status == "finished":
            self.t = self.t_max
        if self.steps % PATIENCE == 0:
            now = self.at(self.t)
            if crawls(self.marked, now):
                raise GaveUp(CRAWL)
            self.marked = now

    def _stepped(self) -> bool:
        """One step of the solver; False if it led nowhere and the flow goes on from an anchor."""
        t, state = self.solver.t, self.solver.y.copy()
        self.solver.atol = self.anchor.atol(self.rtol, state)
        if try_step(self.solver) and self.anchor.follows(self.solver.y):
            return True
        self._renew(t, state)
        return False

    def at(self, t: float) -> Moment:
        solver = self.solver
        local = min(max(t - self.anchor.t, solver.t_old or 0.0), solver.t)
        state = solver.y.copy() if t == self.t else solver.dense_output()(local)
        return self.anchor.moment(t, state)

    def clock(self, t: float) -> str:
        """Training time in words that survive over- and underflow."""
        if t == 0:
            return "t=0"
        log_t = (math.log(t) + self.log_unit) / math.log(10)
        return f"t={10**log_t:.4g}" if abs(log_t) < 300 else f"t=10^{log_t:.1f}"


def crawls(before: Moment, now: Moment) -> bool:
    """True if rounding alone fills the steps: the time and every weight stand still.

    Near a saddle the time stands still in float64 while weights grow by many orders of magnitude,
    and those are seen in their logarithms.
    """
    if now.t > (1 + SETTLED) * before.t:
        return False
    return bool(np.abs(now.log_growth - before.log_growth).max() < math.sqrt(SETTLED))
