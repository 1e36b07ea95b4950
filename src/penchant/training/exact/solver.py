"""SciPy's solvers step by step: failures, dense output, and where a function meets a goal."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from penchant.arguments import Array

SHORT = "its steps became too small; raise rtol"


class GaveUp(Exception):
    """The integrator cannot continue; the message says why."""

    what = "the integrator gave up"


class LostRank(GaveUp):
    """A direction that a step would bring back, by its error, has fallen to rounding."""

    what = "the flow loses a rank"


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def backward(
    velocity: Callable[[float, Array], Array], begin: float, state: Array, end: float, **given: Any
) -> Any:
    """SciPy's BDF on dense Jacobians, with its linear systems solved by LAPACK directly.

    For few variables the checks of `lu_solve` take ten times as long as the solution. Only the one
    that matters is kept: `try_step` expects a ValueError where a trial step is not finite.
    """
    from scipy.integrate import BDF
    from scipy.linalg.lapack import dgetrs

    def solve(factors: tuple[Array, Array], right: Array) -> Array:
        if not np.isfinite(right).all():
            raise ValueError("the right side of a Newton step is not finite")
        return np.asarray(dgetrs(*factors, right, overwrite_b=True)[0])

    solver = BDF(velocity, begin, state, end, **given)
    solver.solve_lu = solve
    return solver


def try_step(solver: Any) -> bool:
    """One step of a SciPy solver; False if it failed, or if a trial step overflowed."""
    try:
        solver.step()
    except ValueError:
        return False
    return solver.status != "failed" and bool(np.isfinite(solver.y).all())


def step(solver: Any) -> None:
    if not try_step(solver):
        raise GaveUp(SHORT)


def state_at(solver: Any, t: float) -> Array:
    """The state at a time in the last step; a solver that has not stepped knows only its own."""
    return np.array(solver.y if t == solver.t else solver.dense_output()(t))


def inside(
    solver: Any,
    quantity: Callable[[Array], float],
    goal: float,
    ends: tuple[float, float],
    near: float,
) -> Array:
    """The state in the last step at which `quantity` equals `goal`, by secants and bisection."""
    curve, low, high = solver.dense_output(), float(solver.t_old), float(solver.t)
    first, last = ends[0] - goal, ends[1] - goal
    for k in range(60):
        share = first / (first - last) if near > 0 and k < 8 and first < 0 < last else 0.5
        middle = low + min(max(share, 0.001), 0.999) * (high - low)
        state = curve(middle)
        gap = quantity(state) - goal
        if abs(gap) <= near * max(1.0, abs(goal)):
            return np.asarray(state)
        if not low < middle < high:
            break
        if gap > 0:
            high, last = middle, gap
        else:
            low, first = middle, gap
    return np.asarray(curve(high))


def crossing(gap: Callable[[float], float], low: float, high: float) -> float:
    """Where `gap` falls through zero between two times, by bisection."""
    if gap(low) <= 0:
        return low
    for _ in range(60):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (low, middle) if gap(middle) <= 0 else (middle, high)
    return high


def rounding(terms: int) -> float:
    """What rounding leaves of a sum of so many terms, over the sum of their sizes."""
    return 4 * np.finfo(float).eps * math.sqrt(terms)


def tolerance(rtol: float, residual: Array, y: Array) -> float:
    """`rtol`, or what rounding leaves of it once the residual is small.

    The velocity of a dual is the residual, known to eps |y|. Where nothing damps the dual, a
    tolerance below eps |y| / |residual| would resolve noise with ever smaller steps.
    """
    noise = np.finfo(float).eps * float(np.linalg.norm(y))
    return max(rtol, noise / max(float(np.linalg.norm(residual)), noise))
