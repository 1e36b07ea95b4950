"""How smooth a model is in its parameters, from third differences along lines."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tacit.arguments import Array

CELLS = 128  # of a line
WIDE = 8  # cells of the wide differences; the narrow ones take neighbours
NARROW = 16  # a suspect place is looked at again this many times closer
LOOKS = 2  # how often
SUSPECTS = 6  # how many places
NOISE = 1e-13  # of the terms of f, below which a difference is rounding
CLEAR = 2.9  # an order that needs no closer look
SMOOTH = 0.6  # a jump of f'' reads 0.8 to 1, depending on where it falls in its cell


class Line(NamedTuple):
    """f(x_n) at a position on a line of parameters, and the size of the terms it is summed from."""

    values: Callable[[float], Array]
    terms: Array


def roughness(who: str, lines: list[Line]) -> float:
    """3 minus the order at which third differences of f vanish with their step, at the worst place.

    0 is smooth; 1 is a jump of the second derivative (squared ReLU), 2 one of the first (ReLU).
    A sharp but smooth bend looks like a jump from afar, so suspects are looked at more closely.
    """
    suspects = []
    for line in filter(defined, lines):
        orders, places = orders_along(line, 0.0, 1.0)
        suspects += [(order, line, n, places[n]) for n, order in enumerate(orders)]
    if not suspects:
        raise ValueError(f"{who}: the model is not finite along any line of random parameters")
    suspects.sort(key=lambda suspect: suspect[0])
    seen = [closely(line, n, place, order) for order, line, n, place in suspects[:SUSPECTS]]
    return max(0.0, 3.0 - min(seen))


def defined(line: Line) -> bool:
    """Whether f is finite along the line, judged at a few places."""
    return all(bool(np.isfinite(line.values(float(s))).all()) for s in np.linspace(0.0, 1.0, 9))


def closely(line: Line, sample: int, place: float, order: float) -> float:
    """The order for one sample near one place, at ever finer steps while it looks rough."""
    half = 0.5
    for _ in range(LOOKS):
        if order >= CLEAR:
            return order
        half /= NARROW
        orders, places = orders_along(line, max(place - half, 0.0), min(place + half, 1.0))
        order, place = orders[sample], places[sample]
    return order


def orders_along(line: Line, left: float, right: float) -> tuple[list[float], list[float]]:
    """For each sample the order between the two steps, and where its differences are largest."""
    grid = np.linspace(left, right, CELLS + 1)
    values = np.array([line.values(float(s)) for s in grid])
    fine, coarse = np.abs(third(values, 1)), np.abs(third(values, WIDE))
    floor = NOISE * np.maximum(np.abs(values).max(axis=0), line.terms)
    sizes = zip(fine.max(axis=0), coarse.max(axis=0), floor, strict=True)
    orders = [order_of(*size) for size in sizes]
    middles = grid[np.argmax(fine, axis=0)] + 1.5 * (grid[1] - grid[0])
    return orders, [float(middle) for middle in middles]


def third(values: Array, step: int) -> Array:
    """Third differences along the first axis, `step` rows apart."""
    for _ in range(3):
        values = values[step:] - values[:-step]
    return values


def order_of(fine: float, coarse: float, floor: float) -> float:
    """log_8(coarse / fine), 3 where nothing but rounding is left."""
    return 3.0 if fine <= floor else math.log(coarse / fine, WIDE) if coarse > 0 else 0.0
