"""Compiled steps between recorded ones, shared by every method for f = g + beta h."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from tacit.flows.flow import Progress
from tacit.flows.penalized_path import Row, penalty_is_nan, row
from tacit.flows.penalized_task import Data, Job
from tacit.precision import double_precision
from tacit.records import Kind, Outcome


class Update(Protocol):
    """One step of a method, on states whose first entry is theta.

    An update is hashable, so that runs which differ in numbers and data alone compile once.
    """

    def __call__(self, numbers: Mapping[str, Any], data: Data, k: Any, state: Any) -> Any:
        """The state after step k = 0, 1, ..."""

    def of_penalty(self, numbers: Mapping[str, Any], data: Data, state: Any) -> dict[str, Any]:
        """Where the next step asks the penalty and what it answers, by name."""

    def __hash__(self) -> int: ...


def march(
    who: str,
    job: Job,
    update: Update,
    numbers: Mapping[str, float],
    state: Any,
    steps: list[int],
    until: Mapping[str, float] | None,
    progress: Progress | None,
) -> tuple[list[Row], Outcome]:
    """What was recorded at `steps`, the first of which is 0, and how the run ended."""
    with double_precision():
        advance = functools.partial(_compiled(update), numbers, job.data)
        rows = [row(who, job, 0, np.asarray(state[0]))]
        for begin, end in itertools.pairwise(steps):
            moved = advance(begin, end, state)
            theta = np.asarray(moved[0])
            if not np.isfinite(theta).all():
                last, state = _last_good(advance, begin, end, state)
                _blame(who, job, update, numbers, last, state)
                sentence = f"not finite after {last + 1} steps; take a smaller step"
                return rows, Outcome(Kind.DIVERGED, sentence)
            state, found = moved, row(who, job, end, theta)
            if _beyond(found, rows[0]):
                sentence = f"the loss is beyond float64 after {end} steps; take a smaller step"
                return rows, Outcome(Kind.DIVERGED, sentence)
            rows.append(found)
            if progress is not None:
                progress(end / steps[-1], f"step {end} of {steps[-1]}")
            if (met := _met(rows[-1], until)) is not None:
                return rows, Outcome(Kind.SOLVED, f"{met} after {end} steps")
    return rows, _ended(rows[-1], until)


@functools.lru_cache(maxsize=32)
def _compiled(update: Update) -> Callable[..., Any]:
    """A function (numbers, data, first step, last step, state) -> state."""
    import jax

    @jax.jit
    def advance(numbers: Any, data: Any, begin: Any, end: Any, state: Any) -> Any:
        return jax.lax.fori_loop(begin, end, lambda k, s: update(numbers, data, k, s), state)

    return advance


def _last_good(advance: Callable[..., Any], good: int, bad: int, state: Any) -> tuple[int, Any]:
    """The last step with a finite theta and its state, by bisection."""
    while bad - good > 1:
        middle = (good + bad) // 2
        moved = advance(good, middle, state)
        if np.isfinite(np.asarray(moved[0])).all():
            good, state = middle, moved
        else:
            bad = middle
    return good, state


def _blame(
    who: str, job: Job, update: Update, numbers: Mapping[str, float], step: int, state: Any
) -> None:
    """Raises if the penalty made a nan out of finite numbers."""
    import jax
    import jax.numpy as jnp

    state = jax.tree.map(jnp.asarray, state)
    for name, (point, value) in update.of_penalty(numbers, job.data, state).items():
        if np.isfinite(np.asarray(point)).all() and np.isnan(np.asarray(value)).any():
            raise ValueError(penalty_is_nan(who, name, step, np.asarray(point)))


def _beyond(found: Row, first: Row) -> bool:
    """Whether the loss has grown out of float64, though the parameters are still inside."""
    grown = not found.numbers["log_loss"] <= first.numbers["log_loss"]
    return grown and not np.isfinite(found.numbers["loss"])


def _met(last: Row, until: Mapping[str, float] | None) -> str | None:
    """Which level has been reached, if any."""
    for name, level in (until or {}).items():
        if last.numbers[name] <= level:
            return f"{name} {last.numbers[name]:.3g} is at most {level:g}"
    return None


def _ended(last: Row, until: Mapping[str, float] | None) -> Outcome:
    loss = f"loss {last.numbers['loss']:.3g}"
    if not until:
        return Outcome(Kind.SOLVED, f"took all {last.step} steps, {loss}")
    missed = ", ".join(f"{name} {last.numbers[name]:.3g} > {until[name]:g}" for name in until)
    return Outcome(Kind.BUDGET_SPENT, f"{last.step} steps ended at {missed}; raise steps")
