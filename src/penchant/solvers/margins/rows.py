"""The margin constraints Z beta >= 1 in rows of comparable size, and their certificate."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from penchant.arguments import Array
from penchant.door import door_as
from penchant.regularizers.lp import Lp
from penchant.regularizers.norms import L1, Linf
from penchant.regularizers.q import SignedPair
from penchant.regularizers.regularizer import Regularizer
from penchant.regularizers.spectral import MatrixNorm
from penchant.solvers import exact
from penchant.solvers.accuracy import Equations, Given, compute_together, of_norm, of_smooth
from penchant.solvers.certificate import UNKNOWN, Certificate
from penchant.solvers.constraints import reduce, refitted, unit
from penchant.solvers.data import exponents
from penchant.solvers.solution import (
    SMALL,
    Found,
    Solution,
    concluded,
    kkt_residual,
    normalized,
)
from penchant.solvers.sparse_rows import gram, row_lengths

ROUNDING = 4e-15  # of the size of the terms of a margin
PLAIN = 1e-3  # distance of a unit row from the span of others beyond which nothing is magnified
MOST_OF = 0.1  # part of what the rows lack that a change may leave
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
    more = unit(row_lengths(A))
    factors = np.ldexp(more, powers)
    scale = float(factors.max())
    return Rows(A * more[:, None], factors / scale, scale, factors)


def met(given: Given, beta: Array, margins: Array, tight: NDArray[np.bool_]) -> tuple[Array, Array]:
    """(beta, margins) with no margin below one but for rounding, also of the largest rows.

    A margin of 1 on a row of size 1e8, for a beta of size 1e8, is known to one part in one. Aimed
    above one by its own rounding it is met, and beta moves by less than one part in 1e15.
    """
    Z = given.X
    for _ in range(3):
        terms = float(given.units.max()) * float(np.abs(beta).sum())
        if ROUNDING * terms <= SMALL and not (margins < 1 - SMALL).any():
            break
        rounding = ROUNDING * (given.sizes @ np.abs(beta))
        low = (margins < 1 - SMALL) | ((rounding > SMALL) & (margins < 1 + rounding / 2))
        if not low.any():
            break
        tight = tight | low
        beta = refitted(Z[tight], 1 + rounding[tight], beta)
        margins = 1 - given.missing(beta)
    return beta, margins


def certified(Z: Array, regularizer: Regularizer, candidate: Found, moved: bool = True) -> Solution:
    """The solution with its certificate, computed from what is returned and the original data."""
    return concluded_from(
        regularizer, candidate, posed(given_rows(Z), regularizer, candidate, moved)
    )


def certified_path(given: Given, points: Sequence[tuple[SignedPair, Found]]) -> list[Solution]:
    """The certified solutions of a path whose regularizers differ in their scale alone."""
    answers = [posed(given, *point) for point in points]
    compute_together([judged.answer for judged in answers if judged is not None])
    return [concluded_from(*point, judged) for point, judged in zip(points, answers, strict=True)]


def given_rows(Z: Array) -> Given:
    """The rows with targets of one."""
    return Given(Z, np.ones(len(Z)))


def posed(
    given: Given, regularizer: Regularizer, candidate: Found, moved: bool = True
) -> Margins | None:
    """What was found, moved onto its margins, as an answer; None where there is none."""
    beta, dual, Z = candidate.beta, candidate.dual, given.X
    if not np.isfinite(beta).all():
        return None
    margins = 1 - given.missing(beta)
    if candidate.outcome.ok:
        tight = margins < 1 - SMALL
        if not isinstance(regularizer, MatrixNorm):
            # the central path of a matrix norm ends with weights beside margins above one, and
            # where rows are nearly equal no predictor nearby has both of their margins at one
            tight |= dual > 0
        if (np.abs(margins - 1)[tight] > SMALL).any():
            beta = refitted(Z[tight], np.ones(int(tight.sum())), beta)
            margins = 1 - given.missing(beta)
        if moved:
            beta, margins = met(given, beta, margins, tight)
    inner, factor = normalized(regularizer, np.ones(1), candidate.log_unit)
    parts = np.vstack([dual, *candidate.rest])
    return Margins(inner, given, margins, parts, beta, float(factor[0]), candidate.mend)


def concluded_from(regularizer: Regularizer, candidate: Found, judged: Margins | None) -> Solution:
    """The solution that an answer is."""
    if judged is None:
        nothing = np.nan, np.nan, np.nan
        return Solution(
            candidate.beta, candidate.dual, *nothing, candidate.iterations, candidate.outcome
        )
    answer, margins = judged.answer, judged.margins
    residual = float(np.maximum(1 - margins, 0.0).max())
    graph = answer.graph if judged.smooth else None
    kkt = kkt_residual(judged.regularizer, answer.scaled, answer.slopes, graph)
    kkt = max(kkt, dual_misfit(candidate.dual, margins))
    certificate = judged.certificate(kkt)
    return Solution(*concluded(regularizer, candidate, answer.beta, (residual, kkt), certificate))


class Margins:
    """An answer to min R(factor beta) under Z beta >= 1, the rows as they were given."""

    def __init__(
        self,
        regularizer: Any,
        given: Given,
        margins: Array,
        parts: Array,
        beta: Array,
        factor: float,
        mend: Callable[[Array], Array] | None = None,
    ) -> None:
        self.regularizer, self.given, self.Z, self.margins = regularizer, given, given.X, margins
        self.weights, self.factor, self.mend = parts[0], factor, mend
        self.answer = Equations(regularizer, given, None, factor).answer(beta, parts)

    @property
    def smooth(self) -> bool:
        norm = isinstance(self.regularizer, L1 | Linf | MatrixNorm)
        return not norm and not self.concave

    @property
    def concave(self) -> bool:
        return isinstance(self.regularizer, Lp) and self.regularizer.p < 1

    def certificate(self, kkt: float) -> Certificate:
        """The certificate, for which none of the numbers is trusted."""
        active = self.weights > 0
        # no other margin may be short, and no weight negative
        lacking = np.where(active, 0.0, 1 - self.margins)
        short = 0.0
        if lacking.max() > 0:
            rounding = ROUNDING * (self.given.sizes @ np.abs(self.answer.beta))
            short = max(0.0, float((lacking - rounding).max()))
        largest = max(float(np.abs(self.weights).max()), 1e-300)
        wrong = short + max(0.0, -float(self.weights.min())) / largest
        if self.concave:
            known = self.local(active, kkt)
        elif not self.smooth:
            return self.of_norm()
        else:
            known = self.on_active(active)
            if not known.ok:
                known = min(known, self.lifted(), key=by_error)
        return dataclasses.replace(known, error=known.error + wrong)

    def of_norm(self) -> Certificate:
        """By the value of beta lifted to margins of one, and that of the dual in the unit ball."""
        least = float(self.margins.min())
        if not least > 0:
            return UNKNOWN
        negative = np.maximum(-self.weights, 0.0)
        slopes = self.answer.slopes + negative @ self.Z  # a dual without its negative weights
        ones = np.ones((len(self.margins), 1))
        reward = float(exact.product(self.answer.parts, ones)[0] + negative.sum())
        value = self.regularizer(self.answer.beta) / min(1.0, least)
        known = of_norm(value, 0.0, reward, float(self.regularizer.dual_norm(slopes)))
        return dataclasses.replace(known, error=known.error + max(1 - least, 0.0))

    @door_as("max_margin")
    def equations(self, regularizer: Any, active: NDArray[np.bool_]) -> Equations | None:
        """The active rows as equations; None where they contradict each other to float64, or are
        beyond it.
        """
        rows, ones = self.Z[active], np.ones(int(active.sum()))
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                at = reduce(rows, ones)
        except ValueError:
            return None
        if not np.isfinite(at.back).all():
            return None
        return Equations(regularizer, Given(rows, ones), at, self.factor)

    def on_active(self, active: NDArray[np.bool_]) -> Certificate:
        """The certificate of the problem with the active rows as equations."""
        if not active.any():
            return of_smooth(self.answer, np.zeros_like(self.answer.beta))
        change = self.newton_change(active)
        if change is None:
            change = self.plain_change(active)
        if change is not None:
            return of_smooth(self.answer, self.factor * change)
        equations = self.equations(self.regularizer, active)
        if equations is None:
            return Certificate(np.inf, "estimate")
        answer = equations.answer(self.answer.beta, self.answer.parts[:, active])
        if not (self.weights < 0).any():  # the same slopes and softness
            answer.__dict__.update(
                slopes=self.answer.slopes,
                graph=self.answer.graph,
                log_softness=self.answer.log_softness,
            )
        return equations.certificate(answer)

    def newton_change(self, active: NDArray[np.bool_]) -> Array | None:
        """The change of the solver's last step of Newton's method, where it meets active rows."""
        if self.mend is None:
            return None
        missing = (1 - self.margins) * active
        change = self.mend(missing)
        left = np.abs(missing - self.Z @ change)[active] / self.given.units[active]
        enough = MOST_OF * float((np.abs(missing) / self.given.units).max())
        return change if (left <= enough).all() else None

    def plain_change(self, active: NDArray[np.bool_]) -> Array | None:
        """The least change that meets the active rows; None unless they are plainly independent."""
        logs = self.answer.log_softness
        root = np.exp((logs - logs.max()) / 2)
        units = self.given.units[active]  # the length of a row in other units may overflow
        rows = self.Z[active] / units[:, None] * root
        lengths = row_lengths(rows)
        if not (lengths.min() > 0 and lengths.max() < np.inf):
            return None
        rows = rows / lengths[:, None]
        factor, failed = scipy.linalg.lapack.dpotrf(gram(rows), lower=1)
        if failed or factor.diagonal().min() < PLAIN:
            return None
        missing = (1 - self.margins[active]) / units / lengths
        return root * (scipy.linalg.lapack.dpotrs(factor, missing, lower=1)[0] @ rows)

    def lifted(self) -> Certificate:
        """The certificate of beta lifted to margins of at least one: no row must be met exactly."""
        least = min(float(self.margins.min()), 1.0)
        if not least > 0:
            return Certificate(np.inf, "estimate")
        above = np.maximum(self.margins / least - 1, 0.0)
        spare = float(np.maximum(self.weights, 0.0) @ above) * self.factor
        return of_smooth(self.answer, self.answer.scaled * (1 / least - 1), spare)

    def local(self, active: NDArray[np.bool_], kkt: float) -> Certificate:
        """An estimate for a local minimiser, the vertex of its active rows."""
        equations = self.equations(L1(), active)
        if equations is None:
            return Certificate(np.inf, "estimate")
        answer = equations.answer(self.answer.beta, self.answer.parts[:, active])
        change = float(np.abs(equations.reduced_change(answer)).max())
        return Certificate(kkt + change / float(np.abs(answer.beta).max()), "estimate")


def by_error(certificate: Certificate) -> float:
    return certificate.error


def dual_misfit(dual: Array, margins: Array) -> float:
    """The worst of -nu_n and nu_n (margin_n - 1), relative to the largest dual weight."""
    largest = max(float(np.abs(dual).max()), 1e-300)
    return float(max(np.max(-dual), np.abs(dual * (margins - 1)).max()) / largest)
