"""Following a flow under weight decay: records over training time, and how it ended."""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.records import Kind, Outcome
from tacit.training.exact.decay.dual import LAZY, DecayDual, MarginDecay, SquareDecay
from tacit.training.exact.decay.row_products import RowProducts
from tacit.training.exact.follow import quiet, try_step
from tacit.training.exact.times import Times
from tacit.training.task import Progress

LEAST = 1e-10  # a slack 1 - |s| that still has half the digits of float64
STRIDE = 5.0  # of the clock in one step: a longer one extrapolates beyond float64


def follow(
    dual: DecayDual,
    times: Times,
    rtol: float,
    max_steps: int,
    progress: Progress | None = None,
) -> tuple[list[Array], Outcome]:
    """x at the start and at every time reached, and the outcome."""
    found = [np.zeros(len(dual.rows))]
    taus = [dual.tau(log_t) for log_t in times.log]
    begin, x = 0.0, found[0]
    if isinstance(dual, SquareDecay):
        begin = _lazy_until(dual)
        found += [dual.lazy(tau) for tau in taus if tau < begin]
        x = dual.lazy(begin) if begin > 0 else x
    due = [tau for tau in taus if tau >= begin]
    with quiet():
        outcome = _integrate(dual, begin, x, due, rtol, max_steps, progress, found)
    return found, outcome


def _lazy_until(dual: SquareDecay) -> float:
    """The clock up to which the kernel's closed form is exact to rounding; 0 if never."""
    law = dual.law
    excess = law.log_amplitude(0.0) - LAZY
    return dual.tau(math.log(excess / (law.depth * law.rate))) if excess > 0 else 0.0


def _integrate(
    dual: DecayDual,
    begin: float,
    x: Array,
    due: list[float],
    rtol: float,
    max_steps: int,
    progress: Progress | None,
    found: list[Array],
) -> Outcome:
    if not due:
        return Outcome(Kind.SOLVED, "followed to the end of the time asked for")
    end = due[-1]
    rtol = max(rtol / dual.law.sensitivity(dual.time(end)), 1e-12)
    dual.products = RowProducts(dual.rows, rtol)
    solvers = _solvers(dual, begin, x, end, rtol)
    solver = next(solvers)
    place, shown = 0, 0.0
    for _ in range(max_steps):
        while not try_step(solver):
            successor = solvers.send(solver)
            if successor is None:
                return _gave_up(dual, solver.t)
            solver = successor
        inside = solver.dense_output()
        while place < len(due) and due[place] <= solver.t:
            found.append(inside(due[place]))
            place += 1
        if place < len(due) and dual.slack(solver.t, solver.y) < LEAST:
            return _gave_up(dual, solver.t)
        if place == len(due):
            return Outcome(Kind.SOLVED, f"followed to t={dual.time(end):.6g}")
        if progress is not None and (done := dual.time(solver.t) / dual.time(end)) >= shown + 0.02:
            shown = done
            progress(min(done, 1.0), f"t={dual.time(solver.t):.4g}")
    sentence = f"stopped at t={dual.time(solver.t):.4g} by {max_steps} steps; raise max_steps"
    return Outcome(Kind.BUDGET_SPENT, sentence)


def _solvers(
    dual: DecayDual, begin: float, x: Array, end: float, rtol: float
) -> Generator[Any, Any, None]:
    """BDF, the cheapest; where it fails Radau goes on from there, and None says that it failed."""
    from scipy.integrate import BDF, Radau

    settings: Any = {"jac": dual.jacobian, "max_step": STRIDE}
    settings |= {"rtol": rtol, "atol": rtol * _size(dual)}
    failed = yield BDF(dual.velocity, begin, x, end, first_step=min(1e-3, end - begin), **settings)
    failed = yield Radau(dual.velocity, failed.t, failed.y, end, **settings)
    yield None


def _size(dual: DecayDual) -> float:
    """A small entry of x: what a tenth of a unit of time R does to it."""
    speed = np.abs(dual.velocity(0.0, np.zeros(len(dual.rows))))
    return min(0.01 * float(speed.max()), 0.01) or 1.0


def _gave_up(dual: DecayDual, tau: float) -> Outcome:
    why = "the integrator cannot go on at this accuracy; raise rtol"
    if dual.law.depth > 2:
        why = "1 - |s| is below what float64 resolves at this depth; ParameterFlow may go further"
    return Outcome(Kind.STALLED, f"gave up at t={dual.time(tau):.4g}: {why}")


def recorded(dual: DecayDual, times: Times, duals: list[Array]) -> dict[str, Array]:
    """What the flow knows at the start and the recorded times, ready to be labelled."""
    names = "predictor", "log_slopes", "parameter_norm", "turn"
    rows: dict[str, list[Any]] = {name: [] for name in names}
    law = dual.law
    with np.errstate(over="ignore", under="ignore"):
        t, log_t = np.insert(times.t, 0, 0.0), np.insert(times.log, 0, -math.inf)
        t, log_t = t[: len(duals)], log_t[: len(duals)]  # the flow may have ended early
        for time, pull in zip(t, dual.pull(np.array(duals)), strict=True):
            now = law.at(float(time))
            rows["predictor"].append(law.predictor(now, pull))
            rows["log_slopes"].append(law.log_slopes(now, pull) + np.zeros_like(pull))
            norm, turn = _norm_and_turn(dual, float(time), law.log_growth(now, pull))
            rows["parameter_norm"].append(norm)
            rows["turn"].append(turn)
    found = {name: np.array(values) for name, values in rows.items()}
    found |= {"t": t, "log_t": log_t, "dual": _dual(dual, duals)}
    if isinstance(dual, MarginDecay):
        found["margins"] = found["predictor"] @ dual.rows.T
    return found


def _dual(dual: DecayDual, duals: list[Array]) -> Array:
    table = np.array(duals)
    return table @ dual.basis.T if isinstance(dual, SquareDecay) else table


def _norm_and_turn(dual: DecayDual, t: float, growth: Array) -> tuple[float, float]:
    """|theta| and the angle in degrees between theta and its start, however small.

    theta is the decayed start plus expm1(growth) of it; the part of that across the start turns.
    """
    law = dual.law
    log_start = np.broadcast_to(law.log_start, growth.shape)
    top, most = float(log_start.max()), max(float(growth.max()), 0.0)
    start, unit = np.exp(log_start - top), math.exp(-most)
    moved = start * (np.expm1(growth) if most < 1 else np.exp(growth - most) - unit)
    unit = 1.0 if most < 1 else unit
    most = 0.0 if most < 1 else most
    size = float(np.linalg.norm(start))
    along = float((moved * start).sum()) / size**2
    across = float(np.linalg.norm(moved - along * start))
    ahead = (unit + along) * size
    norm = float(np.exp(top - law.rate * t + most) * math.hypot(across, ahead))
    return norm, math.degrees(math.atan2(across, ahead))
