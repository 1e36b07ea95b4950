"""The changes of the active set of a margin problem that is followed in the scale, one by one."""

from __future__ import annotations

import copy
import dataclasses
import functools

import numpy as np
from numpy.typing import NDArray

from penchant.arguments import Array
from penchant.solvers.continuation import Continuation, Failed
from penchant.solvers.dual_state import shifted
from penchant.solvers.margins.active_set import dependence, negative
from penchant.solvers.margins.walk import MarginWalk, solved, walk_state

SAME = 1e-12  # a root is known to this in log mu
BESIDE = 1e-7  # how far below a tie in log mu the new active set is looked for
ROOT_STEPS = 50


@dataclasses.dataclass(frozen=True)
class Slacks:
    """What must stay nonnegative at one m, with its slope in m."""

    continuation: Continuation
    values: Array
    slopes: Array
    broken: NDArray[np.bool_]  # negative by more than rounding

    @property
    def m(self) -> float:
        return self.continuation.m


def slacks(walk: MarginWalk, continuation: Continuation) -> Slacks:
    """The slacks of a continuation that takes the active rows of the walk as equations."""
    assert continuation.state is not None
    rows, active = walk.rows, walk.active
    b, slope = continuation.state.evaluate(continuation.m)
    tangent = continuation.tangents[-1][1]
    values = rows.A @ b - rows.c
    slopes = rows.A @ (
        b + slope * (tangent @ continuation.X)
    )  # b is proportional to e^m at fixed s
    broken = rows.lacking(b) > 0
    nu = continuation.original(continuation.state.nu)
    values[active], slopes[active] = nu, continuation.original(tangent)
    broken[active] = negative(nu)
    return Slacks(continuation, values, slopes, broken)


class Tracker:
    """Takes a walk through the changes of its active set one by one, and keeps their list."""

    def __init__(self) -> None:
        self.changes: list[tuple[float, int, bool]] = []  # (m, sample, enters)

    def __call__(self, walk: MarginWalk, m: float, end: Continuation) -> int:
        """Moves the walk to the first change on the way to m and past it; the Hessians built."""
        assert walk.continuation is not None
        high, low, built = slacks(walk, walk.continuation), slacks(walk, end), 0
        for _ in range(len(high.values)):
            broken = np.flatnonzero(low.broken).tolist()
            sample = min(broken, key=functools.partial(crossing, high, low))
            low, used = root(walk, sample, high, low)
            built += used
            low.broken[sample] = False
            if not low.broken.any():
                return built + self.passed(walk, m, low.continuation, sample)
        return built + self.tied(walk, m, low.m)

    def passed(self, walk: MarginWalk, m: float, at: Continuation, sample: int) -> int:
        """Exchanges the sample at its root, where that is all it takes."""
        enters = sample not in walk.active
        rows = walk.rows.by_columns
        if enters and dependence(rows[walk.active], rows[sample]) is not None:
            return self.tied(walk, m, at.m)
        here = walk_state(at, walk.active, len(walk.rows.c))
        here.nu[sample] = 0.0
        before, active = walk.active, np.append(walk.active, sample)
        if not enters:
            active = before[before != sample]
        continuation, built = walk.on_rows(active, at.m, here)
        walk.active = active
        after = slacks(walk, continuation)
        # going down in m the new slack of the sample must grow, and no other may be broken
        after.broken[sample] = after.slopes[sample] >= 0
        if after.broken.any():
            walk.active = before
            return built + self.tied(walk, m, at.m)
        walk.m, walk.continuation = at.m, continuation
        walk.here = walk_state(continuation, active, len(walk.rows.c))
        np.maximum(walk.here.nu, 0.0, out=walk.here.nu)
        self.changes.append((at.m, sample, enters))
        return built

    def tied(self, walk: MarginWalk, m: float, where: float) -> int:
        """Where several rows change at once, or rows depend on each other: solves just below."""
        assert walk.here is not None
        before = set(walk.active.tolist())
        built = walk.settled(max(m, min(where, walk.m) - BESIDE), walk.here)
        after = set(walk.active.tolist())
        self.changes += [(where, sample, False) for sample in sorted(before - after)]
        self.changes += [(where, sample, True) for sample in sorted(after - before)]
        return built


def crossing(high: Slacks, low: Slacks, sample: int) -> float:
    """The part of the way from high to low at which the slack of a sample vanishes."""
    way = low.m - high.m
    start, end = float(high.values[sample]), float(low.values[sample])
    if start <= 0 or way == 0:
        return 0.0
    rise, fall = way * float(high.slopes[sample]), way * float(low.slopes[sample])
    cubic = [rise + fall - 2 * (end - start), 3 * (end - start) - 2 * rise - fall, rise, start]
    roots = np.roots(cubic)
    inside = roots.real[(np.abs(roots.imag) < 1e-9) & (roots.real >= 0) & (roots.real <= 1)]
    return float(inside.min()) if inside.size else start / (start - end)


def root(walk: MarginWalk, sample: int, high: Slacks, low: Slacks) -> tuple[Slacks, int]:
    """Where the slack of a sample vanishes between high and low, and the Hessians built."""
    built = 0
    for _ in range(ROOT_STEPS):
        part = crossing(high, low, sample)
        m = high.m + part * (low.m - high.m)
        nearest = high if part < 0.5 else low
        continuation, used = carried(nearest.continuation, m)
        built += used
        here = slacks(walk, continuation)
        left = abs(here.values[sample] / (here.slopes[sample] or 1.0))
        if left <= SAME or high.m - low.m <= SAME:
            return here, built
        if here.values[sample] > 0:
            high = here
        else:
            low = here
    raise Failed(f"the scale at which sample {sample} changes was not found")


def carried(continuation: Continuation, m: float) -> tuple[Continuation, int]:
    """A copy of a continuation taken to a nearby m along its tangent, and the Hessians built."""
    assert continuation.state is not None
    dnu = continuation.stretch(m - continuation.m) * continuation.tangents[-1][1]
    copied = copy.copy(continuation)
    return copied, solved(copied, m, shifted(continuation.state, dnu, continuation.X))
