"""The steps of a flow whose clock is the smoothed margin, by a stiff integrator."""

from __future__ import annotations

import abc
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.records import Kind, Outcome
from tacit.training.exact.follow import Integrator, Plan
from tacit.training.exact.solver import GaveUp, inside, try_step
from tacit.training.exact.task import Moment
from tacit.training.stop import Stop

LOOSER = (1e-8, 1e-6)  # tolerances to fall back to
AFRESH = 5  # so many steps between two failures are progress
PATIENCE, CRAWL = 2000, 0.5  # so many steps must bring the clock so far
NEAR = 1e-13  # of the clock at a record
HIGHEST = 700.0  # a trial step beyond e^HIGHEST would overflow
STIFF = "the flow is stiffer there than float64 can follow"
AT_REST = (
    "it is at rest; the model cannot lower the loss further, or only past a saddle too flat for "
    "float64; take a larger start"
)
PASSED = Outcome(Kind.SOLVED, "the rest is another part's")


class MarginSystem(abc.ABC):
    """A flow in the clock sigma, with g = begin_g + unit (e^sigma - 1) the smoothed margin.

    The last entry of the state is T = t e^-g in some unit, whose rate is (gain - T) dg.
    """

    start: Array
    begin_g: float
    unit: float
    stuck = False  # whether nothing moves from the start
    still = False  # whether the smoothed margin does not rise any more

    def g(self, sigma: float) -> float:
        return self.begin_g + self.unit * math.expm1(sigma if sigma < HIGHEST else HIGHEST)

    def sigma(self, g: float) -> float:
        return math.log1p((g - self.begin_g) / self.unit)

    def stretch(self, sigma: float) -> float:
        """dg/dsigma."""
        return self.unit * math.exp(sigma if sigma < HIGHEST else HIGHEST)

    @abc.abstractmethod
    def atol(self, rtol: float) -> Array: ...

    @abc.abstractmethod
    def log_elapsed(self, sigma: float, time: float) -> float:
        """log T with the first moments added, so that it is finite."""

    @abc.abstractmethod
    def velocity(self, sigma: float, state: Array) -> Array: ...

    @abc.abstractmethod
    def jacobian(self, sigma: float, state: Array) -> Array: ...

    @abc.abstractmethod
    def moment(self, sigma: float, state: Array) -> Moment: ...

    def first(self) -> Moment:
        """The start itself."""
        return self.moment(0.0, self.start)


class MarginSteps(Integrator):
    """One part of the way, up to the clock `end`."""

    def __init__(self, system: Any, end: float) -> None:
        self.system, self.end = system, end
        self.solver: Any = None
        self._cache: Moment | None = None

    @abc.abstractmethod
    def inside(self, sigma: float) -> Moment:
        """`at`, computed."""

    def at(self, t: float) -> Moment:
        if self._cache is None or self._cache.t != t:
            self._cache = self.inside(t)
        return self._cache

    def log_loss(self, now: Moment) -> float:
        return -float(now.smoothed_margin)

    def clock(self, t: float) -> str:
        return f"smoothed margin {self.system.g(t):.3g}"

    def place(self, now: Moment) -> str:
        return f"smoothed margin {now.smoothed_margin:.6g}"

    def reached(self, now: Moment, plan: Plan) -> Outcome:
        g = now.smoothed_margin
        return Outcome(Kind.SOLVED, f"reached smoothed margin {g:.6g}, log loss {-g:.6g}")


class Opening(MarginSteps):
    """A part of the way that is gone by other means than a MarginIntegrator, before one."""

    @abc.abstractmethod
    def successor(self) -> MarginSystem:
        """The same flow from the end of this part on."""


class MarginIntegrator(MarginSteps):
    """The accepted steps of LSODA, with a looser tolerance from where rounding beats the first.

    The clock tau runs with sigma, and with the logarithm of the training time where that is
    faster: near a saddle the loss stands still while weights grow, and sigma stands still too.
    """

    def __init__(
        self, system: MarginSystem, end: float, rtol: float, rules: Sequence[Stop]
    ) -> None:
        super().__init__(system, system.sigma(end))
        self.rtol, self.rules = rtol, rules
        self.state = np.append(system.start, 0.0)
        self.was = 0.0  # sigma at the beginning of the last step
        self.loosened = ""
        self._accepted = self._steps()

    def advance(self, limit: float) -> None:
        if next(self._accepted, None) is None:
            raise GaveUp(AT_REST if self.system.still else STIFF)

    def _steps(self) -> Iterator[int]:
        """The number of every accepted step."""
        for rtol in sorted({self.rtol, *(r for r in LOOSER if r > self.rtol)}):
            if self.steps:
                since = self.system.g(self.t)
                self.loosened += f"; rtol {rtol:g} from smoothed margin {since:.3g} on"
            taken, crawls = -AFRESH - 1, False
            # a support vector enters within a step that is rounded off a long clock: the clock is
            # autonomous, so a failure is first answered by starting it from zero
            while self.steps > taken + AFRESH and not crawls:
                self.solver, taken, mark = self._make(rtol), self.steps, 0.0
                while not crawls and try_step(self.solver):
                    self.steps += 1
                    self.was, self.state = float(self.state[-1]), self.solver.y.copy()
                    self.t = min(float(self.state[-1]), self.end)
                    yield self.steps
                    if (self.steps - taken) % PATIENCE == 0:
                        crawls, mark = self.solver.t < mark + CRAWL, self.solver.t

    def _make(self, rtol: float) -> Any:
        from scipy.integrate import LSODA

        loose = np.full(len(self.state), rtol)
        loose[-2] = min(100 * rtol, 1e-2)  # the training time moves nothing
        settings: Any = {"rtol": loose, "atol": np.append(self.system.atol(rtol), rtol)}
        settings |= {"jac": self._jacobian, "first_step": 1e-6 if self.steps == 0 else 1e-15}
        return LSODA(self._velocity, 0.0, self.state, math.inf, **settings)

    def _velocity(self, _: float, state: Array) -> Array:
        rate = self.system.velocity(float(state[-1]), state[:-1])
        whole = np.empty_like(state)
        whole[:-1], whole[-1] = rate, 1.0
        whole /= 1 + self._wait(state, rate)
        return whole

    def _wait(self, state: Array, rate: Array) -> float:
        """d log t / d sigma over the smoothed margin: of order one, but huge at a saddle."""
        sigma, time = float(state[-1]), float(state[-2])
        stretch = self.system.stretch(sigma)
        gained = max(float(rate[-1]) + stretch * time, 0.0)  # dT = (gain - T) dg
        log_wait = math.log(gained) if gained > 0 else -math.inf
        log_wait -= self.system.log_elapsed(sigma, time)
        return math.exp(min(log_wait, 600.0)) / (1 + self.system.g(sigma) - self.system.begin_g)

    def _jacobian(self, _: float, state: Array) -> Array:
        sigma, inner = float(state[-1]), state[:-1]
        rate, J = self.system.velocity(sigma, inner), self.system.jacobian(sigma, inner)
        wait, size = self._wait(state, rate), len(state)
        slow = 1 / (1 + wait)
        # rates are e^sigma times functions of the state, so d rate / d sigma = rate
        whole = np.zeros((size, size))
        whole[:-1, :-1], whole[:-1, -1] = J, rate
        # log(wait) = log(gain) - log(elapsed) + ...: only the gain depends on more than the time
        stretch = self.system.stretch(sigma)
        gained = float(rate[-1]) + stretch * float(inner[-1])
        d_wait = np.zeros(size)
        if gained > 0:
            d_wait[:-1] = wait / gained * J[-1]
            d_wait[-2] += wait / gained * stretch
            d_wait[-1] = wait
        drawn = math.exp(min(-self.system.log_elapsed(sigma, float(inner[-1])), 690.0))
        d_wait[-2] -= wait * drawn
        return slow * whole - np.outer(np.append(rate, 1.0), slow**2 * d_wait)

    def inside(self, sigma: float) -> Moment:
        state = self.state
        if sigma != state[-1]:
            ends = self.was, float(state[-1])
            state = inside(self.solver, lambda state: float(state[-1]), sigma, ends, NEAR)
        return self.system.moment(sigma, state[:-1])

    def reached(self, now: Moment, plan: Plan) -> Outcome:
        if self.rules and all(rule.directional for rule in self.rules):
            away = min(rule.gap(now.predictor) for rule in self.rules)
            sentence = (
                f"gave up at smoothed margin {now.smoothed_margin:.3g}, still {away:.4g} degrees "
                "outside the rule; the flow does not go there"
            )
            return Outcome(Kind.BUDGET_SPENT, sentence)
        outcome = super().reached(now, plan)
        return Outcome(outcome.kind, outcome.sentence + self.loosened)
