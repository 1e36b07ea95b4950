"""Places on gradient lines: finding them by the clock, moving them, and reading them off."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.arguments import Array
from tacit.regularizers.lines.orbit import CLOCK, Index, Orbits
from tacit.regularizers.lines.panel import DEGREE

BLURRED = 1e-5  # a panel that takes less than this part of the clock is not found by the clock


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
    """Where the clock shows `clock`, which must lie inside the tables."""
    panels = search(orbits, line, lambda k: orbits.knots[k, CLOCK, line] <= clock)
    place = after(orbits, line, panels, clock - orbits.knots[panels, CLOCK, line])
    last = clock >= orbits.end(CLOCK, line)  # several last knots may show the same time
    panels = np.where(last, orbits.used[line] - 1, panels)
    return Place(line, panels, np.where(last, 1.0, place.t))


def after(orbits: Orbits, line: Index, panels: Index, rest: Array) -> Place:
    """Where the clock has gained `rest` since the panel began."""

    def excess(place: Place) -> tuple[Array, Array]:
        moved = motion(orbits, place)
        return moved.clock - rest, orbits.arc[panels, line] / moved.speed

    with np.errstate(all="ignore"):  # a panel may take no measurable time
        guess = np.nan_to_num(np.clip(rest / orbits.gain[panels, line], 0.0, 1.0))
    place = solve(Place(line, panels, guess), excess)
    return place._replace(t=np.where(rest > 0, place.t, 0.0))


def shifted(orbits: Orbits, place: Place, step: Array) -> tuple[Place, Array]:
    """(place, excess) after `step` on the clock, exact also where the clock itself saturates.

    `excess` is what remains of the step at either end of the line: negative before its start,
    positive past its end.
    """
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
    """(panel, clock gained in it) after `step`, counted panel by panel."""
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
