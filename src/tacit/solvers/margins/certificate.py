"""The certificate of a predictor of least norm with margins of at least one."""

from __future__ import annotations

import numpy as np

from tacit.arguments import Array
from tacit.regularizers.norms import L1, Lp
from tacit.regularizers.regularizer import Regularizer
from tacit.solvers import exact
from tacit.solvers.constraints import mended
from tacit.solvers.margins.rows import margins_of, met
from tacit.solvers.solution import (
    ROUNDING,
    SMALL,
    Found,
    Solution,
    judged,
    kkt_residual,
    l1_residual,
    log_value_of,
    normalized,
)
from tacit.solvers.units import representable


def certified(Z: Array, regularizer: Regularizer, found: Found, moved: bool = True) -> Solution:
    """The solution with its certificate, computed from what is returned and the original data.

    It is moved by what rounding took from its margins, unless that is not wanted: to meet two
    nearly opposite rows in float64 it may have to move far.
    """
    beta, dual, steps, outcome, log_unit, rest = found
    if not np.isfinite(beta).all():
        return Solution(beta, dual, np.nan, np.nan, np.nan, steps, outcome)
    margins = margins_of(Z, beta)
    held = (dual > 0) | (margins < 1 - SMALL)
    if outcome.ok:
        if (np.abs(margins - 1)[held] > SMALL).any():
            beta = mended(Z[held], np.ones(int(held.sum())), beta)
        beta, margins = met(Z, beta, held) if moved else (beta, margins_of(Z, beta))
    residual = float(np.maximum(1 - margins, 0.0).max())
    inner, unit_beta = normalized(regularizer, beta, log_unit)
    parts = np.vstack([dual, *rest])
    slopes = exact.product(parts, Z) if rest else dual @ Z
    kkt = max(stationarity(inner, unit_beta, slopes), dual_misfit(dual, margins))
    excess = max(residual, kkt)
    if excess > SMALL:
        sizes, spare = np.abs(Z), ROUNDING * (np.abs(Z) @ np.abs(beta))
        blur = 0.0 if rest else ROUNDING * float((np.abs(dual) @ sizes).max())
        excess = max(
            float(np.maximum(1 - margins - spare, 0.0).max()),
            stationarity(inner, unit_beta, slopes, blur),
            dual_misfit(dual, margins, spare),
        )
    if log_unit:
        parts, log_unit = representable(parts, 0, log_unit)
    outcome = judged(outcome, beta, parts[0], residual, kkt, excess)
    value = regularizer(beta)
    log_value = log_value_of(regularizer, beta, value)
    certificate = residual, kkt, steps, outcome, log_value, log_unit
    return Solution(beta, parts[0], value, *certificate, tuple(parts[1:]))


def stationarity(regularizer: Regularizer, beta: Array, s: Array, rounding: float = 0.0) -> float:
    """Distance of (beta, s) from the graph of the gradient; for p <= 1 it is vertical at zero."""
    if isinstance(regularizer, Lp) and regularizer.p < 1:
        slopes = regularizer.dual_of(beta)
        return float(np.abs(np.where(beta == 0, 0.0, s - slopes)).max() / np.abs(slopes).max())
    if is_l1(regularizer):
        return l1_residual(beta, s, rounding)
    return kkt_residual(regularizer, beta, s, rounding)


def is_l1(regularizer: Regularizer) -> bool:
    return isinstance(regularizer, L1) or (isinstance(regularizer, Lp) and regularizer.p == 1)


def dual_misfit(dual: Array, margins: Array, rounding: Array | float = 0.0) -> float:
    """The worst of -nu_n and nu_n (margin_n - 1), relative to the largest dual weight."""
    largest = max(float(np.abs(dual).max()), 1e-300)
    apart = np.maximum(np.abs(margins - 1) - rounding, 0.0)
    return float(max(np.max(-dual), np.abs(dual * apart).max()) / largest)
