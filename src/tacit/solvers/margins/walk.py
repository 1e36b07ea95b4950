"""The margin problem of Q (or R) followed in the scale, its active set corrected at every step."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable

import numpy as np

from tacit.arguments import Array
from tacit.regularizers.pair import SignedPair
from tacit.solvers.continuation import EXACT, FACTORIZATIONS, KERNEL, Failed, Walker, settled_level
from tacit.solvers.dual_state import DualState, Hyperbolic, PowerLaw, begin
from tacit.solvers.margins.active_set import Equations, Index, Iterate, negative, settle
from tacit.solvers.margins.least import least_squares
from tacit.solvers.margins.rows import Rows

NEARLY = 1e-11  # relative residual that must do where weights differ by many decades


@dataclasses.dataclass(frozen=True)
class Standing(Iterate):
    """An iterate with the state that resolves A^T nu beyond what nu itself can tell."""

    state: DualState


class AtScale(Equations):
    """Q at one scale m = log mu on changing sets of rows, by warm Newton steps."""

    def __init__(self, pair: SignedPair, rows: Rows, m: float):
        self.pair, self.rows, self.m = pair, rows, m
        self.walker: Walker | None = None  # of the set solved last
        self.factorizations = 0

    def on(self, active: Index, at: Iterate) -> Standing:
        assert isinstance(at, Standing)
        state = at.state.rebased(at.nu[active])
        rows = self.rows
        walker = Walker.resumed(self.pair, rows.A[active], rows.c[active], self.m, state)
        self.factorizations += solved(walker, self.m, state)
        self.walker = walker
        return standing(walker, active, len(rows.c))

    def between(self, start: Iterate, end: Iterate, part: float) -> Standing:
        assert isinstance(start, Standing)
        assert isinstance(end, Standing)
        nu = (1 - part) * start.nu + part * end.nu
        return Standing(nu, start.b, mixed(start.state, end.state, part))


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


def mixed(start: DualState, end: DualState, part: float) -> DualState:
    """The state between two: a convex combination, in which no slack cancels."""
    names: tuple[str, ...] = ("s",)
    if isinstance(start, PowerLaw):
        names = ("s", "above", "below")
    assert isinstance(start, Hyperbolic | PowerLaw)
    parts = {n: (1 - part) * getattr(start, n) + part * getattr(end, n) for n in names}
    return dataclasses.replace(start, **parts)


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
        """The first solution, at `top`, from the kernel regime."""
        shrink = np.exp(-top)
        nu = self.nu0 * shrink
        state = begin(self.pair, self.rows.A.shape[1], nu[self.active], self.s0 * shrink)
        return self.settled(top, Standing(nu, self.b0, state))

    def try_step(self, m: float) -> int:
        """Hessians spent on a step towards m, which may fail and shorten the next one."""
        try:
            return self.step(self.next_stop(m))
        except Failed as reason:
            self.stride /= 3
            if self.stride < 1e-3:
                raise Failed(f"the step in log mu shrank to nothing; {reason}") from None
            return 12

    def next_stop(self, m: float) -> float:
        gap = self.m - m
        return m if gap <= 1.3 * self.stride else self.m - min(self.stride, gap / 2)

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
        assert self.walker is not None
        walker, state = copy.copy(self.walker), self.walker.state
        assert state is not None
        dnu = walker.predict(self.m - m)
        ds = dnu @ walker.X
        room = state.room(ds)
        factor = 1.0 if room > 1 else 0.9 * room
        return walker, solved(walker, m, state.moved(factor * dnu, factor * ds))

    def optimal(self, goal: Standing) -> bool:
        """Whether no dual weight is negative and no margin is missed."""
        if negative(goal.nu).any():
            return False
        lacking = self.rows.lacking(goal.b)
        lacking[self.active] = 0.0
        return not lacking.any()

    def settled(self, m: float, start: Standing, goal: Standing | None = None) -> int:
        """Moves to m by exchanging rows; the Hessians built."""
        equations = AtScale(self.pair, self.rows, m)
        active, here, _ = settle(equations, self.active, start, goal)
        assert isinstance(here, Standing)
        assert equations.walker is not None
        self.m, self.active, self.here, self.walker = m, active, here, equations.walker
        return equations.factorizations
