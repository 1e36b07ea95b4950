"""Proximal maps of sums over coordinates: the z with z + weight * gradient(z) = theta."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.regularizers.arrays import repeated, space_of
from tacit.regularizers.regularizer import Regularizer

STEPS = 30  # Newton's method starts within a factor of 2 of the right value; 8 are enough


def soft_threshold(theta: Any, weight: Any) -> Any:
    """theta minus its part within [-weight, weight]: the proximal map of the absolute value."""
    return theta - space_of(theta).clip(theta, -weight, weight)


def through_dual(regularizer: Regularizer, theta: Any, weight: Any) -> Any:
    """The proximal map of an even h whose inverse gradient b is convex for s >= 0.

    b(s) + weight s = |theta| is solved for s by Newton's method from above, where it only falls.
    """
    space, size = space_of(theta), abs(theta)
    begin = space.minimum(_ratio(size, weight), regularizer.dual_of(size))

    def step(s: Any) -> Any:
        with np.errstate(invalid="ignore"):  # where the slack is below rounding, s is 1 and stays
            above = regularizer.primal_of(s) + weight * s - size
            move = above / (regularizer.slope(s) + weight)
        return space.where(space.isfinite(move), space.maximum(s - move, 0.0), s).astype(s.dtype)

    s = repeated(step, begin, STEPS)
    z, pulled = regularizer.primal_of(s), weight * s
    # the smaller of the two is known without cancellation
    near = space.where(z <= pulled, z, space.maximum(size - pulled, 0.0))
    return space.copysign(near, theta)


def of_power(p: float, theta: Any, weight: Any) -> Any:
    """That of (1/p) |z|^p for p >= 2: z + weight z^(p-1) = |theta|, by Newton's method."""
    space, size = space_of(theta), abs(theta)
    begin = space.minimum(size, _ratio(size, weight) ** (1 / (p - 1)))

    def step(z: Any) -> Any:
        move = (z + weight * z ** (p - 1) - size) / (1 + weight * (p - 1) * z ** (p - 2))
        return space.maximum(z - move, 0.0).astype(z.dtype)

    return space.copysign(repeated(step, begin, STEPS), theta)


def _ratio(size: Any, weight: Any) -> Any:
    """size / weight, infinite for a weight of 0."""
    space = space_of(size)
    return space.where(weight > 0, size / space.where(weight > 0, weight, 1.0), space.inf)
