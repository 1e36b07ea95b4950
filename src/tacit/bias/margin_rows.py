"""The margin constraints Z beta >= 1, brought to rows of comparable size."""

from __future__ import annotations

import dataclasses

import numpy as np

from tacit.arguments import Array
from tacit.bias.constraints import unit

ROUNDING = 4e-15  # of the size of the terms of a margin
ACTIVE = 1e-12  # a margin this close to its target counts as met


@dataclasses.dataclass(frozen=True)
class Rows:
    """`A b >= c` with c > 0 and rows of A near unit size, equivalent to Z beta >= 1.

    beta = scale * b, and a dual vector of the rows of Z is `factors` times one of the rows of A.
    """

    A: Array
    c: Array
    scale: float
    factors: Array

    def lacking(self, b: Array) -> Array:
        """By how much each margin misses its target, zero where that is rounding."""
        gap = self.c - self.A @ b
        terms = float(np.abs(b).sum())
        return np.where(gap > ACTIVE * self.c + ROUNDING * terms, gap, 0.0)


def scaled_rows(Z: Array) -> Rows:
    """The rows Z, none of them zero, in units of their own; exact, since units are powers of 2."""
    factors = unit(np.abs(Z).max(axis=1))
    A = Z * factors[:, None]
    more = unit(np.linalg.norm(A, axis=1))
    factors = factors * more
    scale = float(factors.max())
    return Rows(A * more[:, None], factors / scale, scale, factors)
