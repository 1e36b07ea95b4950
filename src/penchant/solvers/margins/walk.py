"""The margin problem of Q (or R) followed in the scale, with the changes of its active set.

How it works. At a large scale Q is a weighted l2 norm, whose margin problem needs no continuation.
From there m = log mu falls in steps, as in `continuation`: the active rows are equations, tangents
predict and Newton's method corrects. After each step the conditions of docs/theory section 12
are checked. If a dual weight has become negative or a margin is missed, the active set of the last
step no longer serves: `settle` exchanges rows at the new scale, or `exchange`, where it is set,
finds the scale of every change one by one (`changes.Tracker`), as the path of `max_margin_path`
needs them.

Why this way. Each scale could be solved alone by `settle`, but from no active row it solves at
least one system for every support vector. Along the path the active set changes by one row at a
time, and a step that needs at most two Hessians doubles the next one.

Pitfalls. Between two iterates of an exchange nu is a mixture, and so must be the slacks of a deep
net, which nu no longer resolves: a state is carried along with every iterate and mixed with it. The
rows of the support vectors may be a poor basis while the data as a whole are not, so a failed step
is tried once more in another basis, and then to a residual of 1e-11. A tilt is added once, at the
first scale where the tilted minimiser alone does not meet all margins, and in parts.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable

import numpy as np

from penchant.arguments import Array
from penchant.limits import Turns
from penchant.regularizers.q import SignedPair
from penchant.solvers.continuation import (
    EXACT,
    FACTORIZATIONS,
    KERNEL,
    Continuation,
    Failed,
    settled_level,
)
from penchant.solvers.dual_state import DualState, begin, mixed, tilt_in_parts, with_tilt
from penchant.solvers.margins.active_set import (
    Index,
    Iterate,
    least_squares,
    negative,
    settle,
)
from penchant.solvers.margins.rows import PLAIN, Rows

NEARLY = 1e-11  # relative residual that must do where weights differ by many decades


@dataclasses.dataclass(frozen=True)
class WalkState(Iterate):
    """An iterate with the state that resolves A^T nu beyond the digits of nu."""

    state: DualState


def solved(continuation: Continuation, m: float, guess: DualState) -> int:
    """Hessians built on the way to m, in a better basis where the rows are a poor one."""
    try:
        return continuation.newton(m, guess, EXACT)
    except Failed:
        if continuation.back is None:
            continuation.state = guess
            continuation.rebase()
            guess = continuation.state
    try:
        return 12 + continuation.newton(m, guess, EXACT)
    except Failed:
        return 24 + continuation.newton(m, guess, NEARLY)


def walk_state(continuation: Continuation, active: Index, count: int) -> WalkState:
    """The present state, with its dual vector spread over all rows."""
    assert continuation.state is not None
    nu = np.zeros(count)
    nu[active] = continuation.original(continuation.state.nu)
    b, _ = continuation.state.evaluate(continuation.m)
    return WalkState(nu, b, continuation.state)


class MarginWalk:
    """Walks down in m = log mu; `active`, `here` and `m` say where it stands.

    `exchange`, where it is set, is called instead of `settled` when the active set of the last
    step no longer serves: with the walk, the m that was aimed at and the continuation there. It
    moves the walk some way towards m and returns the number of Hessians that took.
    """

    exchange: Callable[[MarginWalk, float, Continuation], int] | None = None
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
        self.here: WalkState | None = None
        self.continuation: Continuation | None = None
        self.stride = 1.0
        self.upright = pair.tilt is not None  # until the tilt is added, at the first scale

    def at(self, m: float) -> tuple[Array, Array, int]:
        """(b, nu, factorizations) at m, which must not lie above the last one requested."""
        if self.pair.tilt is None and self.reach - m < np.log(KERNEL):
            return self.b0, self.nu0 * np.exp(-m), 1
        m = max(m, settled_level(self.pair))
        if self.upright and self.free(m) is not None:
            raise Failed("the tilt alone has all margins >= 1 at this scale; take a smaller one")
        spent = 0 if self.here is not None else self.start(max(m, self.m))
        if self.upright and self.free(self.m) is None:
            spent += self.add_whole_tilt()
        turns = Turns(1_000_000, "the walk in log mu")
        while self.m > m:
            turns.take()
            spent += self.try_step(m)
            if spent > FACTORIZATIONS:
                raise Failed(f"spent {spent} factorizations; start closer or check the data")
        if self.upright:
            spent += self.add_whole_tilt()
        assert self.here is not None
        return self.here.b, self.here.nu, spent

    @property
    def mend(self) -> Callable[[Array], Array] | None:
        """The change of beta for what the given rows lack, by the last Hessian; None without one.

        The rows that are not active count as met.
        """
        continuation, active = self.continuation, self.active
        if continuation is None or continuation.latest is None or continuation.back is not None:
            return None
        hessian, factors = continuation.latest, self.rows.factors[active]
        if len(active) != len(hessian.X) or hessian.spread < PLAIN:
            return None
        return lambda missing: (
            hessian.slope * (hessian.solve(factors * missing[active]) @ hessian.X)
        )

    def free(self, m: float) -> Array | None:
        """The minimiser at m without any row, where its margins are large enough."""
        with np.errstate(all="ignore"):  # outside the domain of the dual b may be anything
            pair = self.pair.in_units(self.pair.level - m)
            b = pair.primal_of(np.zeros(self.rows.A.shape[1]))
            reached = bool(np.isfinite(b).all()) and not self.rows.lacking(b).any()
        return b if reached else None

    def add_whole_tilt(self) -> int:
        """Adds the tilt at the present m; the Hessians built."""
        assert self.pair.tilt is not None
        self.upright = False
        return tilt_in_parts(self.pair.tilt, self.add_tilt)

    def add_tilt(self, tilt: Array) -> int:
        """Adds a part of the tilt; the Hessians built."""
        assert self.here is not None
        here = self.here
        state = with_tilt(here.state, tilt, np.zeros_like(here.state.nu), self.rows.A[self.active])
        return self.settled(self.m, WalkState(here.nu, here.b, state))

    def start(self, top: float) -> int:
        shrink = np.exp(-top)
        nu = self.nu0 * shrink
        state = begin(self.pair, self.rows.A.shape[1], nu[self.active], self.s0 * shrink)
        return self.settled(top, WalkState(nu, self.b0, state))

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
        length, continuation, built = self.m - m, *self.predicted(m)
        goal = walk_state(continuation, self.active, len(self.rows.c))
        if self.optimal(goal):
            self.m, self.here, self.continuation = m, goal, continuation
        elif self.exchange is not None:
            return built + self.exchange(self, m, continuation)
        else:
            built += self.settled(m, self.here, goal)
        if built <= 2 and length > 0.7 * self.stride:
            self.stride = min(2 * self.stride, continuation.longest, self.longest)
        elif built > 12:
            self.stride = 0.7 * length
        return built

    def predicted(self, m: float) -> tuple[Continuation, int]:
        """The continuation at m with the active rows as equations, and its Hessians."""
        continuation = copy.copy(self.continuation)
        assert continuation is not None
        return continuation, solved(continuation, m, continuation.predicted(self.m - m))

    def optimal(self, goal: WalkState) -> bool:
        """Whether no dual weight is negative and no margin is missed."""
        if negative(goal.nu).any():
            return False
        lacking = self.rows.lacking(goal.b)
        lacking[self.active] = 0.0
        return not lacking.any()

    def settled(self, m: float, start: WalkState, goal: WalkState | None = None) -> int:
        """Moves to m by exchanging rows; the Hessians built."""
        used: list[tuple[Continuation, int]] = []

        def on(active: Index, at: WalkState) -> WalkState:
            used.append(self.on_rows(active, m, at))
            return walk_state(used[-1][0], active, len(self.rows.c))

        def between(at: WalkState, end: WalkState, part: float) -> WalkState:
            nu = (1 - part) * at.nu + part * end.nu
            return WalkState(nu, at.b, mixed(at.state, end.state, part))

        self.active, self.here, _ = settle(self.rows, on, self.active, start, goal, between)
        self.m, self.continuation = m, used[-1][0]
        return sum(built for _, built in used)

    def on_rows(self, active: Index, m: float, here: WalkState) -> tuple[Continuation, int]:
        """A continuation at m with these rows as equations, from `here`, and its Hessians."""
        state = dataclasses.replace(here.state, nu=here.nu[active])
        continuation = Continuation.resumed(
            self.pair, self.rows.A[active], self.rows.c[active], m, state
        )
        return continuation, solved(continuation, m, state)
