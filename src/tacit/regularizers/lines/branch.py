"""The predictor on one side of its start, as a function of the dual clock, and back.

One parameter line, or the two of a signed pair, share the clock: b - b(0) is the sum of what they
rise. A pair's plus line goes uphill while its minus line goes downhill, so all terms are positive.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.arguments import Array
from tacit.regularizers.lines.orbit import CLOCK, HEIGHT, Index, Orbits
from tacit.regularizers.lines.place import Place, by_clock, motion, reading, search, solve


class Point(NamedTuple):
    """Clock, height, slope d height/d clock, and cost (the integral of clock d height)."""

    clock: Array
    height: Array
    slope: Array
    cost: Array


@dataclasses.dataclass(frozen=True)
class Leg:
    """One of the lines behind a predictor; `lines` gives the line of every kind of coordinate."""

    orbits: Orbits
    lines: Index

    def horizon(self, kind: Index) -> Array:
        """The clock up to which the leg is known; infinite for a line that came to rest."""
        lines = self.lines[kind]
        at_rest = self.orbits.ended[lines] & np.isfinite(self.orbits.beyond[lines])
        return np.where(at_rest, np.inf, self.orbits.end(CLOCK, lines))

    def at(self, kind: Index, clock: Array) -> Point:
        """The point at `clock`; the end of the table where the line is not known so far."""
        orbits, lines = self.orbits, self.lines[kind]
        end = orbits.end(CLOCK, lines)
        place = by_clock(orbits, lines, np.minimum(clock, end))
        _, height, slope, cost = reading(orbits, place)
        past, beyond = orbits.ended[lines] & (clock > end), orbits.beyond[lines]
        if past.any():
            height = np.where(past & ~np.isfinite(beyond), beyond, height)
            slope = np.where(past, np.where(np.isfinite(beyond), 0.0, beyond), slope)
        return Point(clock, height, slope, cost)


@dataclasses.dataclass(frozen=True)
class Branch:
    """One side of the predictor of every kind of coordinate, made of one or two legs."""

    legs: tuple[Leg, ...]

    def without(self, number: int) -> Branch:
        """The branch less one of its legs."""
        return Branch(self.legs[:number] + self.legs[number + 1 :])

    def at_clock(self, kind: Index, clock: Array) -> Point:
        """The points where the clock shows `clock`; not finite outside the domain of b."""
        for leg in self.legs:
            leg.orbits.cover_all(leg.lines[kind], clock)
        return self.total(kind, clock)

    def total(self, kind: Index, clock: Array) -> Point:
        """The sum of the legs at `clock`, as far as they are known."""
        height, slope, cost = np.zeros((3, len(kind)))
        for leg in self.legs:
            point = leg.at(kind, clock)
            height, slope, cost = height + point.height, slope + point.slope, cost + point.cost
        return Point(clock, height, slope, cost)

    def reach(self, kind: Index, height: Array) -> Array:
        """The largest height known for each coordinate, after following the lines to `height`."""
        kinds, place = np.unique(kind, return_inverse=True)
        need = np.full(len(kinds), -np.inf)
        np.maximum.at(need, place, height)
        goal = np.zeros(len(kinds))
        while True:
            for leg in self.legs:
                leg.orbits.cover_all(leg.lines[kinds], goal, need)
                enough = leg.orbits.end(HEIGHT, leg.lines[kinds]) >= need
                goal = np.where(enough, np.minimum(goal, leg.horizon(kinds)), goal)
            horizons = np.stack([leg.horizon(kinds) for leg in self.legs])
            ended = np.stack([leg.orbits.ended[leg.lines[kinds]] for leg in self.legs])
            common = horizons.min(axis=0)
            known = self.total(kinds, common).height
            stuck = np.any(ended & (horizons == common), axis=0)
            if np.all((known >= need) | stuck):
                return known[place]
            goal = 2 * np.where(np.isfinite(common), common, 0.0)

    def limit(self) -> Array:
        """The height that every kind of coordinate tends to at the far end of its lines."""
        for leg in self.legs:
            leg.orbits.cover_all(leg.lines, np.full(len(leg.lines), np.inf))
        return np.array([self.limit_of(kind) for kind in range(len(self.legs[0].lines))])

    def limit_of(self, kind: int) -> float:
        """The same for one kind, whose lines have been followed to their ends."""
        ends = [leg.orbits.limits(leg.lines[kind]) for leg in self.legs]
        first = min(clock for clock, _ in ends)
        total = 0.0
        for leg, (clock, height) in zip(self.legs, ends, strict=True):
            if clock > first * (1 + 1e-12):
                height = float(leg.at(np.array([kind]), np.array([first])).height[0])
            total += height
        return total

    def leaders(self, kind: Index) -> Index:
        """The number of the leg that has risen most, as far as the lines are known.

        Near the end of the domain of b only the line that runs away resolves the position.
        """
        common = np.min([leg.horizon(kind) for leg in self.legs], axis=0)
        return np.argmax([leg.at(kind, common).height for leg in self.legs], axis=0)

    def at_height(self, kind: Index, height: Array) -> Point:
        """The points where the predictor has risen to `height`, which must be within reach."""
        leaders, result = self.leaders(kind), np.zeros((4, len(kind)))
        for number in np.unique(leaders):
            chosen = leaders == number
            result[:, chosen] = self.led(int(number), kind[chosen], height[chosen])
        return Point(*result)

    def led(self, number: int, kind: Index, height: Array) -> Point:
        """`at_height`, parametrised by the line of the leg `number`."""
        orbits, lines = self.legs[number].orbits, self.legs[number].lines[kind]
        others = self.without(number)

        def behind(panel: Index) -> NDArray[np.bool_]:
            other = others.total(kind, orbits.knots[panel, CLOCK, lines]).height
            return orbits.knots[panel, HEIGHT, lines] + other <= height

        def excess(place: Place) -> tuple[Array, Array]:
            moved = motion(orbits, place)
            other = others.total(kind, orbits.knots[place.panel, CLOCK, lines] + moved.clock)
            rest = height - orbits.knots[place.panel, HEIGHT, lines]
            rate = moved.speed + other.slope / moved.speed
            return moved.height - rest + other.height, orbits.arc[place.panel, lines] * rate

        panels = search(orbits, lines, behind)
        place = solve(Place(lines, panels, np.zeros(len(lines))), excess)
        clock, _, slope, cost = reading(orbits, place)
        other = others.total(kind, clock)
        return Point(clock, height, slope + other.slope, cost + other.cost)
