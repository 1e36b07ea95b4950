"""A flow that is integrated in the smoothed margin: its steps, records and stopping rules."""

from __future__ import annotations

import abc
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from penchant.arguments import Array
from penchant.limits import Turns
from penchant.records import Kind, Outcome
from penchant.training import stop as stopping
from penchant.training.exact.flow import Flow, RunSettings
from penchant.training.exact.follow import SADDLE, STOPS, FlowPlan, Goal, Integrator, go_on
from penchant.training.exact.solver import GaveUp, inside, try_step
from penchant.training.goals import Near
from penchant.training.labels import columns
from penchant.training.stop import Stop
from penchant.training.task import Moment, Progress

LOOSER = (1e-8, 1e-6)  # tolerances to fall back to
RECOVERED = 5  # so many steps between two failures are progress
PATIENCE, LEAST_ADVANCE = 2000, 0.5  # so many steps must advance tau this far
NEAR = 1e-13  # of tau at a record
HIGHEST = 700.0  # a trial step beyond e^HIGHEST would overflow
STIFF = "the flow is stiffer there than float64 can follow"
AT_REST = (
    "it is at rest; the model cannot lower the loss further, or only past a saddle too flat for "
    "float64; take a larger start"
)
PASSED = Outcome(Kind.SOLVED, "another part continues")


class MarginSystem(abc.ABC):
    """A flow in the variable sigma, with g = begin_g + unit (e^sigma - 1) the smoothed margin.

    The last entry of the state is T = t e^-g in some unit, whose rate is (gain - T) dg.
    """

    start: Array
    begin_g: float
    unit: float
    stuck = False  # whether nothing moves from the start
    still = False  # whether the smoothed margin no longer rises

    def g(self, sigma: float) -> float:
        return self.begin_g + self.unit * math.expm1(sigma if sigma < HIGHEST else HIGHEST)

    def sigma(self, g: float) -> float:
        return math.log1p((g - self.begin_g) / self.unit)

    def stretch(self, sigma: float) -> float:
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
        return self.moment(0.0, self.start)


class MarginSteps(Integrator):
    """One part of the flow, up to tau = `end`."""

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

    def time_text(self, t: float) -> str:
        return f"smoothed margin {self.system.g(t):.3g}"

    def state_text(self, now: Moment) -> str:
        return f"smoothed margin {now.smoothed_margin:.6g}"

    def reached(self, now: Moment, plan: FlowPlan) -> Outcome:
        g = now.smoothed_margin
        return Outcome(Kind.SOLVED, f"reached smoothed margin {g:.6g}, log loss {-g:.6g}")


class MarginIntegrator(MarginSteps):
    """The accepted steps of LSODA, with a looser tolerance once rounding exceeds the first.

    The variable tau follows sigma, and the logarithm of the training time where that is faster:
    near a saddle the loss and with it sigma stand still while weights grow.
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
        for rtol in sorted({self.rtol, *(r for r in LOOSER if r > self.rtol)}):
            if self.steps:
                since = self.system.g(self.t)
                self.loosened += f"; rtol {rtol:g} from smoothed margin {since:.3g} on"
            taken, stuck = -RECOVERED - 1, False
            # a support vector may enter within a step that is lost in the rounding of a large tau;
            # the equations do not depend on tau, so after a failure tau first restarts at zero
            while self.steps > taken + RECOVERED and not stuck:
                self.solver, taken, mark = self._make(rtol), self.steps, 0.0
                turns = Turns(100_000_000, "the flow of margins")
                while not stuck and try_step(self.solver):
                    turns.take()
                    self.steps += 1
                    self.was, self.state = float(self.state[-1]), self.solver.y.copy()
                    self.t = min(float(self.state[-1]), self.end)
                    yield self.steps
                    if (self.steps - taken) % PATIENCE == 0:
                        stuck, mark = self.solver.t < mark + LEAST_ADVANCE, self.solver.t

    def _make(self, rtol: float) -> Any:
        from scipy.integrate import LSODA

        loose = np.full(len(self.state), rtol)
        loose[-2] = min(100 * rtol, 1e-2)  # nothing depends on the training time
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

    def reached(self, now: Moment, plan: FlowPlan) -> Outcome:
        if self.rules and all(rule.directional for rule in self.rules):
            away = min(rule.gap(now.predictor) for rule in self.rules)
            sentence = (
                f"gave up at smoothed margin {now.smoothed_margin:.3g}, still {away:.4g} degrees "
                "outside the rule; the flow does not reach that direction"
            )
            return Outcome(Kind.BUDGET_SPENT, sentence)
        outcome = super().reached(now, plan)
        return Outcome(outcome.kind, outcome.sentence + self.loosened)


GOALS = (*STOPS, stopping.Scale, Near)
END = 1e13  # the smoothed margin at which the search for a direction ends


class MarginPlan(NamedTuple):
    """Where to go: the `end` of the smoothed margin, what to record and what stops earlier."""

    end: float
    rules: tuple[stopping.Stop, ...]  # the goals
    log_t_max: float
    margins: tuple[float, ...]  # to record
    per_decade: int | None
    rtol: float
    max_steps: int
    progress: Progress | None
    met: bool = False  # whether the start is there already

    def of(self, part: MarginSteps) -> FlowPlan:
        goals: tuple[Goal, ...] = ()
        if self.log_t_max < math.inf or any(rule.directional for rule in self.rules):
            goals = (*map(_direction, self.rules), Goal(self._time_left, self._out_of_time))
        end = part.end
        settings: Any = {"goals": goals, "rests": False, "progress": self.progress}
        return FlowPlan(self._records(part), self.max_steps, end, unit=end, **settings)

    def _records(self, part: MarginSteps) -> Iterator[float]:
        spaced: list[float] = []
        if self.per_decade is not None:
            step = math.log(10) / self.per_decade
            # tau is already logarithmic in g except in its first unit
            spaced = list(np.arange(step, part.end, step))
        system = part.system
        requested = [system.sigma(g) for g in self.margins if g > system.begin_g]
        return iter(sorted({*spaced, *(sigma for sigma in requested if sigma <= part.end)}))

    def _time_left(self, now: Moment) -> float:
        return self.log_t_max - float(now.log_t)

    def _out_of_time(self, now: Moment) -> Outcome:
        g = f"smoothed margin {now.smoothed_margin:.6g}"
        if self.rules:
            return Outcome(Kind.BUDGET_SPENT, f"stopped at {g} by Time; allow more time")
        return Outcome(Kind.SOLVED, f"followed to t={math.exp(self.log_t_max):.6g}, {g}")


def _direction(rule: stopping.Stop) -> Goal:
    def met(now: Moment) -> Outcome:
        return Outcome(Kind.SOLVED, f"reached {rule} at smoothed margin {now.smoothed_margin:.6g}")

    return Goal(lambda now: rule.gap(now.predictor), met)


def planned_margin(
    flow: Flow, settings: RunSettings, model: Any, start_margin: float
) -> MarginPlan:
    """The plan of a run on labels, or the reason why there is none."""
    stopping.understood(settings.stops, GOALS)
    fitted = stopping.Interpolated().relative if settings.t_max is None else None
    end = -settings.log_level(model, -start_margin, fitted)
    met = not end > start_margin
    end = END if end == math.inf else end  # only a direction or a time to reach
    log_t_max = math.inf if settings.t_max is None else math.log(settings.t_max)
    requested = tuple(g for g in settings.requested_moments("margins") or () if g > 0)
    fields = requested, settings.per_decade, flow.rtol, flow.max_steps, settings.progress
    return MarginPlan(end, settings.goals, log_t_max, *fields, met)


def follow_margin(
    system: MarginSystem, plan: MarginPlan, opening: Any = None
) -> tuple[list[Moment], Outcome]:
    """Moments at log-spaced smoothed margins, at the requested ones and at the end; the outcome.

    An `opening`, MarginSteps by other means, goes first; its `successor` is the system from there.
    """
    moments = [system.first()]
    if plan.met:
        return moments, Outcome(Kind.SOLVED, "the loss of the start is small enough already")
    if system.stuck:
        return moments, Outcome(Kind.STALLED, SADDLE)
    if opening is None:
        return moments, _integrated(system, plan, moments)
    outcome = go_on(opening, plan.of(opening), moments)
    if outcome is not PASSED:
        return moments, outcome
    rest = [moments.pop()._replace(t=0.0)]
    outcome = _integrated(opening.successor(), plan, rest)
    return moments + rest[1:], outcome


def _integrated(system: MarginSystem, plan: MarginPlan, moments: list[Moment]) -> Outcome:
    steps = MarginIntegrator(system, plan.end, plan.rtol, plan.rules)
    return go_on(steps, plan.of(steps), moments)


def margin_records(moments: list[Moment]) -> dict[str, Array]:
    names = "smoothed_margin", "predictor", "margins", "log_slopes", "dual", "parameters"
    record = columns(moments, "log_t", *names)
    with np.errstate(over="ignore", under="ignore"):
        return {"t": np.exp(record["log_t"])} | record
