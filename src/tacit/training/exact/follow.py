"""Following a flow: log-spaced records, and when to stop and what to say then."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from tacit.arguments import Array
from tacit.problems.regression import Regression
from tacit.records import Kind, Outcome
from tacit.solvers.constraints import reduce
from tacit.training import stop as stopping
from tacit.training.exact.flow import Course, Flow
from tacit.training.exact.loss import log_sum_of_squares
from tacit.training.exact.times import asked_times, times_to_record
from tacit.training.task import Progress

LOOK = 8  # small steps between two looks at the loss
ROUNDING = 1e-26  # of the loss of the zero predictor: squares of what rounding leaves of a fit
PATIENCE = 5000  # integrator steps that must bring the time or a weight forward
SETTLED = 1e-9  # relative change of every variable over a decade of time that counts as none


GOALS = (stopping.Interpolated, stopping.Loss, stopping.LogLoss, stopping.Time)
CRAWL = (
    f"{PATIENCE} steps brought neither the time nor a weight forward, for one weight grows too "
    "suddenly for float64; take a larger alpha, or interpolate() for the end of the flow"
)


class Snapshot(NamedTuple):
    """One time of a flow: its predictor, and the variables the flow itself moves.

    A dual flow adds the logarithms of |w+| and |w-| over their start, in two rows.
    """

    t: float
    predictor: Array
    state: Array
    log_growth: Array | None = None


class Step(NamedTuple):
    """An accepted step of an integrator that ends at `t`; `at` interpolates inside it."""

    t: float
    at: Callable[[float], Snapshot]


class GaveUp(Exception):
    """The integrator cannot go on; the message says why."""


class Plan(NamedTuple):
    """When to stop, and what to record, with times in the flow's own unit."""

    log_level: float  # of the loss that is low enough
    bare: bool  # whether no goal was given, so that to come to `t_max` is all
    t_max: float
    max_steps: int
    times: Iterator[float]  # increasing


def planned_fit(
    who: str,
    flow: Flow,
    course: Course,
    model: Any,
    problem: Regression,
    first: float,
    log_unit: float = 0.0,
) -> Plan:
    """The plan of a run on values, whose log-spaced records begin at `first`."""
    stopping.understood(who, course.stops, GOALS, "where a linear predictor learns values")
    log_scale = float(log_sum_of_squares(problem.y)) if problem.y.any() else 0.0
    fitted = stopping.Interpolated().relative if course.t_max is None else ROUNDING
    level = course.log_level(who, model, log_scale, fitted)
    t_max = math.inf if course.t_max is None else own_time(course.t_max, log_unit)
    asked = [own_time(t, log_unit) for t in asked_times(who, course)]
    times = times_to_record(first, course.per_decade, asked)
    bare = not course.goals and course.t_max is not None
    return Plan(level, bare, t_max, flow.max_steps, times)


def own_time(t: float, log_unit: float) -> float:
    """A training time in the flow's own unit, exp(log_unit)."""
    if log_unit == 0:
        return t
    with np.errstate(over="ignore", under="ignore"):
        return max(float(np.exp(math.log(t) - log_unit)), 1e-300)


def advance(solver: Any) -> bool:
    """Take one step of a SciPy solver; False if it failed.

    Its warnings only repeat the status, and a ValueError is a trial step that overflowed.
    """
    with quiet():
        return try_step(solver)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Silences what a solver says of trial steps."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def try_step(solver: Any) -> bool:
    """`advance` for a caller that is `quiet` already: to enter that at every step takes time."""
    try:
        solver.step()
    except ValueError:
        return False
    return solver.status != "failed" and bool(np.isfinite(solver.y).all())


def stiff(
    velocity: Callable[[float, Array], Array],
    jacobian: Callable[[float, Array], Array],
    start: Array,
    t_max: float,
    first_step: float,
    atol: float | Array,
    newton: float,
) -> Any:
    """SciPy's BDF from t=0 with an absolute tolerance, a fraction `newton` of it for its equations.

    What Newton leaves is a floor under the residual; less than rounding it cannot leave. Not
    LSODA: that opens with a non-stiff method, and cannot recover from a step that overflows.
    """
    from scipy.integrate import BDF

    first_step = min(first_step, t_max)
    settings: Any = {"rtol": 1e-13, "atol": atol, "jac": jacobian}
    solver = BDF(velocity, 0.0, start, t_max, first_step=first_step, **settings)
    solver.newton_tol = newton
    return solver


def tolerance(rtol: float, residual: Array, y: Array) -> float:
    """`rtol`, or what rounding leaves of it once the residual is small.

    The velocity of a dual is the residual, known to eps |y|. Where nothing damps the dual, asking
    more than eps |y| / |residual| of it would chase noise with ever smaller steps.
    """
    noise = np.finfo(float).eps * float(np.linalg.norm(y))
    return max(rtol, noise / max(float(np.linalg.norm(residual)), noise))


def follow(
    begin: Snapshot,
    steps: Iterator[Step],
    problem: Regression,
    plan: Plan,
    progress: Progress | None = None,
    log_unit: float = 0.0,
) -> tuple[list[Snapshot], Outcome]:
    """Snapshots at 0, at the times of the plan and at the end, and the outcome.

    Times are in the flow's own unit, exp(log_unit) in training time.
    """
    watch = _Watch(problem, plan, progress, log_unit)
    records, checkpoint, last, marked = [begin], begin, begin, begin
    if watch.log_loss(begin) <= plan.log_level:
        return records, Outcome(Kind.SOLVED, "the start already fits the data")
    due = next(plan.times, math.inf)
    try:
        for count, step in enumerate(steps, start=1):
            while due < step.t:
                records.append(step.at(due))
                watch.report(records[-1])
                due = next(plan.times, math.inf)
            if count % LOOK and step.t < min(1.1 * last.t, plan.t_max):
                continue
            last = step.at(step.t)
            if count % PATIENCE == 0:
                if crawls(marked, last):
                    raise GaveUp(CRAWL)
                marked = last
            if not np.isfinite(last.predictor).all():
                return records, Outcome(Kind.DIVERGED, f"not finite at t={watch.time(step.t)}")
            if watch.log_loss(last) <= plan.log_level:
                return [*records, last], watch.fitted(last)
            if step.t >= 10 * checkpoint.t:
                if watch.settled(checkpoint, last):
                    return [*records, last], watch.stalled(last)
                checkpoint = last
            if count >= plan.max_steps:
                sentence = f"{plan.max_steps} integrator steps; raise max_steps"
                return [*records, last], watch.spent(last, sentence)
    except GaveUp as reason:
        last = max(records[-1], last, key=lambda snapshot: snapshot.t)
        records = records if last is records[-1] else [*records, last]
        return records, watch.gave_up(last, str(reason))
    return [*records, last], watch.timed_out(last)


def contradictory(problem: Regression) -> bool:
    """True if no linear predictor fits y, decided with rows and columns in units of their own."""
    try:
        reduce("follow", problem.X, problem.y)
    except ValueError:
        return True
    return False


def crawls(before: Snapshot, now: Snapshot) -> bool:
    """True if rounding alone fills the steps: the time and every weight stand still.

    Near a saddle the time stands still in float64 while weights grow by many orders of magnitude,
    and those are seen in their logarithms.
    """
    if now.log_growth is None or before.log_growth is None or now.t > (1 + SETTLED) * before.t:
        return False
    return bool(np.abs(now.log_growth - before.log_growth).max() < math.sqrt(SETTLED))


class _Watch:
    """Knows the loss, the target and how to say what happened."""

    def __init__(
        self, problem: Regression, plan: Plan, progress: Progress | None, log_unit: float
    ) -> None:
        self.problem, self.target, self.log_unit = problem, plan.log_level, log_unit
        self.bare = plan.bare
        self.progress, self.reported = progress, -1.0
        self.first_loss: float | None = None

    def log_loss(self, snapshot: Snapshot) -> float:
        return float(log_sum_of_squares(self.problem.X @ snapshot.predictor - self.problem.y))

    def time(self, t: float) -> str:
        """Training time in words that survive over- and underflow."""
        if t == 0:
            return "0"
        log_t = (math.log(t) + self.log_unit) / math.log(10)
        return f"{10**log_t:.4g}" if abs(log_t) < 300 else f"10^{log_t:.1f}"

    def level(self, snapshot: Snapshot) -> str:
        return f"loss {math.exp(self.log_loss(snapshot)):.3g}"

    def report(self, snapshot: Snapshot) -> None:
        """Tell `progress` how far the logarithm of the loss has come, at most fifty times."""
        if self.progress is None:
            return
        loss = self.log_loss(snapshot)
        first = self.first_loss = loss if self.first_loss is None else self.first_loss
        span = first - self.target
        done = (first - loss) / span if 0 < span < math.inf else 0.0
        if done >= self.reported + 0.02:
            self.reported = done
            self.progress(min(max(done, 0.0), 1.0), f"t={self.time(snapshot.t)}")

    def settled(self, before: Snapshot, now: Snapshot) -> bool:
        """True if a decade of time moved no variable and did not halve the loss."""
        still = np.abs(now.state - before.state) <= SETTLED * np.abs(now.state)
        return bool(still.all()) and self.log_loss(now) > self.log_loss(before) - math.log(2)

    def fitted(self, now: Snapshot) -> Outcome:
        sentence = f"the data are fitted at t={self.time(now.t)} with {self.level(now)}"
        return Outcome(Kind.SOLVED, sentence)

    def stalled(self, now: Snapshot) -> Outcome:
        where = f"at rest since t={self.time(now.t / 10)} with {self.level(now)}"
        if self.bare:
            return Outcome(Kind.SOLVED, where)
        best = np.linalg.lstsq(self.problem.X, self.problem.y, rcond=None)[0]
        floor = float(np.sum((self.problem.X @ best - self.problem.y) ** 2))
        here, zero = math.exp(self.log_loss(now)), float(np.sum(self.problem.y**2))
        why = "the model cannot move further"
        if here < ROUNDING * zero:
            why = "rounding leaves no less; stop at a larger loss"
        elif floor > 0.5 * here and contradictory(self.problem):
            why = f"no linear predictor fits y, the least-squares loss is {floor:.3g}"
        elif here < 1e-12 * zero:
            why = f"the steps are not accurate enough for {math.exp(self.target):.3g}; lower rtol"
        return Outcome(Kind.STALLED, f"{where}: {why}")

    def timed_out(self, now: Snapshot) -> Outcome:
        if not self.bare:
            return self.spent(now, "Time; give more of it")
        return Outcome(Kind.SOLVED, f"followed to t={self.time(now.t)} with {self.level(now)}")

    def spent(self, now: Snapshot, sentence: str) -> Outcome:
        where = f"t={self.time(now.t)} with {self.level(now)} > {math.exp(self.target):.3g}"
        return Outcome(Kind.BUDGET_SPENT, f"stopped at {where} by {sentence}")

    def gave_up(self, now: Snapshot, reason: str) -> Outcome:
        where = f"t={self.time(now.t)} with {self.level(now)}"
        return Outcome(Kind.STALLED, f"the integrator gave up at {where}: {reason}")
