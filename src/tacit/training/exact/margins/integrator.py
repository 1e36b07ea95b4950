"""The steps of a flow whose clock is the smoothed margin, by a stiff integrator."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from tacit.arguments import Array
from tacit.records import Kind, Outcome
from tacit.training.exact.follow import try_step
from tacit.training.stop import Stop

LOOSER = (1e-8, 1e-6)  # tolerances to fall back to
AFRESH = 5  # so many steps between two failures are progress
PATIENCE, CRAWL = 2000, 0.5  # so many steps must bring the clock so far
END = 1e13  # the smoothed margin at which a direction that is never met is given up


class MarginSnapshot(NamedTuple):
    """One moment of a flow on classification data."""

    smoothed_margin: float
    log_t: float
    predictor: Array
    margins: Array
    log_slopes: Array  # log |dbeta_i/dw|^2 up to a constant: the tangent kernel's weights
    dual: Array | None = None
    parameters: Array | None = None
    log_growth: Array | None = None


class MarginSystem(Protocol):
    """A flow in the clock sigma, with g = begin_g + unit (e^sigma - 1) the smoothed margin.

    `stretch` is dg/dsigma. The last entry of the state is T = t e^-g in some unit, whose rate is
    (gain - T) dg; `log_elapsed` is log T with the first moments added, so that it is finite.
    """

    start: Array
    begin_g: float

    def g(self, sigma: float) -> float: ...
    def sigma(self, g: float) -> float: ...
    def atol(self, rtol: float) -> Array: ...
    def stretch(self, sigma: float) -> float: ...
    def log_elapsed(self, sigma: float, time: float) -> float: ...
    def velocity(self, sigma: float, state: Array) -> Array: ...
    def jacobian(self, sigma: float, state: Array) -> Array: ...
    def first(self) -> MarginSnapshot: ...
    def snapshot(self, sigma: float, state: Array) -> MarginSnapshot: ...


class Opening(Protocol):
    """A part of the way that is gone by other means than an Integrator, before one."""

    now: float
    end: float
    passes_on: bool

    @property
    def system(self) -> MarginSystem: ...
    def __iter__(self) -> Iterator[tuple[float, float]]: ...
    def at(self, sigma: float) -> MarginSnapshot: ...
    def outcome(self, last: MarginSnapshot) -> Outcome: ...
    def successor(self) -> MarginSystem: ...


class Plan(NamedTuple):
    """Where to go: the `end` of the smoothed margin, what to record and what stops earlier."""

    end: float
    rules: tuple[Stop, ...]  # the goals
    log_t_max: float
    record: Sequence[float]
    per_decade: int | None
    rtol: float
    max_steps: int
    met: bool = False  # whether the start is there already

    @property
    def looks(self) -> bool:
        """True if something but the clock can stop the flow."""
        return self.log_t_max < math.inf or any(rule.directional for rule in self.rules)


class Integrator:
    """The accepted steps of LSODA, with a looser tolerance from where rounding beats the first.

    The clock tau runs with sigma, and with the logarithm of the training time where that is
    faster: near a saddle the loss stands still while weights grow, and sigma stands still too.
    """

    passes_on = False  # nothing follows

    def __init__(self, system: MarginSystem, plan: Plan) -> None:
        self.system, self.plan = system, plan
        self.end = system.sigma(plan.end)
        self.now, self.state = 0.0, np.append(system.start, 0.0)
        self.was = 0.0  # sigma at the beginning of the last step
        self._curve: Any = None  # the states inside it
        self.steps, self.failed, self.crawls = 0, False, False
        self.loosened: list[tuple[float, float]] = []  # (rtol, from which smoothed margin on)
        self.solver: Any = None
        self._cache: tuple[float, MarginSnapshot] | None = None

    def __iter__(self) -> Iterator[tuple[float, float]]:
        for rtol in sorted({self.plan.rtol, *(r for r in LOOSER if r > self.plan.rtol)}):
            if self.steps:
                self.loosened.append((rtol, self.system.g(self.now)))
            taken, self.crawls = -AFRESH - 1, False
            # a support vector enters within a step that is rounded off a long clock: the clock is
            # autonomous, so a failure is first answered by starting it from zero
            while self.steps > taken + AFRESH and not self.crawls:
                self.solver, taken = self._make(rtol), self.steps
                yield from self._steps()
                if self.now >= self.end or self.steps >= self.plan.max_steps:
                    return
        self.failed = True

    def _steps(self) -> Iterator[tuple[float, float]]:
        """Steps until the end, until the integrator fails or hardly moves."""
        mark, counted = 0.0, 0
        while self.now < self.end and self.steps < self.plan.max_steps:
            before = self.now
            if not try_step(self.solver):
                return
            self.steps += 1
            counted += 1
            self.was, self._curve = float(self.state[-1]), None
            self.state = self.solver.y.copy()
            self.now = min(float(self.state[-1]), self.end)
            yield before, self.now
            if counted % PATIENCE == 0:
                self.crawls = self.solver.t < mark + CRAWL
                if self.crawls:
                    return
                mark = self.solver.t

    def _make(self, rtol: float) -> Any:
        from scipy.integrate import LSODA

        loose = np.full(len(self.state), rtol)
        loose[-2] = min(100 * rtol, 1e-2)  # the training time moves nothing
        return LSODA(
            self._velocity,
            0.0,
            self.state,
            math.inf,
            first_step=1e-6 if self.steps == 0 else 1e-15,
            rtol=loose,
            atol=np.append(self.system.atol(rtol), rtol),
            jac=self._jacobian,
        )

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

    def at(self, sigma: float) -> MarginSnapshot:
        """The flow at a moment of the last step."""
        if self._cache is None or self._cache[0] != sigma:
            state = self.state
            if sigma != state[-1]:
                state = self._inside(sigma)
            self._cache = (sigma, self.system.snapshot(sigma, state[:-1]))
        return self._cache[1]

    def _inside(self, sigma: float) -> Array:
        """The state at `sigma`, by the secant rule inside the step and bisection where it fails."""
        if self._curve is None:
            self._curve = self.solver.dense_output()
        low, high = float(self.solver.t_old), float(self.solver.t)
        first, last, state = self.was - sigma, float(self.state[-1]) - sigma, self.state
        for k in range(60):
            share = first / (first - last) if k < 8 and first < 0 < last else 0.5
            middle = low + min(max(share, 0.001), 0.999) * (high - low)
            state = self._curve(middle)
            gap = state[-1] - sigma
            if abs(gap) <= 1e-13 * max(1.0, abs(sigma)) or not low < middle < high:
                break
            if gap > 0:
                high, last = middle, gap
            else:
                low, first = middle, gap
        return state

    def outcome(self, last: MarginSnapshot) -> Outcome:
        g = last.smoothed_margin
        if self.failed:
            sentence = (
                f"the integrator gave up at smoothed margin {g:.6g}: the flow is stiffer there "
                "than float64 can follow"
            )
            return Outcome(Kind.STALLED, sentence)
        if self.now < self.end:
            sentence = f"stopped at smoothed margin {g:.6g} by max_steps; raise max_steps"
            return Outcome(Kind.BUDGET_SPENT, sentence)
        if all(rule.directional for rule in self.plan.rules) and self.plan.rules:
            gaps = [rule.gap(last.predictor) for rule in self.plan.rules]
            away = min(gap for gap in gaps if math.isfinite(gap)) if gaps else math.inf
            sentence = (
                f"gave up at smoothed margin {g:.3g}, still {away:.4g} degrees outside the rule; "
                "the flow does not go there"
            )
            return Outcome(Kind.BUDGET_SPENT, sentence)
        sentence = f"reached smoothed margin {g:.6g}, log loss {-g:.6g}"
        for rtol, since in self.loosened:
            sentence += f"; rtol {rtol:g} from smoothed margin {since:.3g} on"
        return Outcome(Kind.SOLVED, sentence)
