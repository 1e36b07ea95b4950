"""Runs the odd problems one by one and files each under its outcome."""

from __future__ import annotations

import collections
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

import judge
import oracle
from odd_problems import FIRST, Problem, problem, rank
from tacit import Q, interpolate, max_margin
from tacit.records import NumericalError

OUTCOMES = ("solved and right", "refused", "approximate", "stalled", "wrong", "crashed")
SECONDS = 10.0  # of processor time for one call


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


def outcome(case: Problem) -> tuple[str, str]:
    """(one of OUTCOMES, why) for one problem."""
    solver = max_margin if case.verb == "max_margin" else interpolate
    try:
        with bounded(SECONDS), warnings.catch_warnings():
            warnings.simplefilter("error")
            solution = solver(case.X, case.y, case.regularizer)
    except NumericalError as reason:
        return stalled_or_refused(case, reason)
    except TimeSpent as reason:
        return "stalled", str(reason)
    except ValueError as reason:
        return refused(case, str(reason))
    except Exception as reason:  # the table counts them
        return "crashed", f"{type(reason).__name__}: {reason}"
    if case.solvable is False:
        return "wrong", "solved, but nothing fits these targets"
    text = judge.wrong(case, solution)
    return ("wrong", text) if text else ("solved and right", "")


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
        case = problem(seed, stream)
        found, why = outcome(case)
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


def name_of(case: Problem) -> str:
    """What the table groups by: the verb and the regularizer without its numbers."""
    name = type(case.regularizer).__name__
    return f"{case.verb} {'derive' if name == 'Derived' else name}"
