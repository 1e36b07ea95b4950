"""argmin regularizer(beta) under y_n <x_n, beta> >= 1: what a flow on separable data selects."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array
from penchant.columns import named_as_given
from penchant.door import Invalid, door, door_as
from penchant.limits import OutOfTime, limited
from penchant.problems.classification import Classification
from penchant.records import Kind, NumericalError, Outcome
from penchant.regularizers.lp import Lp
from penchant.regularizers.norms import L1, L2, Linf
from penchant.regularizers.q import SignedPair
from penchant.regularizers.regularizer import Regularizer
from penchant.regularizers.spectral import MatrixNorm
from penchant.solvers import interpolate, power_norm
from penchant.solvers.constraints import reduce
from penchant.solvers.continuation import FAR, Failed
from penchant.solvers.data import FARTHEST, common_units, unpacked
from penchant.solvers.margins import face, norms
from penchant.solvers.margins.active_set import (
    Index,
    Iterate,
    Unbounded,
    least_squares,
    settle,
)
from penchant.solvers.margins.rows import Rows, certified, scaled_rows
from penchant.solvers.margins.separation import refuse_inseparable, refuse_zero_rows
from penchant.solvers.margins.walk import MarginWalk
from penchant.solvers.solution import (
    SMALL,
    SOLVED,
    Found,
    Solution,
    as_sum,
    must_fit,
    of_root,
    restored,
    unfinished,
    unreachable,
)
from penchant.solvers.sparse_rows import SparseRows, classification_rows
from penchant.solvers.stationary import local_points
from penchant.threads import one_blas_thread


@door
@named_as_given
def max_margin(
    X: ArrayLike | Classification,
    y: ArrayLike | Regularizer | MatrixNorm | None = None,
    regularizer: Regularizer | MatrixNorm | None = None,
    *,
    throw: bool = True,
    max_seconds: float | None = None,
) -> Solution:
    """The predictor with all margins y_n <x_n, beta> >= 1 and the least value of the regularizer.

    `residual` of the solution is the largest violation max(0, 1 - margin); its `kkt` is the
    worst of stationarity, negative dual weights and complementarity, each relative. Where several
    predictors have the least l_inf, nuclear or spectral norm, it is one of them.

    Parameters
    ----------
    X
        The samples, one row each, a sparse matrix of SciPy, which stays sparse, or a problem
        instead of X and y.
    y
        The labels, -1 or +1.
    regularizer
        The function to minimise, such as L1(), Linf() or Q(alpha=0.1). With
        Nuclear(shape) or Spectral(shape) every sample, and the predictor, is the row of entries
        of a matrix of this shape.
    throw
        False returns a numerical failure as the outcome instead of raising it.
    max_seconds
        The call ends after this time as a failure; None sets no limit.

    Returns
    -------
    Solution
        The minimiser with the numbers that prove it.

    Raises
    ------
    ValueError
        The data are not separable, or an argument is wrong.

    Examples
    --------
    >>> import penchant
    >>> X, y = [[1.0, 2.0], [-2.0, -1.0]], [1, -1]
    >>> penchant.max_margin(X, y, penchant.L2()).beta.round(4)
    array([0.3333, 0.3333])
    """
    given, labels, reg = unpacked(Classification, X, y, regularizer)
    rows, signs = classification_rows(given, labels)
    must_fit(reg, rows.shape[1])
    if isinstance(rows, SparseRows) and needs_all_entries(reg):
        raise Invalid(f"{reg} needs all entries of X; give X.toarray() if it fits in memory")
    if isinstance(reg, Lp) and reg.p == 1:
        reg = L1()
    Z = rows * signs[:, None]
    with one_blas_thread(), limited(max_seconds):
        refuse_zero_rows(Z)
        try:
            solution = in_good_units(as_sum(reg), Z)
        except OutOfTime as reason:
            solution = unfinished(Z, reason)
    if throw and not solution.outcome.ok:
        raise NumericalError("max_margin", solution.outcome)
    return solution if as_sum(reg) is reg else of_root(solution)


def needs_all_entries(regularizer: Any) -> bool:
    """Whether the program of this regularizer has a dense block as large as X."""
    concave = isinstance(regularizer, Lp) and regularizer.p < 1
    return concave or isinstance(regularizer, Linf | MatrixNorm)


def in_good_units(regularizer: Regularizer, Z: Array) -> Solution:
    """The certified solution, found in other units where the rows are huge or tiny."""
    units = common_units(Z)
    if units is not None and regularizer.degree is None and units.predictor > FARTHEST:
        return Solution(*unreachable(regularizer, Z.shape[1], len(Z)))
    if units is None or regularizer.degree is None:
        return best_certified(regularizer, Z)
    Z, inner = units.of_rows(Z), regularizer.in_units(units.log_size)
    return restored(best_certified(inner, Z), units, regularizer)


def best_certified(regularizer: Regularizer, Z: Array) -> Solution:
    """The certified solution; its active rows are solved once more where that is not good."""
    candidate = solve(regularizer, Z)
    solution = certified(Z, regularizer, candidate)
    if max(solution.residual, solution.kkt) <= SMALL or not candidate.outcome.ok:
        return solution
    if isinstance(regularizer, L1 | Linf | MatrixNorm) or (
        isinstance(regularizer, Lp) and regularizer.p < 1
    ):
        return solution
    try:
        again = on_active_rows(regularizer, Z, candidate)
    except (ValueError, Failed):  # to float64 these rows contradict each other
        return solution
    others = (certified(Z, regularizer, again, moved) for moved in (True, False))
    return next((s for s in others if s.outcome.ok and s.kkt <= solution.kkt), solution)


def on_active_rows(regularizer: Regularizer, Z: Array, candidate: Found) -> Found:
    """The same by `interpolate` on the rows of positive weight, which gives the dual exactly."""
    active = np.flatnonzero(candidate.dual > 0)
    system = reduce(Z[active], np.ones(len(active)))
    again = interpolate.solve(regularizer, system)
    parts = np.zeros((1 + len(again.rest), len(Z)))
    parts[:, active] = np.vstack([again.dual, *again.rest])
    steps = candidate.iterations + again.iterations
    rest = tuple(parts[1:])
    return Found(again.beta, parts[0], steps, again.outcome, again.log_unit, rest)


def solve(regularizer: Regularizer, Z: Array) -> Found:
    """(beta, dual, iterations, outcome) for signed rows without a zero row."""
    try:
        return by_kind(regularizer, Z)
    except NumericalError as reason:  # whether they are separable is beyond float64
        return failed(Z, reason.outcome.sentence)


def by_kind(regularizer: Regularizer, Z: Array) -> Found:
    rows = scaled_rows(Z)
    try:
        if isinstance(regularizer, SignedPair):
            return by_walk(regularizer, rows)
        if isinstance(regularizer, L2):
            return by_least_squares(regularizer, rows)
        refuse_inseparable(Z)
        if isinstance(regularizer, L1):
            candidate = face.solve(rows)
            rest = tuple(rows.factors * part for part in candidate.rest)
            pair = rows.scale * candidate.beta, rows.factors * candidate.dual
            return Found(*pair, candidate.iterations, candidate.outcome, 0.0, rest)
        if isinstance(regularizer, Linf | MatrixNorm):
            return norms.solve(regularizer, rows)
        if isinstance(regularizer, Lp) and regularizer.p < 1:
            return best_local_point(regularizer, Z)
        return by_interpolation(regularizer, rows)
    except Unbounded:  # the l2 problem, which comes first, has no solution: nothing has
        refuse_inseparable(Z)
        return failed(Z, "the points are too close to inseparable for double precision")
    except Failed as reason:
        return failed(Z, str(reason))


def failed(Z: Array, reason: str, kind: Kind = Kind.STALLED) -> Found:
    nothing = np.full(Z.shape[1], np.nan), np.full(len(Z), np.nan)
    return Found(*nothing, 0, Outcome(kind, reason))


def by_least_squares(norm: L2, rows: Rows) -> Found:
    softness = np.broadcast_to(1 / norm.spread_weights, rows.A.shape[1])
    _, minimum, steps = least_squares(rows, softness)  # of half the sum of squares
    with np.errstate(over="ignore"):  # the factors of tiny rows are huge
        dual = 2 * (rows.scale * minimum.nu) * rows.factors
    if np.isfinite(dual).all():
        return Found(rows.scale * minimum.b, dual, steps, SOLVED)
    unit = float(np.log(2 * rows.scale))
    return Found(rows.scale * minimum.b, rows.factors * minimum.nu, steps, SOLVED, unit)


def by_walk(pair: SignedPair, rows: Rows) -> Found:
    walk, level = MarginWalk(pair, rows), pair.level - float(np.log(rows.scale))
    if pair.tilt is not None and (free := walk.free(level)) is not None:
        return Found(rows.scale * free, np.zeros(len(rows.c)), 0, SOLVED)
    near = min(level, walk.reach + FAR) if pair.tilt is None else level
    b, nu, spent = walk.at(near)
    return Found(rows.scale * b, rows.factors * nu, spent, SOLVED, near - level)


def best_local_point(norm: Lp, Z: Array) -> Found:
    """p < 1: the best of the local minimisers found from many starts."""
    points = local_points(Z, norm)
    if not points:
        raise Failed("no local minimiser was found from any start")
    best, count = points[0], len(points)
    text = f"the best of {count} local minimisers found from many starts, not proven to be global"
    spent = sum(p.iterations for p in points)
    return Found(best.beta, best.dual, spent, Outcome(Kind.SOLVED, text))


def by_interpolation(regularizer: Regularizer, rows: Rows) -> Found:
    """Any other convex regularizer: exchanges of rows around `interpolate`."""

    @door_as("max_margin")
    def on(active: Index, at: Iterate) -> Iterate:
        nu = np.zeros(len(rows.c))
        if not active.size:
            return Iterate(nu, regularizer.primal_of(np.zeros_like(at.b)) / rows.scale)
        system = reduce(rows.A[active], rows.scale * rows.c[active])
        solution = interpolate.solve(regularizer, system)
        if not solution.outcome.ok:
            raise Failed(solution.outcome.sentence)
        nu[active] = solution.dual
        return Iterate(nu, solution.beta / rows.scale)

    start = Iterate(np.zeros(len(rows.c)), np.zeros(rows.A.shape[1]))
    _, end, steps = settle(rows, on, np.empty(0, dtype=np.intp), start)
    beta, unit = rows.scale * end.b, 0.0
    if isinstance(regularizer, Lp):  # `interpolate` gives the dual of the norm, which has no unit
        unit = (regularizer.p - 1) * power_norm.log_norm(regularizer.p, beta)
    return Found(beta, rows.factors * end.nu, steps, SOLVED, unit)
