"""The margin constraints Z beta >= 1 in rows of comparable size, and their certificate."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
from numpy.typing import NDArray

from tacit.arguments import Array
from tacit.regularizers.regularizer import Regularizer
from tacit.solvers import exact
from tacit.solvers.constraints import refitted, unit
from tacit.solvers.data import exponents
from tacit.solvers.solution import (
    SMALL,
    Found,
    Solution,
    concluded,
    kkt_residual,
    normalized,
)

ROUNDING = 4e-15  # of the size of the terms of a margin
ACTIVE = 1e-12  # a margin this close to its target counts as met


@dataclasses.dataclass(frozen=True)
class Rows:
    """`A b >= c` with c > 0 and rows of A near unit size, equivalent to Z beta >= 1."""

    A: Array
    c: Array
    scale: float
    factors: Array

    @functools.cached_property
    def by_columns(self) -> Array:
        """The rows with every column in units of its own: what depends on what is the same."""
        factors = unit(np.abs(self.A).max(axis=0))
        return self.A if factors.max() <= 1e3 * factors.min() else self.A * factors

    def lacking(self, b: Array) -> Array:
        """By how much each margin misses its target, zero where that is rounding."""
        gap = self.c - self.A @ b
        terms = float(np.abs(b).sum())
        return np.where(gap > ACTIVE * self.c + ROUNDING * terms, gap, 0.0)


def scaled_rows(Z: Array) -> Rows:
    """The rows Z, none of them zero, in units of their own; exact, since units are powers of 2."""
    powers = -exponents(np.abs(Z).max(axis=1))
    A = np.ldexp(Z, powers[:, None])
    more = unit(np.linalg.norm(A, axis=1))
    factors = np.ldexp(more, powers)
    scale = float(factors.max())
    return Rows(A * more[:, None], factors / scale, scale, factors)


def met(Z: Array, beta: Array, tight: NDArray[np.bool_]) -> tuple[Array, Array]:
    """(beta, margins) with no margin below one but for rounding, also of the largest rows.

    A margin of 1 on a row of size 1e8, for a beta of size 1e8, is known to one part in one. Aimed
    above one by its own rounding it is met, and beta moves by less than one part in 1e15.
    """
    margins = margins_of(Z, beta)
    for _ in range(3):
        rounding = ROUNDING * (np.abs(Z) @ np.abs(beta))
        low = (margins < 1 - SMALL) | ((rounding > SMALL) & (margins < 1 + rounding / 2))
        if not low.any():
            break
        tight = tight | low
        beta = refitted(Z[tight], 1 + rounding[tight], beta)
        margins = margins_of(Z, beta)
    return beta, margins


def margins_of(Z: Array, beta: Array) -> Array:
    """Z beta, without rounding where that would show."""
    return 1 - exact.missing(Z, beta, np.ones(len(Z)))


def certified(Z: Array, regularizer: Regularizer, found: Found, moved: bool = True) -> Solution:
    """The solution with its certificate, computed from what is returned and the original data."""
    beta, dual, steps, outcome, log_unit, rest = found
    if not np.isfinite(beta).all():
        return Solution(beta, dual, np.nan, np.nan, np.nan, steps, outcome)
    margins = margins_of(Z, beta)
    tight = (dual > 0) | (margins < 1 - SMALL)
    if outcome.ok:
        if (np.abs(margins - 1)[tight] > SMALL).any():
            beta = refitted(Z[tight], np.ones(int(tight.sum())), beta)
        beta, margins = met(Z, beta, tight) if moved else (beta, margins_of(Z, beta))
    residual = float(np.maximum(1 - margins, 0.0).max())
    inner, unit_beta = normalized(regularizer, beta, log_unit)
    slopes = exact.product(np.vstack([dual, *rest]), Z) if rest else dual @ Z
    kkt = max(kkt_residual(inner, unit_beta, slopes), dual_misfit(dual, margins))
    excess = max(residual, kkt)
    if excess > SMALL:
        sizes, spare = np.abs(Z), ROUNDING * (np.abs(Z) @ np.abs(beta))
        blur = 0.0 if rest else ROUNDING * float((np.abs(dual) @ sizes).max())
        excess = max(
            float(np.maximum(1 - margins - spare, 0.0).max()),
            kkt_residual(inner, unit_beta, slopes, blur),
            dual_misfit(dual, margins, spare),
        )
    return Solution(*concluded(regularizer, found, beta, (residual, kkt, excess)))


def dual_misfit(dual: Array, margins: Array, rounding: Array | float = 0.0) -> float:
    """The worst of -nu_n and nu_n (margin_n - 1), relative to the largest dual weight."""
    largest = max(float(np.abs(dual).max()), 1e-300)
    apart = np.maximum(np.abs(margins - 1) - rounding, 0.0)
    return float(max(np.max(-dual), np.abs(dual * apart).max()) / largest)
