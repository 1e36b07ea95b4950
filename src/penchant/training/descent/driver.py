"""The driver of all step-by-step methods: compiled steps between two measurements.

How it works. A run is a state (parameters, memory of the method, draws of the batches, number of
steps) and a compiled function that advances it to any later step. The plan lists the steps at which
the run is measured, log-spaced; between two of them nothing leaves the compiled loop. What is
compiled depends on the objective, the kind of method and the shapes alone, so runs that differ in
numbers (learning rates, weights, data) share it. The draws of an epoch depend on the seed and its
number alone, so a run can be resumed at any step and gives the same bits.

A goal such as a level of the loss is passed between two measurements. The step that met it is found
by bisection from the state before, since any step can be computed again; the same bisection finds
the last finite step of a run that diverged. So measurements can be few and ends are still exact.

Pitfalls. Methods with variable steps have no fixed number of steps to a time: `reach` goes half the
estimated way at a time, because the rate may grow. A look that is no record is measured by cheap
bounds first, which mostly show that every goal is still far. A run that left float64 returns its
last measured finite state, with that as its last record. A nan may come from the penalty and not
from the steps: then the penalty is named, and a smaller learning rate is not advised.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from penchant.door import Invalid
from penchant.interrupt import interrupted
from penchant.lazy import jax, jnp
from penchant.limits import Turns
from penchant.records import Kind, Outcome
from penchant.training.descent.compiled import Batches, Code, functions
from penchant.training.descent.method import Oracle, StepMethod
from penchant.training.descent.plan import Goals
from penchant.training.task import Meter, Moment, Progress, Task

if TYPE_CHECKING:
    from penchant.training.descent.plan import StepPlan

PROGRESS = 100  # the least number of calls of `progress` in a run
CTRL_C = "stopped by Ctrl-C"


class TrainingState(NamedTuple):
    """The state of training: parameters, memory of the method and the draws, steps taken."""

    parameters: Any
    memory: Any
    draws: Any
    taken: int


class Run:
    """One run of a method on a task."""

    def __init__(
        self, task: Task, method: StepMethod, penalty: Any, batches: Batches, seed: int
    ) -> None:
        self.task, self.method, self.penalty = task, method, penalty
        self.scheme, self.batches, self.seed = method.scheme, batches, seed
        self.meter = Meter(task, penalty)
        terms = () if penalty is None else [term for term in penalty.weighted if term[0] > 0]
        self.weights = [weight for weight, _ in terms]
        regularizers = tuple(regularizer for _, regularizer in terms)
        self.code = Code(task.objective, method.kind(), method, regularizers, batches, task.outside)
        data = task.data if batches.size else task.full_data()
        data = jax.tree.map(jnp.asarray, data)  # once, not in every call of compiled steps
        self.given = self.weights, method.numbers(), data

    def begin(self) -> TrainingState:
        parameters = jax.tree.map(jnp.asarray, self.scheme.start(self.task))
        memory = functions(self.code)[0](*self.given, parameters)
        return TrainingState(parameters, memory, self.batches.start(self.seed, 0), 0)

    def again(
        self, start: TrainingState, parameters: Any, memory: Sequence[Any], taken: int
    ) -> TrainingState:
        """The state in which an earlier run from `start` ended."""
        leaves = jax.tree.leaves(self.task.trained(parameters)), memory
        old, new = map(_shapes, (memory, jax.tree.leaves(start.memory)))
        if old != new:
            raise Invalid(
                f"resume must have the memory of this method, arrays of the shapes "
                f"{new}, got {old}; start a new run"
            )
        trained, carried = (
            jax.tree.unflatten(jax.tree.structure(like), [jnp.asarray(leaf) for leaf in stored])
            for like, stored in zip((start.parameters, start.memory), leaves, strict=True)
        )
        return TrainingState(trained, carried, self.batches.start(self.seed, taken), taken)

    def advance(self, state: TrainingState, target: int) -> TrainingState:
        carried = state.parameters, state.memory, state.draws
        advanced = functions(self.code)[1]
        parameters, memory, draws = advanced(*self.given, state.taken, target, *carried)
        return TrainingState(parameters, memory, draws, target)

    def reach(self, state: TrainingState, t: float, most: int) -> TrainingState:
        """The state at the step that ends nearest to time `t`, but not beyond step `most`."""
        turns = Turns(100_000, "the steps to a time")
        while state.taken < most:
            turns.take()
            left = (t - self.moment(state).t) / self.rate(state)
            if left < 0.5:
                break
            if not math.isfinite(left):  # one more step shows that it diverges
                return self.advance(state, state.taken + 1)
            # half the way at a time, since the rate may grow
            state = self.advance(state, min(most, state.taken + max(1, int(left / 2))))
        return state

    def rate(self, state: TrainingState) -> float:
        return float(self.scheme.clock.rate(state.parameters, state.taken))

    def last(
        self, state: TrainingState, bad: int, good: Callable[[TrainingState], bool]
    ) -> TrainingState:
        """The last state before step `bad` that is still good, by bisection."""
        turns = Turns(64, "the bisection of steps")
        while bad - state.taken > 1:
            turns.take()
            middle = self.advance(state, (state.taken + bad) // 2)
            if good(middle):
                state = middle
            else:
                bad = middle.taken
        return state

    def moment(self, state: TrainingState) -> Moment:
        """The state in NumPy arrays, as it is measured."""
        memory = jax.tree.map(np.asarray, state.memory)
        parameters = jax.tree.map(np.asarray, state.parameters)
        log_t = self.scheme.clock.log_time(memory, state.taken)
        t = self.scheme.clock.time(memory, state.taken)
        return Moment(t, parameters, log_t=log_t, step=state.taken)


def follow(
    run: Run, state: TrainingState, plan: StepPlan, progress: Progress | None
) -> tuple[TrainingState, Outcome]:
    """The last finite state, its records in the meter, and how training ended."""
    meter, goals, records = run.meter, plan.goals, set(plan.records)
    numbers = meter.first
    for look in plan.looks:
        before = state
        if not plan.timed and look <= before.taken:
            continue
        state = _advanced(run, before, look, plan, progress)
        if state.taken == before.taken:  # there is no step between two times to record
            continue
        if not finite(state.parameters):
            return before, _diverged(run, before, state.taken)
        moment = run.moment(state)
        if interrupted():
            meter.keep(moment, meter.look(moment))
            return state, Outcome(Kind.INTERRUPTED, f"{CTRL_C} after {state.taken} steps")
        if look not in records and _far_from_goals(meter, goals, moment):
            _report(progress, plan, moment)
            continue
        numbers = meter.look(moment)
        if goals.located(moment, numbers):  # it lies between two measurements: find the step
            state = run.last(before, state.taken, lambda s: not _located(run, goals, s))
            state = run.advance(state, state.taken + 1)
            moment = run.moment(state)
            numbers = meter.look(moment)
        if _beyond(numbers, meter.first):
            return before, _diverged(run, before, state.taken)
        end = _held(goals.met(moment, numbers), numbers) or _stalled(run, moment, numbers)
        if look in records or end is not None:
            meter.keep(moment, numbers)
        _report(progress, plan, moment)
        if end is not None:
            return state, end
    return state, _held(goals.ended(run.moment(state), numbers), numbers)


def _held(outcome: Any, numbers: Mapping[str, float]) -> Any:
    """The outcome, which is no success where the loss is not a number of float64."""
    if outcome is None or not outcome.ok or math.isfinite(numbers["loss"]):
        return outcome
    what = f"the loss is beyond float64, its logarithm {numbers['log_loss']:.6g}"
    return Outcome(Kind.OUT_OF_RANGE, f"{what}; rescale the data or the start")


def _advanced(
    run: Run, state: TrainingState, look: Any, plan: StepPlan, progress: Progress | None
) -> TrainingState:
    if plan.timed:
        return run.reach(state, look, plan.last)
    piece = plan.last if progress is None else max(1, plan.last // PROGRESS)
    turns = Turns(10 * PROGRESS, "the pieces of a run")
    while look - state.taken > piece:
        turns.take()
        state = run.advance(state, state.taken + piece)
        if interrupted():
            return state
        _report(progress, plan, run.moment(state))
    return run.advance(state, look)


def _report(progress: Progress | None, plan: StepPlan, moment: Moment) -> None:
    if progress is not None:
        progress(plan.done(moment), f"step {moment.step}")


def _far_from_goals(meter: Meter, goals: Goals, moment: Moment) -> bool:
    return any(goals.met(moment, bound) is None for bound in meter.bounds(moment))


def _located(run: Run, goals: Goals, state: TrainingState) -> bool:
    moment = run.moment(state)
    return goals.located(moment, run.meter.look(moment))


def _stalled(run: Run, moment: Moment, numbers: Mapping[str, float]) -> Outcome | None:
    reason = run.task.stalled(numbers)
    if reason is None:
        return None
    sentence = f"{reason} after {moment.step} steps; take a smaller learning rate"
    return Outcome(Kind.STALLED, sentence)


def _diverged(run: Run, state: TrainingState, bad: int) -> Outcome:
    """The outcome of a run that was finite at `state` and not at step `bad`; it ends at `state`."""

    def good(middle: TrainingState) -> bool:
        if not finite(middle.parameters):
            return False
        return not _beyond(run.meter.look(run.moment(middle)), run.meter.first)

    last = run.last(state, bad, good)
    _blame(run, last)
    moment = run.moment(state)
    run.meter.keep(moment, run.meter.look(moment))
    rate = run.scheme.learning_rate
    smaller = "smaller steps" if rate is None else f"a smaller learning rate than {rate:g}"
    return Outcome(Kind.DIVERGED, f"beyond float64 after {last.taken + 1} steps; take {smaller}")


def _beyond(numbers: Mapping[str, float], first: Mapping[str, float]) -> bool:
    grown = not numbers["log_loss"] <= first["log_loss"] or not numbers["log_loss"] < math.inf
    return grown and not math.isfinite(numbers["loss"])


def _blame(run: Run, state: TrainingState) -> None:
    """Raises if the penalty made a nan out of finite numbers."""
    if run.penalty is None:
        return
    run.meter.look(run.moment(state))["penalty"]  # which may name itself
    name, pulls = "subgradient", [run.penalty.subgradient(state.parameters)]
    if run.scheme.penalties == "prox":
        probe = _Probe(run.code.oracle(run.weights, run.given[2]))
        run.scheme.step(probe, state.parameters, state.memory, state.taken)
        name, pulls = "proximal map", probe.maps
    if any(np.isnan(np.asarray(part)).any() for part in jax.tree.leaves(pulls)):
        raise Invalid(
            f"the {name} of the penalty is nan at step {state.taken}, where the "
            "parameters are finite; check the penalty there"
        )


def _shapes(arrays: Sequence[Any]) -> list[str]:
    return [f"{array.dtype}{list(array.shape)}" for array in arrays]


class _Probe(Oracle):
    """An oracle that keeps the proximal maps of finite parameters which a step asks for."""

    def __init__(self, oracle: Oracle) -> None:
        super().__init__(oracle.objective, oracle.data, oracle.share, oracle.penalty)
        self.maps: list[Any] = []

    def prox(self, parameters: Any, length: Any) -> Any:
        point = super().prox(parameters, length)
        self.maps += [point] if finite(parameters) else []
        return point


def finite(parameters: Any) -> bool:
    return all(np.isfinite(np.asarray(part)).all() for part in jax.tree.leaves(parameters))
