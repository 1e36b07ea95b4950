"""The predictor on one side of its start as a function of the dual s, and the inverse function.

In this file `clock` is s, the time of the gradient lines. One line, or the two of a signed pair,
share it: b - b(0) is the sum of their rises. A pair's plus line goes uphill while its minus line
goes downhill, so all terms are positive.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.arguments import Array
from tacit.regularizers.gradient_lines import CLOCK, DEGREE, HEIGHT, Index, Orbits

BLURRED = 1e-5  # a panel that takes a smaller part of the clock than this is not found by it


class Place(NamedTuple):
    """Positions on lines: which line, which panel, and the fraction t in [0, 1] of that panel."""

    line: Index
    panel: Index
    t: Array


class Motion(NamedTuple):
    """What a line did since the panel began, and its speed |grad F|, at a place."""

    clock: Array
    height: Array
    split: Array
    speed: Array


def motion(orbits: Orbits, place: Place) -> Motion:
    """The gains since the panel began, and the speed."""
    angle = np.arccos(np.clip(2 * place.t - 1, -1, 1))
    basis = np.cos(angle[:, None] * np.arange(DEGREE + 1))  # Chebyshev polynomials
    table = orbits.table[place.panel, place.line]
    pace, climb, split, speed = np.matmul(table, basis[:, :, None])[..., 0].T
    so_far = place.t * orbits.arc[place.panel, place.line]
    return Motion(so_far * pace, so_far * climb, split, speed)


def reading(orbits: Orbits, place: Place) -> tuple[Array, Array, Array, Array]:
    """(clock, height, slope b'(s), cost) at a place."""
    moved = motion(orbits, place)
    clock, height, cost, _ = orbits.knots[place.panel, :, place.line].T
    cost = cost + moved.height * (clock + moved.split * moved.clock)
    return clock + moved.clock, height + moved.height, moved.speed**2, cost


def search(orbits: Orbits, line: Index, behind: Callable[[Index], NDArray[np.bool_]]) -> Index:
    """The last panel of each line whose beginning is `behind` what is looked for."""
    low, high = np.zeros_like(line), orbits.used[line]
    while np.any(high - low > 1):
        middle = (low + high) // 2
        right = behind(middle)
        low, high = np.where(right, middle, low), np.where(right, high, middle)
    return low


def by_clock(orbits: Orbits, line: Index, clock: Array) -> Place:
    """The place at `clock`, which must lie inside the tables."""
    panels = search(orbits, line, lambda k: orbits.knots[k, CLOCK, line] <= clock)
    place = after(orbits, line, panels, clock - orbits.knots[panels, CLOCK, line])
    last = clock >= orbits.end(CLOCK, line)  # several last knots may have the same clock
    panels = np.where(last, orbits.used[line] - 1, panels)
    return Place(line, panels, np.where(last, 1.0, place.t))


def after(orbits: Orbits, line: Index, panels: Index, rest: Array) -> Place:
    """The place at which the clock has grown by `rest` since the panel began."""

    def excess(place: Place) -> tuple[Array, Array]:
        moved = motion(orbits, place)
        return moved.clock - rest, orbits.arc[panels, line] / moved.speed

    with np.errstate(all="ignore"):  # a panel may take no measurable time
        guess = np.nan_to_num(np.clip(rest / orbits.gain[panels, line], 0.0, 1.0))
    place = solve(Place(line, panels, guess), excess)
    return place._replace(t=np.where(rest > 0, place.t, 0.0))


def shifted(orbits: Orbits, place: Place, step: Array) -> tuple[Place, Array]:
    """(place, excess) after `step` on the clock, exact also where the clock itself saturates."""
    line = place.line
    clock = orbits.knots[place.panel, CLOCK, line] + motion(orbits, place).clock + step
    orbits.cover_all(line, clock)
    panels = search(orbits, line, lambda k: orbits.knots[k, CLOCK, line] <= clock)
    rest = clock - orbits.knots[panels, CLOCK, line]
    now = np.minimum(np.abs(clock), orbits.end(CLOCK, line))
    blurred = np.flatnonzero(orbits.gain[panels, line] < BLURRED * now)
    if blurred.size:
        part = Place(line[blurred], place.panel[blurred], place.t[blurred])
        panels[blurred], rest[blurred] = strolled(orbits, part, step[blurred])
    gain = orbits.gain[panels, line]
    excess = np.where(rest < 0, rest, np.maximum(rest - gain, 0.0))
    return after(orbits, line, panels, np.clip(rest, 0.0, gain)), excess


def strolled(orbits: Orbits, place: Place, step: Array) -> tuple[Index, Array]:
    """(panel, growth of the clock in it) after `step`, counted panel by panel."""
    line, panels = place.line, place.panel
    rest = motion(orbits, place).clock + step
    while True:
        gain, last = orbits.gain[panels, line], panels == orbits.used[line] - 1
        missing = (rest > gain) & last & ~orbits.ended[line]
        if missing.any():
            orbits.extend(np.unique(line[missing]))
            continue
        ahead, back = (rest > gain) & ~last, (rest < 0) & (panels > 0)
        if not (ahead | back).any():
            return panels, rest
        panels = panels + ahead - back
        rest = np.where(ahead, rest - gain, rest)
        rest = np.where(back, rest + orbits.gain[panels, line], rest)


def solve(place: Place, function: Callable[[Place], tuple[Array, Array]]) -> Place:
    """The place in the same panels where an increasing function, given with its slope, vanishes."""
    low, high = np.zeros(len(place.t)), np.ones(len(place.t))
    for _ in range(60):
        value, slope = function(place)
        low, high = np.where(value <= 0, place.t, low), np.where(value >= 0, place.t, high)
        with np.errstate(all="ignore"):
            t = place.t - value / slope
        t = np.where((t >= low) & (t <= high), t, (low + high) / 2)
        step, place = np.abs(t - place.t), place._replace(t=t)
        if np.all(step <= 1e-9 * t):  # Newton squares the error, so this step was the last one
            break
    return place


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
        return Branch(self.legs[:number] + self.legs[number + 1 :])

    def at_clock(self, kind: Index, clock: Array) -> Point:
        """The points at `clock`; not finite outside the domain of b."""
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
        """The number of the leg that has risen most, as far as the lines are known."""
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
