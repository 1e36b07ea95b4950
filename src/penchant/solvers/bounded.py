"""The least value of a convex quadratic function between bounds, by an active set.

`saddles` needs least squares with given signs, `slow_flow` the shortest subgradient; both are a
quadratic function of some numbers z with low <= z <= high. Lawson and Hanson's method (for two
bounds that of Stark and Parker) holds some z at their bounds and lets the others go where the slope
vanishes, until no slope points inward at a bound.

The loop is written once for two arithmetics. In float64 a slope is compared with the rounding error
that the problem names; in rational numbers that error is zero, every decision is right, and the
method ends. Each loop has a bound all the same: near ties rounding can free and hold the same
number again and again, and then the answer is not `sure`.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from penchant.arguments import Array

ROUNDS = 10  # per number and once more: far more than were ever needed
Mask = Any


class Quadratic(Protocol):
    """A convex quadratic function of z."""

    def goal(self, z: Array, free: Mask) -> Array:
        """The free numbers at which their slopes vanish, the others staying as they are."""

    def slope(self, z: Array) -> tuple[Array, Array]:
        """Minus the gradient at z, and how far rounding may have moved it."""


class BoundedMinimum(NamedTuple):
    """The least point, which of its numbers are free, the slope there, and whether it is sure."""

    z: Array
    free: Mask
    slope: Array
    noise: Array
    sure: bool


def least(
    problem: Quadratic,
    z: Array,
    free: Mask,
    low: Any,
    high: Any,
    known: tuple[Array, Array] | None = None,
) -> BoundedMinimum:
    """The least point between `low` and `high`, from `z` with its `free` numbers.

    `known` is the slope at z with its rounding, where the caller has it.
    """
    tried = np.zeros(len(z), dtype=bool)  # freed at this z and held again at once, by rounding
    slope, noise = problem.slope(z) if known is None else known
    if (np.abs(slope[free]) > noise[free]).any():  # a walk begins where the last piece ended
        z, free = _settled(problem, z, free, low, high)
        slope, noise = problem.slope(z)
    for _ in range(ROUNDS * len(z) + ROUNDS):
        inward = np.where(z == low, slope, -slope)
        shown = (inward > noise) & ~free
        if not shown.any():
            return BoundedMinimum(z, free, slope, noise, True)
        if tried.any():
            shown &= ~tried
            if not shown.any():
                break
        first, before = int(np.where(shown, inward, 0).argmax()), z
        free = free.copy()
        free[first] = True
        z, free = _settled(problem, z, free, low, high)
        slope, noise = problem.slope(z)
        tried &= bool((z == before).all())
        tried[first] |= not free[first]
    return BoundedMinimum(z, free, slope, noise, False)


def _settled(problem: Quadratic, z: Array, free: Mask, low: Any, high: Any) -> tuple[Array, Mask]:
    """z after the free numbers went to where their slopes vanish, as far as the bounds allow."""
    for _ in range(len(z)):  # every pass but the last holds one number more
        if not free.any():
            break
        goal = z.copy()
        goal[free] = problem.goal(z, free)
        below = goal < low
        past = below | (goal > high)
        if not past.any():
            return goal, free & (goal > low) & (goal < high)
        bound = np.where(below, low, high)
        # goal lies beyond the bound and z does not, so nothing is divided by zero
        shares = (bound[past] - z[past]) / (goal[past] - z[past])
        share = shares.min()
        z = z.copy()
        z[free] = z[free] + share * (goal[free] - z[free])
        held = np.flatnonzero(past)[shares <= share]
        z[held] = bound[held]
        free = free.copy()
        free[held] = False
    return z, free
