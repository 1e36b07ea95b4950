"""h_D of eq. (7), its slope and its inverse."""

from __future__ import annotations

import numpy as np

from tacit.arguments import Array


def h(z: Array, depth: int) -> Array:
    """h_D, also where the formula alone can be read outside (-1, 1)."""
    p = depth / (depth - 2)
    with np.errstate(invalid="ignore", divide="ignore"):  # NaN beyond 1 where p is no integer
        return np.asarray((1 - z) ** -p - (1 + z) ** -p)


def h_slope(z: Array, depth: int) -> Array:
    p = depth / (depth - 2)
    return np.asarray(p * ((1 - z) ** (-p - 1) + (1 + z) ** (-p - 1)))


def h_inverse(w: Array, depth: int) -> Array:
    """h_D^-1 by bisection, which relies on h_D alone."""
    low, high = -np.ones_like(w), np.ones_like(w)
    for _ in range(60):
        middle = (low + high) / 2
        above = h(middle, depth) > w
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return (low + high) / 2
