"""Runs the odd problems one by one and files each under its outcome."""

from __future__ import annotations

import collections
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import judge
import odd_calls
import oracle
from odd_calls import Call
from odd_problems import FIRST, Problem, problem, rank
from penchant import NumericalError, Q, interpolate, max_margin

OUTCOMES = ("solved and right", "refused", "approximate", "stalled", "hung", "wrong", "crashed")
FAULTS = ("hung", "wrong", "crashed")  # none is allowed
SECONDS = 20.0  # of processor time for one call
CALLS = 0.45  # share of other solvers than interpolate and max_margin in all streams but the first
ODD = 30  # of these random numbers: which problems they are


class TimeSpent(Exception):
    """A call that took longer than its bound."""


@contextmanager
def bounded(seconds: float) -> Iterator[None]:
    """Ends a call after some seconds of processor time."""

    def end(*_: object) -> None:
        raise TimeSpent(f"more than {seconds:g} s")

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def drawn(number: int, stream: int = FIRST) -> Problem | Call:
    """The problem or call of this number in a stream; the first stream has problems alone."""
    rng = np.random.default_rng([ODD, stream, number])
    if stream == FIRST or rng.random() >= CALLS:
        return problem(number, stream)
    return odd_calls.draw(rng, number, stream)


def outcome(case: Problem | Call) -> tuple[str, str]:
    """(one of OUTCOMES, why) for one problem or call."""
    try:
        with bounded(SECONDS), warnings.catch_warnings():
            warnings.simplefilter("error")
            answer = case.run() if isinstance(case, Call) else solved(case)
    except TimeSpent as reason:
        return "hung", str(reason)
    except (NumericalError, ValueError) as reason:
        return failure_of_call(case, reason) if isinstance(case, Call) else failure(case, reason)
    except Exception as reason:  # the table counts them
        return "crashed", f"{type(reason).__name__}: {reason}"
    return case.verdict(answer) if isinstance(case, Call) else judged(case, answer)


def solved(case: Problem) -> Any:
    solver = max_margin if case.verb == "max_margin" else interpolate
    return solver(case.X, case.y, case.regularizer)


def judged(case: Problem, solution: Any) -> tuple[str, str]:
    if case.solvable is False:
        return "wrong", "solved, but nothing fits these targets"
    text = judge.wrong(case, solution)
    return ("wrong", text) if text else ("solved and right", "")


def failure_of_call(case: Call, reason: Exception) -> tuple[str, str]:
    """A refusal is right where the judge knows why; other failures are stalls that say so."""
    if not str(reason).startswith(case.verb.split()[0]):
        return "crashed", f"{type(reason).__name__}: {reason}"
    if isinstance(reason, NumericalError):
        kind = reason.outcome.kind.value
        return ("approximate" if kind == "approximate" else "stalled"), str(reason)
    return ("refused" if case.unfit() else "wrong"), str(reason)


def failure(case: Problem, reason: Exception) -> tuple[str, str]:
    if isinstance(reason, NumericalError):
        return stalled_or_refused(case, reason)
    return refused(case, str(reason))


def stalled_or_refused(case: Problem, reason: NumericalError) -> tuple[str, str]:
    kind = reason.outcome.kind.value
    if kind == "infeasible":
        return refused(case, str(reason))
    if kind == "out of range":
        solver = max_margin if case.verb == "max_margin" else interpolate
        return ("refused" if judge.out_of_range(case, solver) else "wrong"), str(reason)
    return ("approximate" if kind == "approximate" else "stalled"), str(reason)


def refused(case: Problem, reason: str) -> tuple[str, str]:
    """A refusal is right where there is nothing to find, and says who speaks."""
    if not reason.startswith(case.verb):
        return "crashed", f"ValueError: {reason}"
    solvable = case.solvable
    if case.verb == "max_margin" and solvable is None:
        solvable = judge.separable(case)
    return ("wrong" if solvable else "refused"), reason


def table(
    seeds: range, stream: int = FIRST
) -> tuple[collections.Counter[tuple[str, str]], list[tuple[str, str, str]]]:
    """Counts by (regularizer, outcome), and the problems that were not solved and right."""
    counts: collections.Counter[tuple[str, str]] = collections.Counter()
    odd = []
    for seed in seeds:
        case = drawn(seed, stream)
        try:
            found, why = outcome(case)
        except Exception as reason:  # one bad case must not end the run
            found, why = "crashed", f"the judge: {type(reason).__name__}: {reason}"
        counts[name_of(case), found] += 1
        if found not in ("solved and right", "refused"):
            odd.append((found, str(case), why))
    return counts, odd


def farthest(seeds: range) -> tuple[int, float]:
    """(number compared, largest distance) of solutions of Q from an independent solver.

    Data that are nearly dependent or far from unit scale are left out: there even the exact
    minimiser moves by more than rounding.
    """
    distances = []
    for seed in seeds:
        case = problem(seed)
        plain = case.kind.endswith(("plain, unit", "float32, unit"))
        if not (plain and isinstance(case.regularizer, Q) and "nearly" not in case.kind):
            continue
        X, y = np.asarray(case.X, dtype=float), case.y
        if rank(X) < len(X) or not y.any():
            continue
        q = case.regularizer
        exact = oracle.solve(X, y, q.depth, q.log_alpha, q.shape).beta
        beta = interpolate(X, y, q).beta
        distances.append(float(np.abs(beta - exact).max() / np.abs(exact).max()))
    return len(distances), max(distances, default=0.0)


def name_of(case: Problem | Call) -> str:
    """What the table groups by: the verb and the regularizer without its numbers."""
    if isinstance(case, Call):
        return case.verb
    name = type(case.regularizer).__name__
    return f"{case.verb} {'derive' if name == 'Derived' else name}"
