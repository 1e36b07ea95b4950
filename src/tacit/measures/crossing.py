"""Where a curve first reaches a level."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def crossing(x: ArrayLike, y: ArrayLike, level: float) -> float:
    """The x at which y first reaches `level` from below; NaN if it never does or begins there.

    Between two records it is linear in x; for a logarithmic axis give logarithms.
    """
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    above = np.flatnonzero(y >= level)
    if len(above) == 0 or above[0] == 0:
        return float("nan")
    pair = slice(above[0] - 1, above[0] + 1)
    return float(np.interp(level, y[pair], x[pair]))
