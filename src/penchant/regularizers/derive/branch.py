"""The predictor on one side of its start as a function of the dual s, and the inverse function.

In this file `dual` is s, the time of the gradient lines. One line, or the two of a signed pair,
share it: b - b(0) is the sum of their rises. A pair's plus line goes uphill while its minus line
goes downhill, so all terms are positive.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from penchant.arguments import Array
from penchant.limits import Turns
from penchant.regularizers.derive.gradient_lines import DEGREE, DUAL, HEIGHT, Index, Orbits

BLURRED = 1e-5  # a panel that takes a smaller part of the dual than this is not found by it


class LinePosition(NamedTuple):
    """Positions on lines: which line, which panel, and the fraction t in [0, 1] of that panel."""

    line: Index
    panel: Index
    t: Array


class Motion(NamedTuple):
    """What a line did since the panel began, its speed |w'| and its rate dF/dl, at a position."""

    dual: Array
    height: Array
    split: Array
    speed: Array
    rate: Array


def motion(orbits: Orbits, position: LinePosition) -> Motion:
    """The gains since the panel began, the speed and the rate."""
    angle = np.arccos(np.clip(2 * position.t - 1, -1, 1))
    basis = np.cos(angle[:, None] * np.arange(DEGREE + 1))  # Chebyshev polynomials
    table = orbits.table[position.panel, position.line]
    dual_rate, height_rate, split, speed, rate = np.matmul(table, basis[:, :, None])[..., 0].T
    so_far = position.t * orbits.arc[position.panel, position.line]
    return Motion(so_far * dual_rate, so_far * height_rate, split, speed, rate)


def reading(orbits: Orbits, position: LinePosition) -> tuple[Array, Array, Array, Array]:
    """(dual, height, slope b'(s), cost) at a position."""
    moved = motion(orbits, position)
    dual, height, cost, _ = orbits.knots[position.panel, :, position.line].T
    cost = cost + moved.height * (dual + moved.split * moved.dual)
    return dual + moved.dual, height + moved.height, moved.speed * moved.rate, cost


def search(orbits: Orbits, line: Index, behind: Callable[[Index], NDArray[np.bool_]]) -> Index:
    """The last panel of each line whose beginning is `behind` what is looked for."""
    low, high = np.zeros_like(line), orbits.used[line]
    turns = Turns(64, "the search for a panel")
    while np.any(high - low > 1):
        turns.take()
        middle = (low + high) // 2
        right = behind(middle)
        low, high = np.where(right, middle, low), np.where(right, high, middle)
    return low


def by_dual(orbits: Orbits, line: Index, dual: Array) -> LinePosition:
    """The position at `dual`, which must lie inside the tables."""
    panels = search(orbits, line, lambda k: orbits.knots[k, DUAL, line] <= dual)
    position = after(orbits, line, panels, dual - orbits.knots[panels, DUAL, line])
    last = dual >= orbits.end(DUAL, line)  # several last knots may have the same dual
    panels = np.where(last, orbits.used[line] - 1, panels)
    return LinePosition(line, panels, np.where(last, 1.0, position.t))


def after(orbits: Orbits, line: Index, panels: Index, rest: Array) -> LinePosition:
    """The position at which the dual has grown by `rest` since the panel began."""

    def excess(position: LinePosition) -> tuple[Array, Array]:
        moved = motion(orbits, position)
        return moved.dual - rest, orbits.arc[panels, line] / moved.speed

    with np.errstate(all="ignore"):  # a panel may take no measurable time
        guess = np.nan_to_num(np.clip(rest / orbits.gain[panels, line], 0.0, 1.0))
    position = solve(LinePosition(line, panels, guess), excess)
    return position._replace(t=np.where(rest > 0, position.t, 0.0))


def shifted(orbits: Orbits, position: LinePosition, step: Array) -> tuple[LinePosition, Array]:
    """(position, excess) after `step` in the dual, exact also where the dual itself saturates."""
    line = position.line
    dual = orbits.knots[position.panel, DUAL, line] + motion(orbits, position).dual + step
    orbits.cover_all(line, dual)
    panels = search(orbits, line, lambda k: orbits.knots[k, DUAL, line] <= dual)
    rest = dual - orbits.knots[panels, DUAL, line]
    now = np.minimum(np.abs(dual), orbits.end(DUAL, line))
    blurred = np.flatnonzero(orbits.gain[panels, line] < BLURRED * now)
    if blurred.size:
        part = LinePosition(line[blurred], position.panel[blurred], position.t[blurred])
        panels[blurred], rest[blurred] = panel_by_panel(orbits, part, step[blurred])
    gain = orbits.gain[panels, line]
    excess = np.where(rest < 0, rest, np.maximum(rest - gain, 0.0))
    return after(orbits, line, panels, np.clip(rest, 0.0, gain)), excess


def panel_by_panel(orbits: Orbits, position: LinePosition, step: Array) -> tuple[Index, Array]:
    """(panel, growth of the dual in it) after `step`, counted panel by panel."""
    line, panels = position.line, position.panel
    rest = motion(orbits, position).dual + step
    for _ in Turns(1_000_000, "the walk along the panels of a line"):
        gain, last = orbits.gain[panels, line], panels == orbits.used[line] - 1
        missing = (rest > gain) & last & ~orbits.ended[line]
        if missing.any():
            orbits.extend(np.unique(line[missing]))
            continue
        ahead, back = (rest > gain) & ~last, (rest < 0) & (panels > 0)
        if not (ahead | back).any():
            break
        panels = panels + ahead - back
        rest = np.where(ahead, rest - gain, rest)
        rest = np.where(back, rest + orbits.gain[panels, line], rest)
    return panels, rest


def solve(
    position: LinePosition, function: Callable[[LinePosition], tuple[Array, Array]]
) -> LinePosition:
    """The position in the same panels where an increasing function, with its slope, vanishes."""
    low, high = np.zeros(len(position.t)), np.ones(len(position.t))
    for _ in range(60):
        value, slope = function(position)
        low, high = np.where(value <= 0, position.t, low), np.where(value >= 0, position.t, high)
        with np.errstate(all="ignore"):
            t = position.t - value / slope
        t = np.where((t >= low) & (t <= high), t, (low + high) / 2)
        step, position = np.abs(t - position.t), position._replace(t=t)
        if np.all(step <= 1e-9 * t):  # Newton squares the error, so this step was the last one
            break
    return position


class BranchPoint(NamedTuple):
    """Dual, height, slope d height/d dual, and cost (the integral of dual d height)."""

    dual: Array
    height: Array
    slope: Array
    cost: Array


@dataclasses.dataclass(frozen=True)
class Summand:
    """One of the lines behind a predictor; `lines` gives the line of every kind of coordinate."""

    orbits: Orbits
    lines: Index

    def horizon(self, kind: Index) -> Array:
        """The dual up to which the summand is known; infinite for a line that came to rest."""
        lines = self.lines[kind]
        at_rest = self.orbits.ended[lines] & np.isfinite(self.orbits.beyond[lines])
        return np.where(at_rest, np.inf, self.orbits.end(DUAL, lines))

    def at(self, kind: Index, dual: Array) -> BranchPoint:
        """The point at `dual`; the end of the table where the line is not known so far."""
        orbits, lines = self.orbits, self.lines[kind]
        end = orbits.end(DUAL, lines)
        position = by_dual(orbits, lines, np.minimum(dual, end))
        _, height, slope, cost = reading(orbits, position)
        past, beyond = orbits.ended[lines] & (dual > end), orbits.beyond[lines]
        if past.any():
            height = np.where(past & ~np.isfinite(beyond), beyond, height)
            slope = np.where(past, np.where(np.isfinite(beyond), 0.0, beyond), slope)
        return BranchPoint(dual, height, slope, cost)


@dataclasses.dataclass(frozen=True)
class Branch:
    """One side of the predictor of every kind of coordinate, made of one or two summands."""

    summands: tuple[Summand, ...]

    def without(self, number: int) -> Branch:
        return Branch(self.summands[:number] + self.summands[number + 1 :])

    def at_dual(self, kind: Index, dual: Array) -> BranchPoint:
        """The points at `dual`; not finite outside the domain of b."""
        for summand in self.summands:
            summand.orbits.cover_all(summand.lines[kind], dual)
        return self.total(kind, dual)

    def total(self, kind: Index, dual: Array) -> BranchPoint:
        """The sum of the summands at `dual`, as far as they are known."""
        height, slope, cost = np.zeros((3, len(kind)))
        for summand in self.summands:
            point = summand.at(kind, dual)
            height, slope, cost = height + point.height, slope + point.slope, cost + point.cost
        return BranchPoint(dual, height, slope, cost)

    def reach(self, kind: Index, height: Array) -> Array:
        """The largest height known for each coordinate, after following the lines to `height`."""
        kinds, group = np.unique(kind, return_inverse=True)
        need = np.full(len(kinds), -np.inf)
        np.maximum.at(need, group, height)
        goal = np.zeros(len(kinds))
        for _ in Turns(100_000, "the extension of lines to a height"):
            for summand in self.summands:
                summand.orbits.cover_all(summand.lines[kinds], goal, need)
                enough = summand.orbits.end(HEIGHT, summand.lines[kinds]) >= need
                goal = np.where(enough, np.minimum(goal, summand.horizon(kinds)), goal)
            horizons = np.stack([summand.horizon(kinds) for summand in self.summands])
            ended = np.stack(
                [summand.orbits.ended[summand.lines[kinds]] for summand in self.summands]
            )
            common = horizons.min(axis=0)
            known = self.total(kinds, common).height
            stuck = np.any(ended & (horizons == common), axis=0)
            if np.all((known >= need) | stuck):
                break
            goal = 2 * np.where(np.isfinite(common), common, 0.0)
        return known[group]

    def limit(self) -> Array:
        """The height that every kind of coordinate tends to at the far end of its lines."""
        for summand in self.summands:
            summand.orbits.cover_all(summand.lines, np.full(len(summand.lines), np.inf))
        return np.array([self.limit_of(kind) for kind in range(len(self.summands[0].lines))])

    def limit_of(self, kind: int) -> float:
        """The same for one kind, whose lines have been followed to their ends."""
        ends = [summand.orbits.limits(summand.lines[kind]) for summand in self.summands]
        first = min(dual for dual, _ in ends)
        total = 0.0
        for summand, (dual, height) in zip(self.summands, ends, strict=True):
            if dual > first * (1 + 1e-12):
                height = float(summand.at(np.array([kind]), np.array([first])).height[0])
            total += height
        return total

    def leaders(self, kind: Index) -> Index:
        """The number of the summand that has risen most, as far as the lines are known."""
        common = np.stack([summand.horizon(kind) for summand in self.summands]).min(axis=0)
        return np.argmax([summand.at(kind, common).height for summand in self.summands], axis=0)

    def at_height(self, kind: Index, height: Array) -> BranchPoint:
        """The points where the predictor has risen to `height`, which must be within reach."""
        leaders, result = self.leaders(kind), np.zeros((4, len(kind)))
        for number in np.unique(leaders):
            chosen = leaders == number
            result[:, chosen] = self.led(int(number), kind[chosen], height[chosen])
        return BranchPoint(*result)

    def led(self, number: int, kind: Index, height: Array) -> BranchPoint:
        """`at_height`, parametrised by the line of the summand `number`."""
        orbits, lines = self.summands[number].orbits, self.summands[number].lines[kind]
        others = self.without(number)

        def behind(panel: Index) -> NDArray[np.bool_]:
            other = others.total(kind, orbits.knots[panel, DUAL, lines]).height
            return orbits.knots[panel, HEIGHT, lines] + other <= height

        def excess(position: LinePosition) -> tuple[Array, Array]:
            moved = motion(orbits, position)
            other = others.total(kind, orbits.knots[position.panel, DUAL, lines] + moved.dual)
            rest = height - orbits.knots[position.panel, HEIGHT, lines]
            rate = moved.rate + other.slope / moved.speed
            return moved.height - rest + other.height, orbits.arc[position.panel, lines] * rate

        panels = search(orbits, lines, behind)
        position = solve(LinePosition(lines, panels, np.zeros(len(lines))), excess)
        dual, _, slope, cost = reading(orbits, position)
        other = others.total(kind, dual)
        return BranchPoint(dual, height, slope + other.slope, cost + other.cost)
