"""The one driver of all methods that go step by step: compiled steps between looks from outside."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tacit.records import Kind, Outcome
from tacit.training import record as recording
from tacit.training import stop as stopping
from tacit.training.descent.batches import Batches, per_sample
from tacit.training.descent.method import Descent, Objective, Oracle, plus
from tacit.training.goals import Goals
from tacit.training.path import Path
from tacit.training.task import Meter, Moment, Progress, Task

MOST = 10**7  # steps of a run that only a goal ends
TOLD = 100  # times that a run tells its progress, at least
LOOKS = 20  # per decade of steps at a goal, where records are fewer
STOPS = (
    stopping.Steps,
    stopping.Epochs,
    stopping.Time,
    stopping.Loss,
    stopping.LogLoss,
    stopping.Interpolated,
    stopping.Scale,
    stopping.Accuracy,
    stopping.Below,
    stopping.Near,
)


class State(NamedTuple):
    """Where training is: parameters, what the method and the draws carry, and steps taken."""

    parameters: Any
    memory: Any
    draws: Any
    taken: int


@dataclasses.dataclass(frozen=True)
class Code:
    """What compiled steps depend on; runs that differ in numbers and data alone share them."""

    objective: Objective
    kind: tuple[Any, ...]
    method: Descent = dataclasses.field(compare=False)
    penalty: Any  # its regularizers
    batches: Batches
    outside: bool  # whether the loop over steps is not compiled


class Run:
    """One run of a method on a task."""

    def __init__(
        self,
        who: str,
        task: Task,
        method: Descent,
        penalty: Any,
        batches: Batches,
        seed: int,
    ) -> None:
        import jax
        import jax.numpy as jnp

        self.who, self.task, self.method, self.penalty = who, task, method, penalty
        self.batches, self.seed = batches, seed
        terms = () if penalty is None else [term for term in penalty.weighted if term[0] > 0]
        self.weights = [weight for weight, _ in terms]
        regularizers = tuple(regularizer for _, regularizer in terms)
        self.code = Code(task.objective, method.kind(), method, regularizers, batches, task.outside)
        data = task.data if batches.size else task.full_data()
        data = jax.tree.map(jnp.asarray, data)  # once, not in every call of compiled steps
        self.given = self.weights, method.numbers(), data

    def begin(self) -> State:
        """The state before the first step."""
        import jax
        import jax.numpy as jnp

        start = self.method.prepared(self.task.start)
        parameters = jax.tree.map(jnp.asarray, start)
        memory = _functions(self.code)[0](*self.given, parameters)
        return State(parameters, memory, self.batches.start(self.seed, 0), 0)

    def again(self, parameters: Any, leaves: Sequence[Any], taken: int) -> State:
        """The state in which an earlier run ended."""
        import jax
        import jax.numpy as jnp

        fresh = self.begin()
        memory = jax.tree.unflatten(
            jax.tree.structure(fresh.memory), [jnp.asarray(leaf) for leaf in leaves]
        )
        draws = self.batches.start(self.seed, taken)
        held = [jnp.asarray(leaf) for leaf in jax.tree.leaves(self.task.trained(parameters))]
        trained = jax.tree.unflatten(jax.tree.structure(fresh.parameters), held)
        return State(trained, memory, draws, taken)

    def advance(self, state: State, target: int) -> State:
        """The state after step number `target`."""
        parameters, memory, draws = _functions(self.code)[1](
            *self.given, state.taken, target, state.parameters, state.memory, state.draws
        )
        return State(parameters, memory, draws, target)

    def reach(self, state: State, t: float, most: int) -> State:
        """The state at the step that ends nearest to time `t`, but not beyond step `most`."""
        while state.taken < most:
            left = (t - self.moment(state).t) / self.rate(state)
            if left < 0.5:
                break
            if not math.isfinite(left):  # one more step shows that it diverges
                return self.advance(state, state.taken + 1)
            # half the way at a time, since the rate may grow
            state = self.advance(state, min(most, state.taken + max(1, int(left / 2))))
        return state

    def rate(self, state: State) -> float:
        """The learning rate of the next step."""
        return float(self.method.rate(state.parameters))

    def last(self, state: State, bad: int, good: Callable[[State], bool]) -> State:
        """The last state before step `bad` that is still good, by bisection."""
        while bad - state.taken > 1:
            middle = self.advance(state, (state.taken + bad) // 2)
            if good(middle):
                state = middle
            else:
                bad = middle.taken
        return state

    def moment(self, state: State) -> Moment:
        """The state as it is looked at from outside, in NumPy arrays."""
        import jax

        memory = jax.tree.map(np.asarray, state.memory)
        parameters = jax.tree.map(np.asarray, state.parameters)
        log_t = self.method.log_time(memory, state.taken)
        t = self.method.time(memory, state.taken)
        return Moment(state.taken, t, log_t, parameters)


def follow(
    run: Run, state: State, meter: Meter, plan: Plan, progress: Progress | None
) -> tuple[State, Outcome]:
    """The last finite state, its records in `meter`, and how training ended."""
    records, goals = {*plan.records, plan.last}, plan.goals
    numbers = meter.first
    for look in plan.looks:
        if not plan.timed and look <= state.taken:
            continue
        moved = _advanced(run, state, look, plan, progress)
        target = moved.taken
        if target == state.taken:  # there is no step between two times to record
            continue
        if not finite(moved.parameters):
            return state, _diverged(run, state, target, meter, records)
        moment = run.moment(moved)
        if look not in records and _hopeless(meter, goals, moment):
            state = moved
            _tell(progress, plan, moment)
            continue
        numbers = meter.look(moment)
        if goals.located(moment, numbers):  # between two looks: where exactly?
            before = run.last(state, target, lambda s: not _located(run, meter, goals, s))
            moved = run.advance(before, before.taken + 1)
            moment = run.moment(moved)
            numbers = meter.look(moment)
        if _beyond(numbers, meter.first):
            return state, _diverged(run, state, target, meter, records)
        state, met = moved, goals.met(moment, numbers)
        if look in records or met is not None:
            meter.keep(moment, numbers)
        _tell(progress, plan, moment)
        if met is not None:
            return state, met
        if (reason := meter.stalled(moment)) is not None:
            if look not in records:
                meter.keep(moment, numbers)
            sentence = f"{reason} after {state.taken} steps; take a smaller learning rate"
            return state, Outcome(Kind.STALLED, sentence)
    return state, goals.ended(run.moment(state), numbers)


def _advanced(run: Run, state: State, look: Any, plan: Plan, progress: Progress | None) -> State:
    """The state at step or time `look`; with progress the way there is told now and then."""
    if plan.timed:
        return run.reach(state, look, plan.last)
    if progress is not None:
        piece = max(1, plan.last // TOLD)
        while look - state.taken > piece:
            state = run.advance(state, state.taken + piece)
            _tell(progress, plan, run.moment(state))
    return run.advance(state, look)


def _tell(progress: Progress | None, plan: Plan, moment: Moment) -> None:
    if progress is not None:
        progress(plan.done(moment), f"step {moment.step}")


def rarely(progress: Progress) -> Progress:
    """`progress`, called only where another fiftieth of the run is done."""
    told = -1.0

    def called(share: float, text: str) -> None:
        nonlocal told
        if share >= min(told + 0.02, 1.0):
            told = share
            progress(share, text)

    return called


def _hopeless(meter: Meter, goals: Goals, moment: Moment) -> bool:
    """Whether bounds that cost less than all numbers show that no goal is met."""
    return any(goals.met(moment, bound) is None for bound in meter.bounds(moment))


def _diverged(run: Run, state: State, bad: int, meter: Meter, records: set[int]) -> Outcome:
    """What to say of a run that was good at `state` and is not at step `bad`; it keeps `state`."""

    def good(middle: State) -> bool:
        if not finite(middle.parameters):
            return False
        return not _beyond(meter.look(run.moment(middle)), meter.first)

    last = run.last(state, bad, good)
    _blame(run, last)
    _keep_last(run, state, meter, records)
    rate = run.method.learning_rate
    sentence = f"beyond float64 after {last.taken + 1} steps; take a smaller learning rate than"
    return Outcome(Kind.DIVERGED, f"{sentence} {rate:g}")


def _keep_last(run: Run, state: State, meter: Meter, records: set[int]) -> None:
    """Records the last finite state, unless it is one that is recorded."""
    if state.taken not in records:
        moment = run.moment(state)
        meter.keep(moment, meter.look(moment))


def _located(run: Run, meter: Meter, goals: Goals, state: State) -> bool:
    moment = run.moment(state)
    return goals.located(moment, meter.look(moment))


class Plan(NamedTuple):
    """Steps to record and to look at, or times if `timed`; the last step; and the goals."""

    records: Sequence[Any]
    looks: Sequence[Any]
    last: int
    goals: Goals
    timed: bool = False

    def done(self, moment: Moment) -> float:
        """The share of the run that is done."""
        share = moment.step / self.last
        return min(1.0, max(share, moment.t / self.looks[-1])) if self.timed else share

    def kept(self, path: Path, rate: float) -> Any:
        """Which records of an earlier part of the same run belong to it."""
        if not self.timed:
            return np.isin(path.dataset.step.values, self.records)
        passed = np.array([t for t in (0.0, *self.records) if t < path.t + rate / 2])
        nearest = np.abs(path.dataset.t.values - passed[:, None]).argmin(axis=1)
        return np.isin(np.arange(path.dataset.sizes["time"]), nearest)


def plan(run: Run, stop: Sequence[Any], record: Sequence[Any]) -> Plan:
    """What the rules say about this run."""
    who, epoch = run.who, run.batches.epoch
    stopping.understood(who, stop, STOPS)
    last = _last_step(run, stop, epoch)
    recorded = run.task.meter(run.penalty).first
    goals = Goals(who, run.task, stop, recorded, located=epoch is None, steady=run.method.steady)
    time = stopping.first(stop, stopping.Time)
    if time is not None and run.method.timed:
        times = recording.times_to_record(who, record, run.rate(run.begin()), time.t)
        return Plan(times, times, last, goals, timed=True)
    records = recording.steps_to_record(who, record, last, epoch)
    looks = set(records)
    if goals.sought and epoch is None:
        looks |= set(recording.log_spaced(last, LOOKS))
    elif goals.any and epoch is not None:
        looks |= set(range(epoch, last + 1, epoch))
    return Plan(records, sorted(looks), last, goals)


def _last_step(run: Run, stop: Sequence[Any], epoch: int | None) -> int:
    """The step after which a budget ends the run."""
    found = []
    for rule in stop:
        if isinstance(rule, stopping.Steps):
            found.append(rule.count)
        elif isinstance(rule, stopping.Epochs):
            if epoch is None:
                raise ValueError(f"{run.who}: Epochs needs batch=; use Steps")
            found.append(rule.count * epoch)
        elif isinstance(rule, stopping.Time) and run.method.steady:
            count = rule.t / run.method.learning_rate
            if count > 1e15:
                raise ValueError(
                    f"{run.who}: Time({rule.t:g}) is {count:.3g} steps; give a larger learning_rate"
                )
            found.append(max(1, round(count)))
    if not found and not stop:
        raise ValueError(f"{run.who}: descent never ends by itself; give stop=Steps(1000), say")
    return min(found, default=MOST)


def finite(parameters: Any) -> bool:
    """True if all parameters are finite numbers."""
    import jax

    return all(np.isfinite(np.asarray(part)).all() for part in jax.tree.leaves(parameters))


def _beyond(found: Mapping[str, float], first: Mapping[str, float]) -> bool:
    """Whether the loss has grown out of float64, though the parameters are still inside."""
    grown = not found["log_loss"] <= first["log_loss"]
    return grown and not math.isfinite(found["loss"])


def _blame(run: Run, state: State) -> None:
    """Raises if the penalty made a nan out of finite numbers."""
    import jax

    if run.penalty is None:
        return
    found = {"subgradient": run.penalty.subgradient(state.parameters)}
    if run.method.penalties == "prox":
        oracle = _oracle(run.code, run.weights, run.given[2], None)
        rate, ahead = run.method.learning_rate, run.method.ahead(state.parameters, state.memory)
        moved = plus(ahead, -rate, oracle.loss_gradient(ahead))
        found = {"proximal map": run.penalty.prox(moved, rate)} if finite(moved) else {}
    for name, value in found.items():
        if any(np.isnan(np.asarray(part)).any() for part in jax.tree.leaves(value)):
            raise ValueError(
                f"{run.who}: the {name} of the penalty is nan at step {state.taken}, where the "
                "parameters are finite; check the penalty there"
            )


class _Penalty:
    """A weighted sum of regularizers whose weights are traced."""

    def __init__(self, weights: Sequence[Any], regularizers: tuple[Any, ...]) -> None:
        self.terms = list(zip(weights, regularizers, strict=True))

    def subgradient(self, parameters: Any) -> Any:
        (weight, first), *rest = self.terms
        import jax

        total = jax.tree.map(lambda part: weight * part, first.subgradient(parameters))
        for weight, regularizer in rest:
            total = plus(total, weight, regularizer.subgradient(parameters))
        return total

    def prox(self, parameters: Any, length: Any) -> Any:
        ((weight, regularizer),) = self.terms
        return regularizer.prox(parameters, length * weight)


def _oracle(code: Code, weights: Sequence[Any], data: Any, share: Any) -> Oracle:
    penalty = _Penalty(weights, code.penalty) if code.penalty else None
    return Oracle(code.objective, data, share, penalty)


@functools.lru_cache(maxsize=64)
def _functions(code: Code) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """(weights, numbers, data, parameters) -> memory; and the steps from one to another."""
    import jax

    def memory(weights: Any, numbers: Any, data: Any, parameters: Any) -> Any:
        method = code.method.with_numbers(numbers)
        return method.memory(_oracle(code, weights, data, None), parameters)

    def one(weights: Any, numbers: Any, data: Any, k: Any, carried: Any) -> Any:
        parameters, held, draws = carried
        method, share = code.method.with_numbers(numbers), None
        if code.batches.size is not None:
            rows, share, draws = code.batches.draw(k, draws)
            data = per_sample(lambda a: a.at[rows].get(mode="promise_in_bounds"), data)
        moved, held = method.step(_oracle(code, weights, data, share), parameters, held, k)
        if code.method.weight_decay:
            moved = plus(moved, -method.rate(parameters) * method.weight_decay, parameters)
        return moved, held, draws

    def loop(weights: Any, numbers: Any, data: Any, begin: Any, end: Any, *carried: Any) -> Any:
        return jax.lax.fori_loop(
            begin, end, lambda k, now: one(weights, numbers, data, k, now), carried
        )

    single = jax.jit(one)

    def walk(weights: Any, numbers: Any, data: Any, begin: int, end: int, *carried: Any) -> Any:
        for k in range(begin, end):
            carried = single(weights, numbers, data, k, carried)
        return carried

    # on processors XLA makes convolutions inside a loop 15 times slower than outside
    return jax.jit(memory), (walk if code.outside else jax.jit(loop))
