"""argmin regularizer(beta) under y_n <x_n, beta> >= 1: what a flow on separable data selects."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tacit.arguments import Array, classification_data
from tacit.bias import margin_face
from tacit.bias.continuation import Failed
from tacit.bias.margin_least import ByInterpolation, least_squares
from tacit.bias.margin_rows import Rows, scaled_rows
from tacit.bias.margin_set import Iterate, Unbounded, settle
from tacit.bias.margin_walk import MarginWalk
from tacit.bias.norms import L1, L2, Lp
from tacit.bias.pair import SignedPair
from tacit.bias.regularizer import Regularizer
from tacit.bias.separation import refuse_inseparable, refuse_zero_rows
from tacit.bias.solution import Solution, kkt_residual
from tacit.records import Kind, NumericalError, Outcome
from tacit.threads import one_blas_thread

Found = tuple[Array, Array, int, Outcome]  # beta, dual, iterations, outcome

SOLVED = Outcome(Kind.SOLVED, "the optimality conditions hold to rounding")


def max_margin(
    X: ArrayLike, y: ArrayLike, regularizer: Regularizer, *, throw: bool = True
) -> Solution:
    """The predictor with all margins y_n <x_n, beta> >= 1 and the least value of the regularizer.

    `residual` is the largest violation max(0, 1 - margin); `kkt` the worst of stationarity,
    negative dual weights and complementarity, each relative. Data that are not separable raise a
    ValueError. With `throw=False` a numerical failure comes back as the solution's outcome.
    """
    X, y = classification_data("max_margin", X, y)
    must_fit("max_margin", regularizer, X.shape[1])
    Z = X * y[:, None]
    with one_blas_thread():
        refuse_zero_rows("max_margin", Z)
        solution = certified(Z, regularizer, *solve("max_margin", regularizer, Z))
    if throw and not solution.outcome.ok:
        raise NumericalError("max_margin", solution.outcome)
    return solution


def must_fit(who: str, regularizer: Regularizer, dimension: int) -> None:
    """Checks that the regularizer is one and has room for `dimension` coordinates."""
    if not isinstance(regularizer, Regularizer):
        raise ValueError(f"{who}: expected a regularizer such as Q(...), got {regularizer!r}")
    if regularizer.dimension not in (None, dimension):
        raise ValueError(
            f"{who}: {regularizer} has {regularizer.dimension} coordinates,"
            f" but X has {dimension} columns"
        )


def solve(who: str, regularizer: Regularizer, Z: Array) -> Found:
    """(beta, dual, iterations, outcome) for signed rows without a zero row."""
    rows = scaled_rows(Z)
    try:
        if isinstance(regularizer, SignedPair):
            return by_walk(regularizer, rows)
        if isinstance(regularizer, L2):
            return by_least_squares(regularizer, rows)
        refuse_inseparable(who, Z)
        if is_l1(regularizer):
            return by_linear_program(rows)
        if isinstance(regularizer, Lp) and regularizer.p < 1:
            return best_local_point(regularizer, Z)
        return by_interpolation(regularizer, rows)
    except Unbounded:  # the l2 problem, which comes first, has no solution: nothing has
        refuse_inseparable(who, Z)
        return failed(Z, "the points are too close to inseparable for double precision")
    except Failed as reason:
        return failed(Z, str(reason))


def failed(Z: Array, reason: str) -> Found:
    """No solution, and why."""
    nothing = np.full(Z.shape[1], np.nan), np.full(len(Z), np.nan)
    return *nothing, 0, Outcome(Kind.STALLED, reason)


def by_least_squares(norm: L2, rows: Rows) -> Found:
    softness = np.broadcast_to(1 / norm.stiffness, rows.A.shape[1])
    _, found, steps = least_squares(rows, softness)
    return rows.scale * found.b, rows.factors * found.nu * rows.scale, steps, SOLVED


def by_linear_program(rows: Rows) -> Found:
    b, nu, steps, outcome = margin_face.solve(rows)
    return rows.scale * b, rows.factors * nu, steps, outcome


def by_walk(pair: SignedPair, rows: Rows) -> Found:
    """Q or R: followed from the kernel regime down to its scale."""
    b, nu, spent = MarginWalk(pair, rows).at(pair.level - np.log(rows.scale))
    return rows.scale * b, rows.factors * nu, spent, SOLVED


def best_local_point(norm: Lp, Z: Array) -> Found:
    """p < 1: the best of the local minimisers found from many starts."""
    from tacit.bias.stationary import local_points

    points = local_points(Z, norm)
    if not points:
        raise Failed("no local minimiser was found from any start")
    best, count = points[0], len(points)
    text = f"the best of {count} local minimisers found from many starts, not proven to be global"
    return best.beta, best.dual, sum(p.iterations for p in points), Outcome(Kind.SOLVED, text)


def by_interpolation(regularizer: Regularizer, rows: Rows) -> Found:
    """Any other convex regularizer: exchanges of rows around `interpolate`."""
    nothing = np.empty(0, dtype=np.intp)
    start = Iterate(np.zeros(len(rows.c)), np.zeros(rows.A.shape[1]))
    _, found, steps = settle(ByInterpolation(rows, regularizer), nothing, start)
    return rows.scale * found.b, rows.factors * found.nu, steps, SOLVED


def certified(
    Z: Array, regularizer: Regularizer, beta: Array, dual: Array, steps: int, outcome: Outcome
) -> Solution:
    """The solution with its certificate, computed from what is returned and the original data."""
    if not np.isfinite(beta).all():
        return Solution(beta, dual, np.nan, np.nan, np.nan, steps, outcome)
    margins = Z @ beta
    residual = float(np.maximum(1 - margins, 0.0).max())
    kkt = max(stationarity(regularizer, beta, dual @ Z), dual_misfit(dual, margins))
    worst = max(residual, kkt)
    if outcome.kind is Kind.SOLVED and worst > 1e-8:
        text = f"violation {residual:.2g} and KKT residual {kkt:.2g} are not small"
        outcome = Outcome(Kind.STALLED, text)
    elif outcome.kind is Kind.SOLVED and worst > 1e-10:
        outcome = Outcome(Kind.SOLVED, f"the optimality conditions hold to {worst:.1g}")
    return Solution(beta, dual, regularizer(beta), residual, kkt, steps, outcome)


def stationarity(regularizer: Regularizer, beta: Array, s: Array) -> float:
    """Distance of (beta, s) from the graph of the gradient; for p <= 1 it is vertical at zero."""
    if isinstance(regularizer, Lp) and regularizer.p < 1:
        slopes = regularizer.dual_of(beta)
        return float(np.abs(np.where(beta == 0, 0.0, s - slopes)).max() / np.abs(slopes).max())
    if is_l1(regularizer):
        return float(np.where(beta == 0, np.abs(s) - 1, np.abs(s - np.sign(beta))).max(initial=0.0))
    return kkt_residual(regularizer, beta, s)


def is_l1(regularizer: Regularizer) -> bool:
    return isinstance(regularizer, L1) or (isinstance(regularizer, Lp) and regularizer.p == 1)


def dual_misfit(dual: Array, margins: Array) -> float:
    """The worst of -nu_n and nu_n (margin_n - 1), relative to the largest dual weight."""
    largest = max(float(np.abs(dual).max()), 1e-300)
    return float(max(np.max(-dual), np.abs(dual * (margins - 1)).max()) / largest)
