"""Where a curve passes a level."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def crossing(x: ArrayLike, y: ArrayLike, level: float) -> float:
    """The first x at which the curve passes `level`, up or down; NaN where it never does.

    The curve is linear in x between its points; give logarithms where it is to be linear in them.
    """
    x, y = np.asarray(x, float), np.asarray(y, float)
    above = y >= level
    passed = np.flatnonzero(above[1:] != above[:-1])
    if len(passed) == 0:
        return float("nan")
    pair = slice(passed[0], passed[0] + 2)
    low, high = y[pair]
    return float(x[pair] @ [high - level, level - low] / (high - low))
