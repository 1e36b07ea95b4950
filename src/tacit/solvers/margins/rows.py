"""The margin constraints Z beta >= 1 in rows of comparable size, and their certificate."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arguments import Array
from tacit.regularizers.lp import Lp
from tacit.regularizers.norms import L1, Linf
from tacit.regularizers.regularizer import Regularizer
from tacit.regularizers.spectral import MatrixNorm
from tacit.solvers import exact
from tacit.solvers.accuracy import Answer, Equations, of_norm, of_smooth
from tacit.solvers.certificate import UNKNOWN, Certificate
from tacit.solvers.constraints import reduce, refitted, unit
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
    inner, factor = normalized(regularizer, np.ones(1), log_unit)
    slopes = exact.product(np.vstack([dual, *rest]), Z) if rest else dual @ Z
    kkt = max(kkt_residual(inner, factor * beta, slopes), dual_misfit(dual, margins))
    answer = Answer(beta, np.vstack([dual, *rest]))
    margin_problem = Margins(inner, Z, float(factor[0]))
    certificate = margin_problem.certificate(answer, margins, slopes, kkt)
    return Solution(*concluded(regularizer, found, beta, (residual, kkt), certificate))


@dataclasses.dataclass(frozen=True)
class Margins:
    """min R(factor beta) under Z beta >= 1, the rows as they were given."""

    regularizer: Regularizer | MatrixNorm
    Z: Array
    factor: float = 1.0

    def certificate(self, answer: Answer, margins: Array, slopes: Array, kkt: float) -> Certificate:
        """The certificate of an answer with these margins and slopes Z^T dual."""
        if isinstance(self.regularizer, L1 | Linf | MatrixNorm):
            return self.of_norm(answer, margins, slopes)
        weights = answer.parts[0]
        active = weights > 0
        # no other margin may be short, and no weight negative
        rounding = ROUNDING * (np.abs(self.Z) @ np.abs(answer.beta))
        short = float(np.max(1 - margins - rounding, initial=0.0, where=~active))
        negative = max(0.0, -float(weights.min())) / max(float(np.abs(weights).max()), 1e-300)
        if isinstance(self.regularizer, Lp) and self.regularizer.p < 1:
            known = self.local(answer, active, kkt)
        else:
            known = self.on_active(answer, active)
            if not known.ok:
                known = min(known, self.lifted(answer, margins, slopes), key=by_error)
        return dataclasses.replace(known, error=known.error + short + negative)

    def of_norm(self, answer: Answer, margins: Array, slopes: Array) -> Certificate:
        """By the value of beta lifted to margins of one, and that of the dual in the unit ball."""
        if not margins.min() > 0:
            return UNKNOWN
        negative = np.maximum(-answer.parts[0], 0.0)
        slopes = slopes + negative @ self.Z  # a dual without its negative weights
        reward = exact.product(answer.parts, np.ones((len(margins), 1)))[0] + negative.sum()
        lower = reward / max(1.0, float(self.regularizer.dual_norm(slopes)))
        upper = self.regularizer(answer.beta) / min(1.0, float(margins.min()))
        return of_norm(upper, float(lower))

    def equations(self, regularizer: Any, active: NDArray[np.bool_]) -> Equations | None:
        """The active rows as equations; None where to float64 they contradict each other."""
        rows, ones = self.Z[active], np.ones(int(active.sum()))
        try:
            return Equations(regularizer, rows, ones, reduce("max_margin", rows, ones), self.factor)
        except ValueError:
            return None

    def on_active(self, answer: Answer, active: NDArray[np.bool_]) -> Certificate:
        """The certificate of the problem with the active rows as equations."""
        if not active.any():
            none = np.zeros_like(answer.beta)
            return of_smooth(self.regularizer, self.factor * answer.beta, none, none)  # type: ignore[arg-type]
        equations = self.equations(self.regularizer, active)
        if equations is None:
            return Certificate(np.inf, "estimate")
        return equations.certificate(Answer(answer.beta, answer.parts[:, active]))

    def lifted(self, answer: Answer, margins: Array, slopes: Array) -> Certificate:
        """The certificate of beta lifted to margins of at least one: no row must be met exactly."""
        least = float(margins.min())
        if not least > 0:
            return Certificate(np.inf, "estimate")
        change = answer.beta * (1 / min(least, 1.0) - 1)
        above = np.maximum(margins / min(least, 1.0) - 1, 0.0)
        spare = float(np.maximum(answer.parts[0], 0.0) @ above) * self.factor
        pair = self.factor * answer.beta, slopes, self.factor * change
        return of_smooth(self.regularizer, *pair, spare)  # type: ignore[arg-type]

    def local(self, answer: Answer, active: NDArray[np.bool_], kkt: float) -> Certificate:
        """An estimate for a local minimiser, the vertex of its active rows."""
        equations = self.equations(L1(), active)
        if equations is None:
            return Certificate(np.inf, "estimate")
        change, _ = equations.step(answer)
        return Certificate(
            kkt + float(np.abs(change).max() / np.abs(answer.beta).max()), "estimate"
        )


def by_error(certificate: Certificate) -> float:
    return certificate.error


def dual_misfit(dual: Array, margins: Array) -> float:
    """The worst of -nu_n and nu_n (margin_n - 1), relative to the largest dual weight."""
    largest = max(float(np.abs(dual).max()), 1e-300)
    return float(max(np.max(-dual), np.abs(dual * (margins - 1)).max()) / largest)
