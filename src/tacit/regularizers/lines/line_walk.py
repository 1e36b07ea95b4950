"""The walk of a derived regularizer: a place on a gradient line for every coordinate.

Near the end of the domain of b the dual is constant to the last digit while the predictor still
grows by many orders of magnitude. There a place on the line says more than s does.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from tacit.arguments import Array
from tacit.regularizers.lines.branch import Branch, Leg
from tacit.regularizers.lines.orbit import Index
from tacit.regularizers.lines.place import Place, reading, shifted
from tacit.regularizers.walk import Walk


@dataclasses.dataclass(frozen=True)
class Graph:
    """The two branches of b, the leg that leads each of them, and the units of s and beta."""

    branches: dict[float, Branch]
    leaders: dict[float, int]
    unit: float
    offset: Array  # of every kind of coordinate

    def leader(self, way: float) -> Leg:
        return self.branches[way].legs[self.leaders[way]]


class LineWalk(Walk):
    """Which way each coordinate left its start, and where it stands on its leading line."""

    def __init__(self, graph: Graph, kind: Index, way: Array, panel: Index, t: Array) -> None:
        self.graph, self.kind, self.way, self.panel, self.t = graph, kind, way, panel, t
        self.beta, self.slope = np.full((2, len(kind)), np.nan)
        for sign, branch in graph.branches.items():
            here = self.on(sign)
            if not here.size:
                continue
            clock, height, slope, _ = reading(graph.leader(sign).orbits, self.place(sign, here))
            other = branch.without(graph.leaders[sign]).at_clock(kind[here], clock)
            self.beta[here] = graph.offset[kind[here]] + sign * (height + other.height)
            self.slope[here] = (slope + other.slope) / graph.unit

    @classmethod
    def begin(cls, graph: Graph, kind: Index) -> LineWalk:
        """The walk at s = 0."""
        return cls(graph, kind, np.ones(len(kind)), np.zeros_like(kind), np.zeros(len(kind)))

    def on(self, sign: float) -> Index:
        """The coordinates on one branch, and not past its end."""
        return np.flatnonzero((self.way == sign) & np.isfinite(self.t))

    def place(self, sign: float, here: Index) -> Place:
        """The places of the coordinates `here` on the leading lines of a branch."""
        return Place(self.graph.leader(sign).lines[self.kind[here]], self.panel[here], self.t[here])

    def moved(self, ds: Array) -> LineWalk:
        way, panel, t = self.way.copy(), self.panel.copy(), self.t.copy()
        for sign in self.graph.branches:
            here = self.on(sign)
            if not here.size:
                continue
            step = sign * ds[here] / self.graph.unit
            place, excess = shifted(self.graph.leader(sign).orbits, self.place(sign, here), step)
            panel[here], t[here] = place.panel, np.where(excess > 0, np.nan, place.t)
            over = here[excess < 0]
            if over.size:  # back across the start, to the other branch
                place, past = self.departed(-sign, over, -excess[excess < 0])
                way[over], panel[over] = -sign, place.panel
                t[over] = np.where(past > 0, np.nan, place.t)
        return LineWalk(self.graph, self.kind, way, panel, t)

    def departed(self, sign: float, here: Index, clock: Array) -> tuple[Place, Array]:
        """(place, excess) of coordinates that left the start along a branch `clock` ago."""
        leg = self.graph.leader(sign)
        start = Place(leg.lines[self.kind[here]], np.zeros_like(here), np.zeros(len(here)))
        return shifted(leg.orbits, start, clock)
