"""The margin problem of Q (or R) followed in the scale, with the changes of its active set."""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tacit.arguments import Array
from tacit.regularizers.q import SignedPair
from tacit.solvers.continuation import EXACT, FACTORIZATIONS, KERNEL, Failed, Walker, settled_level
from tacit.solvers.dual_state import DualState, begin, mixed, shifted
from tacit.solvers.margins.active_set import (
    Index,
    Iterate,
    dependence,
    least_squares,
    negative,
    settle,
)
from tacit.solvers.margins.rows import Rows

NEARLY = 1e-11  # relative residual that must do where weights differ by many decades
SAME = 1e-12  # a root is known to this in log mu
BESIDE = 1e-7  # how far below a tie in log mu the new active set is looked for
ROOT_STEPS = 50


@dataclasses.dataclass(frozen=True)
class Standing(Iterate):
    """An iterate with the state that resolves A^T nu beyond what nu itself can tell."""

    state: DualState


def solved(walker: Walker, m: float, guess: DualState) -> int:
    """Hessians built to bring the walker to m; in a better basis where the rows are a poor one."""
    try:
        return walker.newton(m, guess, EXACT)
    except Failed:
        if walker.back is None:
            walker.state = guess
            walker.rebase()
            guess = walker.state
    try:
        return 12 + walker.newton(m, guess, EXACT)
    except Failed:
        return 24 + walker.newton(m, guess, NEARLY)


def standing(walker: Walker, active: Index, count: int) -> Standing:
    """Where the walker stands, with its dual vector spread over all rows."""
    assert walker.state is not None
    nu = np.zeros(count)
    nu[active] = walker.original(walker.state.nu)
    b, _ = walker.state.evaluate(walker.m)
    return Standing(nu, b, walker.state)


class MarginWalk:
    """Walks down in m = log mu; `active`, `here` and `m` say where it stands.

    `exchange`, where it is set, is called instead of `settled` when the active set of the last
    step no longer serves: with the walk, the m that was aimed at and the walker there. It moves
    the walk some way towards m and returns the number of Hessians that took.
    """

    exchange: Callable[[MarginWalk, float, Walker], int] | None = None
    longest = np.inf  # step in m

    def __init__(self, pair: SignedPair, rows: Rows):
        self.pair, self.rows = pair, rows
        weight = np.broadcast_to(np.exp(pair.log_weight) * pair.kappa, rows.A.shape[1])
        self.linear = weight * (2.0 if np.isinf(pair.power) else 2 * pair.power)  # b'(0) / mu
        # with mu -> infinity Q is a weighted l2 norm
        self.active, kernel, _ = least_squares(rows, self.linear)
        self.nu0, self.b0 = kernel.nu, kernel.b  # nu0 times e^-m
        self.s0 = self.nu0 @ rows.A
        self.reach = float(np.log(np.abs(pair.kappa * self.s0).max()))  # log max|s| + m
        self.m = self.reach - float(np.log(0.3))
        self.here: Standing | None = None
        self.walker: Walker | None = None
        self.stride = 1.0

    def at(self, m: float) -> tuple[Array, Array, int]:
        """(b, nu, factorizations) at m, which must not lie above the last one asked for."""
        if self.reach - m < np.log(KERNEL):
            return self.b0, self.nu0 * np.exp(-m), 1
        m = max(m, settled_level(self.pair))
        spent = 0 if self.here is not None else self.start(max(m, self.m))
        while self.m > m:
            spent += self.try_step(m)
            if spent > FACTORIZATIONS:
                raise Failed(f"spent {spent} factorizations; start closer or check the data")
        assert self.here is not None
        return self.here.b, self.here.nu, spent

    def start(self, top: float) -> int:
        shrink = np.exp(-top)
        nu = self.nu0 * shrink
        state = begin(self.pair, self.rows.A.shape[1], nu[self.active], self.s0 * shrink)
        return self.settled(top, Standing(nu, self.b0, state))

    def try_step(self, m: float) -> int:
        """Hessians spent on a step towards m, which may fail and shorten the next one."""
        try:
            gap = self.m - m
            near = gap <= 1.3 * self.stride
            return self.step(m if near else self.m - min(self.stride, gap / 2))
        except Failed as reason:
            self.stride /= 3
            if self.stride < 1e-3:
                raise Failed(f"the step in log mu shrank to nothing; {reason}") from None
            return 12

    def step(self, m: float) -> int:
        """Moves to m; the Hessians built."""
        assert self.here is not None
        length, walker, built = self.m - m, *self.predicted(m)
        goal = standing(walker, self.active, len(self.rows.c))
        if self.optimal(goal):
            self.m, self.here, self.walker = m, goal, walker
        elif self.exchange is not None:
            return built + self.exchange(self, m, walker)
        else:
            built += self.settled(m, self.here, goal)
        if built <= 2 and length > 0.7 * self.stride:
            self.stride = min(2 * self.stride, walker.longest, self.longest)
        elif built > 12:
            self.stride = 0.7 * length
        return built

    def predicted(self, m: float) -> tuple[Walker, int]:
        """A walker at the solution for m with the active rows as equations, and its Hessians."""
        walker = copy.copy(self.walker)
        assert walker is not None
        return walker, solved(walker, m, walker.predicted(self.m - m))

    def optimal(self, goal: Standing) -> bool:
        """Whether no dual weight is negative and no margin is missed."""
        if negative(goal.nu).any():
            return False
        lacking = self.rows.lacking(goal.b)
        lacking[self.active] = 0.0
        return not lacking.any()

    def settled(self, m: float, start: Standing, goal: Standing | None = None) -> int:
        """Moves to m by exchanging rows; the Hessians built."""
        used: list[tuple[Walker, int]] = []

        def on(active: Index, at: Standing) -> Standing:
            used.append(self.on_rows(active, m, at))
            return standing(used[-1][0], active, len(self.rows.c))

        def between(at: Standing, end: Standing, part: float) -> Standing:
            nu = (1 - part) * at.nu + part * end.nu
            return Standing(nu, at.b, mixed(at.state, end.state, part))

        self.active, self.here, _ = settle(self.rows, on, self.active, start, goal, between)
        self.m, self.walker = m, used[-1][0]
        return sum(built for _, built in used)

    def on_rows(self, active: Index, m: float, here: Standing) -> tuple[Walker, int]:
        """A walker at m with these rows as equations, from the place `here`, and its Hessians."""
        state = dataclasses.replace(here.state, nu=here.nu[active])
        walker = Walker.resumed(self.pair, self.rows.A[active], self.rows.c[active], m, state)
        return walker, solved(walker, m, state)


@dataclasses.dataclass(frozen=True)
class Slacks:
    """What must stay nonnegative at one m, with its slope in m."""

    walker: Walker
    values: Array
    slopes: Array
    broken: NDArray[np.bool_]  # negative by more than rounding

    @property
    def m(self) -> float:
        return self.walker.m


def slacks(walk: MarginWalk, walker: Walker) -> Slacks:
    """The slacks where a walker stands that takes the active rows of the walk as equations."""
    assert walker.state is not None
    rows, active = walk.rows, walk.active
    b, slope = walker.state.evaluate(walker.m)
    tangent = walker.tangents[-1][1]
    values = rows.A @ b - rows.c
    slopes = rows.A @ (b + slope * (tangent @ walker.X))  # b is proportional to e^m at fixed s
    broken = rows.lacking(b) > 0
    nu = walker.original(walker.state.nu)
    values[active], slopes[active] = nu, walker.original(tangent)
    broken[active] = negative(nu)
    return Slacks(walker, values, slopes, broken)


class Tracker:
    """Takes a walk through the changes of its active set one by one, and keeps their list."""

    def __init__(self) -> None:
        self.changes: list[tuple[float, int, bool]] = []  # (m, sample, enters)

    def __call__(self, walk: MarginWalk, m: float, end: Walker) -> int:
        """Moves the walk to the first change on the way to m and past it; the Hessians built."""
        assert walk.walker is not None
        high, low, built = slacks(walk, walk.walker), slacks(walk, end), 0
        for _ in range(len(high.values)):
            broken = np.flatnonzero(low.broken).tolist()
            sample = min(broken, key=functools.partial(crossing, high, low))
            low, used = root(walk, sample, high, low)
            built += used
            low.broken[sample] = False
            if not low.broken.any():
                return built + self.passed(walk, m, low.walker, sample)
        return built + self.tied(walk, m, low.m)

    def passed(self, walk: MarginWalk, m: float, at: Walker, sample: int) -> int:
        """Exchanges the sample at its root, where that is all it takes."""
        enters = sample not in walk.active
        rows = walk.rows.by_columns
        if enters and dependence(rows[walk.active], rows[sample]) is not None:
            return self.tied(walk, m, at.m)
        here = standing(at, walk.active, len(walk.rows.c))
        here.nu[sample] = 0.0
        before, active = walk.active, np.append(walk.active, sample)
        if not enters:
            active = before[before != sample]
        walker, built = walk.on_rows(active, at.m, here)
        walk.active = active
        after = slacks(walk, walker)
        # going down in m the new slack of the sample must grow, and no other may be broken
        after.broken[sample] = after.slopes[sample] >= 0
        if after.broken.any():
            walk.active = before
            return built + self.tied(walk, m, at.m)
        walk.m, walk.walker = at.m, walker
        walk.here = standing(walker, active, len(walk.rows.c))
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
    found = np.roots(cubic)
    inside = found.real[(np.abs(found.imag) < 1e-9) & (found.real >= 0) & (found.real <= 1)]
    return float(inside.min()) if inside.size else start / (start - end)


def root(walk: MarginWalk, sample: int, high: Slacks, low: Slacks) -> tuple[Slacks, int]:
    """Where the slack of a sample vanishes between high and low, and the Hessians built."""
    built = 0
    for _ in range(ROOT_STEPS):
        part = crossing(high, low, sample)
        m = high.m + part * (low.m - high.m)
        nearest = high if part < 0.5 else low
        walker, used = carried(nearest.walker, m)
        built += used
        here = slacks(walk, walker)
        left = abs(here.values[sample] / (here.slopes[sample] or 1.0))
        if left <= SAME or high.m - low.m <= SAME:
            return here, built
        if here.values[sample] > 0:
            high = here
        else:
            low = here
    raise Failed(f"the scale at which sample {sample} changes was not found")


def carried(walker: Walker, m: float) -> tuple[Walker, int]:
    """A copy of a walker taken to a nearby m along its tangent, and the Hessians built."""
    assert walker.state is not None
    dnu = walker.stretch(m - walker.m) * walker.tangents[-1][1]
    copied = copy.copy(walker)
    return copied, solved(copied, m, shifted(walker.state, dnu, walker.X))
