"""b above and below its start, its growth, and a walk along it that resolves more than s does.

How it works. b(s) is the sum of what the gradient lines of its map rise (docs/theory section 10;
`gradient_lines` has the lines, `branch` their sum). A coordinate leaves its start on one of two
branches, above or below. A signed pair has two lines on each, one uphill and one downhill, and far
out one of them makes up all of b: the leader.

A solver that moves s by increments (`homotopy`) needs b where s has no digits left: if s is
confined to a box, b grows without bound while s stays at the edge. So a `LineWalk` stores where
each coordinate stands on its leading line, as a panel and a fraction of it, and an increment of s
moves that position: the digits are those of the arc length, along which nothing blows up. The other
line of a pair is read at the same s.

`growth` decides the unit of s, so that a derived regularizer has the form of Q where it is one: it
follows the coordinate that starts fastest to heights of 1e15 to 1e60 and looks at what s does
there. If its increments vanish or shrink like a power, s ends at the edge of a box, which becomes
1; if b'/b is steady, growth is exponential and its rate becomes 1; otherwise the unit stays.

Pitfalls. A walk may go back through its start, onto the other branch, with what is left of the
step. Past the end of a branch beta is not finite, which the solvers take as a refused step.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from penchant.arguments import Array
from penchant.regularizers.derive.branch import Branch, LinePosition, Summand, reading, shifted
from penchant.regularizers.derive.gradient_lines import PANELS, Index, Orbits
from penchant.regularizers.derive.reparametrization import Reparametrization, length

ABOVE, BELOW = 1.0, -1.0
FAR = (1e15, 1e30, 1e45, 1e60)  # heights, in units of the start, where growth is judged
ENOUGH = 400  # panels double the arc, so a line that is not there by now never gets there


class Growth(NamedTuple):
    """How a branch grows: the unit of s that it requires (0 if none), the summand that leads."""

    unit: float
    leader: int


def branches(
    line: Reparametrization, pairs: Array, signed: bool, most: int = PANELS
) -> dict[float, Branch]:
    """The branches above and below the start, for every row (plus, minus) of starts."""
    points, index = np.unique(np.vstack(np.hsplit(pairs, 2)), axis=0, return_inverse=True)
    plus, minus = index.reshape(2, -1)
    up, down = (Orbits(line, points, way, absolute=not signed, most=most) for way in (ABOVE, BELOW))
    if not signed:
        return {ABOVE: Branch((Summand(up, plus),)), BELOW: Branch((Summand(down, plus),))}
    above = Branch((Summand(up, plus), Summand(down, minus)))
    return {ABOVE: above, BELOW: Branch((Summand(down, plus), Summand(up, minus)))}


def start_predictors(line: Reparametrization, pairs: Array, signed: bool) -> Array:
    """b(0) for every row (plus, minus) of starts."""
    plus, minus = (line.evaluate(half)[0] for half in np.hsplit(pairs, 2))
    return plus - minus if signed else plus


def reachable(line: Reparametrization, pairs: Array, signed: bool) -> tuple[Array, Array]:
    """(lowest, highest) predictor that each row of starts can reach."""
    low, high = np.zeros((2, len(pairs)))
    for first in range(0, len(pairs), 50):  # a line followed to its end takes half a megabyte
        part = slice(first, first + 50)
        sides = branches(line, pairs[part], signed)
        low[part], high[part] = -sides[BELOW].limit(), sides[ABOVE].limit()
    # heights on a single line are F itself, those on a pair count from the start
    offset = start_predictors(line, pairs, signed) if signed else 0.0
    return low + offset, high + offset


def growth(line: Reparametrization, pairs: Array, signed: bool) -> dict[float, Growth]:
    """The growth of both branches, for the coordinate that starts fastest."""
    speeds = np.max([length(line.evaluate(half)[1]) for half in np.hsplit(pairs, 2)], axis=0)
    fastest = pairs[[np.argmax(speeds)]]
    scale = speeds.max() * (np.abs(fastest).max() or 1.0)
    sides = branches(line, fastest, signed, most=ENOUGH)
    return {way: growth_of(branch, scale) for way, branch in sides.items()}


def growth_of(branch: Branch, scale: float) -> Growth:
    """1/box where s stays in a box, the rate of growth where that is exponential, or neither."""
    kind, heights = np.zeros(len(FAR), dtype=np.intp), scale * np.array(FAR)
    if not np.all(branch.reach(kind, heights) >= heights):
        return Growth(0.0, 0)
    points, leader = branch.at_height(kind, heights), int(branch.leaders(kind[:1])[0])
    first, second, last = np.diff(points.dual)
    end = points.dual[-1]
    if last <= 1e-13 * end:
        return Growth(float(1 / end), leader)
    # what is missing to the edge of a box fades like a power of the height
    ratio = last / second
    if ratio < 0.99 and abs(second / first - ratio) < 1e-6 * ratio:
        return Growth(float(1 / (end + last * ratio / (1 - ratio))), leader)
    rates = points.slope / points.height
    steady = np.ptp(rates[1:]) <= 1e-9 * rates[-1]
    return Growth(float(rates[-1]) if steady else 0.0, leader)


@dataclasses.dataclass(frozen=True)
class BranchPair:
    """The two branches of b, the summand that leads each of them, and the units of s and beta."""

    branches: dict[float, Branch]
    leaders: dict[float, int]
    unit: float
    offset: Array  # of every kind of coordinate

    def leader(self, way: float) -> Summand:
        return self.branches[way].summands[self.leaders[way]]


class LineWalk:
    """Which way each coordinate left its start, and where it stands on its leading line."""

    def __init__(self, graph: BranchPair, kind: Index, way: Array, panel: Index, t: Array) -> None:
        self.graph, self.kind, self.way, self.panel, self.t = graph, kind, way, panel, t
        self.beta, self.slope = np.full((2, len(kind)), np.nan)
        for sign, branch in graph.branches.items():
            here = self.on(sign)
            if not here.size:
                continue
            dual, height, slope, _ = reading(graph.leader(sign).orbits, self.position(sign, here))
            other = branch.without(graph.leaders[sign]).at_dual(kind[here], dual)
            self.beta[here] = graph.offset[kind[here]] + sign * (height + other.height)
            self.slope[here] = (slope + other.slope) / graph.unit

    @classmethod
    def begin(cls, graph: BranchPair, kind: Index) -> LineWalk:
        return cls(graph, kind, np.ones(len(kind)), np.zeros_like(kind), np.zeros(len(kind)))

    def on(self, sign: float) -> Index:
        """The coordinates on one branch, and not past its end."""
        return np.flatnonzero((self.way == sign) & np.isfinite(self.t))

    def position(self, sign: float, here: Index) -> LinePosition:
        """The positions of the coordinates `here` on the leading lines of a branch."""
        return LinePosition(
            self.graph.leader(sign).lines[self.kind[here]], self.panel[here], self.t[here]
        )

    def moved(self, ds: Array) -> LineWalk:
        """The walk after s -> s + ds; beta is not finite where that leaves the domain of b."""
        way, panel, t = self.way.copy(), self.panel.copy(), self.t.copy()
        for sign in self.graph.branches:
            here = self.on(sign)
            if not here.size:
                continue
            step = sign * ds[here] / self.graph.unit
            position, excess = shifted(
                self.graph.leader(sign).orbits, self.position(sign, here), step
            )
            panel[here], t[here] = position.panel, np.where(excess > 0, np.nan, position.t)
            over = here[excess < 0]
            if over.size:  # back across the start, to the other branch
                position, past = self.departed(-sign, over, -excess[excess < 0])
                way[over], panel[over] = -sign, position.panel
                t[over] = np.where(past > 0, np.nan, position.t)
        return LineWalk(self.graph, self.kind, way, panel, t)

    def departed(self, sign: float, here: Index, dual: Array) -> tuple[LinePosition, Array]:
        """(position, excess) of coordinates that moved by `dual` along a branch from the start."""
        summand = self.graph.leader(sign)
        start = LinePosition(
            summand.lines[self.kind[here]], np.zeros_like(here), np.zeros(len(here))
        )
        return shifted(summand.orbits, start, dual)
