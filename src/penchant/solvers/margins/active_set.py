"""The active set of a margin problem: which rows of A b >= c hold with equality.

How it works. The conditions of min R(b) under A b >= c are grad R(b) = A^T nu with nu >= 0, and
nu_n = 0 wherever a margin is larger than c_n (docs/theory section 12). With a set of rows taken
as equations this is what `interpolate` solves, except that nu may come out negative. Lawson and
Hanson's exchange, made for least squares, finds the right set for any convex R: move nu from where
it is towards the solution on the present rows; if a weight gets to zero first, stop there and drop
its row; if none does, add the row that is violated most; end when none is violated. The dual rises
with every move, so no set occurs twice and no rule against cycling is needed.

`settle` knows R only through `on`, which solves with equations, so one exchange serves l2, Q at any
scale and the other norms.

Pitfalls. A row that enters may depend on the active ones, and equations on dependent rows have no
solution: dual weight is then moved from the rows that make it up to the new row, which changes no
predictor, until one of them has none left (`enter`). If no row can give weight, the rows have a
nonnegative combination at zero and the data are not separable. Whether a sum is zero is decided in
units of the rows' own lengths, since the units of a row are the user's. The l2 problem begins at
the answer of a compiled nonnegative least squares, which may cycle or stop on dependent rows, so
its answer is a start and never the end.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from penchant.arguments import Array
from penchant.door import door_as
from penchant.limits import check_time
from penchant.solvers import interpolate
from penchant.solvers.constraints import reduce
from penchant.solvers.continuation import Failed
from penchant.solvers.margins.rows import Rows
from penchant.solvers.sparse_rows import SparseRows, gram, row_lengths

Index = NDArray[np.intp]
NEGATIVE = 1e-13  # of the largest dual weight: below zero by less than this is rounding
ROUNDING = 64 * float(np.finfo(float).eps)  # of the terms of a sum that Lawson and Hanson leave
DEPENDENT = 1e-12  # distance of a unit row from the span of others that counts as none
ILL = 1e-6  # spread of the diagonal of a triangular factor that requires more care


@dataclasses.dataclass(frozen=True)
class Iterate:
    """A dual vector over all rows, nonnegative, and the predictor b it stands for."""

    nu: Array
    b: Array


class Unbounded(Exception):
    """The rows have a nonnegative combination at zero, `weights`: no b has positive margins."""

    def __init__(self, weights: Array):
        super().__init__("no predictor meets the margins")
        self.weights = weights


def straight(start: Iterate, end: Iterate, part: float) -> Iterate:
    """The iterate at the fraction `part` of the way, its b left as it was."""
    return Iterate(start.nu + part * (end.nu - start.nu), start.b)


def settle(
    rows: Rows,
    on: Callable[[Index, Any], Any],
    active: Index,
    at: Any,
    goal: Any = None,
    between: Callable[[Any, Any, float], Any] = straight,
) -> tuple[Index, Any, int]:
    """(active set, minimiser, equations solved) of the margin problem, from a dual feasible start.

    `on` gives the minimiser with equality on a set of rows, started from an iterate; nu may be
    negative. `goal` is that on `active`, where it is known already.
    Raises `Unbounded` where the rows are not separable, `Failed` where rounding lets no end come.
    """
    budget = 20 * (len(at.nu) + len(at.b)) + 100
    for solved in range(1, budget):
        check_time()
        if goal is None:
            goal = on(active, at)
        if (stop := first_zero(active, at.nu, goal.nu)) is not None:
            part, row = stop
            at = between(at, goal, part)
            at.nu[row] = 0.0
            active, goal = active[active != row], None
            continue
        at, goal = goal, None
        np.maximum(at.nu, 0.0, out=at.nu)
        lacking = rows.lacking(at.b)
        lacking[active] = 0.0
        if not lacking.any():
            return active, at, solved
        active, at = enter(rows, active, at, int(np.argmax(lacking)))
    raise Failed(f"no active set after {budget} exchanges")


def first_zero(active: Index, start: Array, end: Array) -> tuple[float, int] | None:
    """(part of the way, row) at which the first dual weight gets to zero; None if none does."""
    falling = active[negative(end[active])]
    if not falling.size:
        return None
    parts = start[falling] / (start[falling] - end[falling])
    first = int(np.argmin(parts))
    return float(np.clip(parts[first], 0.0, 1.0)), int(falling[first])


def negative(nu: Array) -> NDArray[np.bool_]:
    """Which dual weights are below zero by more than rounding."""
    return nu < -NEGATIVE * np.abs(nu).max(initial=0.0)


def enter(rows: Rows, active: Index, at: Any, row: int) -> tuple[Index, Any]:
    """The active set with a violated row in it, in exchange for another where it depends on them.

    If row = sum c_j row_j then moving dual weight t from the c_j to the row changes no predictor;
    the first weight that gets to zero leaves. If no c_j is positive the rows c_j <= 0 and the new
    one combine to zero: there is no margin at all.
    """
    A = rows.by_columns
    shares = dependence(A[active], A[row])
    if shares is None:
        return np.append(active, row), at
    # each part of the sum in units of the length of the row: its unit changes no decision
    parts = shares * row_lengths(A[active]) / np.linalg.norm(A[row])
    positive = parts > DEPENDENT * max(1.0, float(np.abs(parts).max(initial=0.0)))
    if not positive.any():
        weights = np.zeros(len(A))
        weights[active], weights[row] = np.maximum(-shares, 0.0), 1.0
        raise Unbounded(weights)
    room = np.full(len(active), np.inf)
    room[positive] = at.nu[active][positive] / shares[positive]
    leaves = int(np.argmin(room))
    nu = at.nu.copy()
    nu[active] = np.maximum(nu[active] - room[leaves] * shares, 0.0)
    nu[row] = room[leaves]
    nu[active[leaves]] = 0.0
    return np.append(np.delete(active, leaves), row), dataclasses.replace(at, nu=nu)


def dependence(others: Array, row: Array) -> Array | None:
    """The coefficients of `row` in the span of `others`, None if it is outside of it."""
    if not len(others) or (len(others) < len(row) and plainly_outside(others, row)):
        return None
    lengths, length = row_lengths(others), float(np.linalg.norm(row))
    others, row = others / lengths[:, None], row / length
    shares = nearest(others, row)
    distance = float(np.linalg.norm(row - shares @ others))
    # as many as there are columns span everything, since they are independent already
    spanned = len(others) >= len(row)
    if not spanned and distance > DEPENDENT * (1 + float(np.abs(shares).sum())):
        return None
    return shares * length / lengths


def nearest(others: Any, row: Array) -> Array:
    """The coefficients of the point nearest to `row` in the span of `others`."""
    if isinstance(others, np.ndarray):
        return np.asarray(np.linalg.lstsq(others.T, row, rcond=1e-12)[0], dtype=np.float64)
    inverse = np.linalg.pinv(gram(others), rcond=1e-12, hermitian=True)
    shares = inverse @ (others @ row)
    for _ in range(2):  # the Gram matrix has the square of the condition
        shares += inverse @ (others @ (row - shares @ others))
    return np.asarray(shares)


def plainly_outside(others: Array, row: Array) -> bool:
    """A cheap test that settles the common case: `row` far outside the span of `others`."""
    products = gram(others)
    products[np.diag_indices_from(products)] *= 1 + 1e-10  # relative, for Cholesky alone
    factor, failed = scipy.linalg.lapack.dpotrf(products, lower=1)
    if failed:
        return False
    shares = scipy.linalg.lapack.dpotrs(factor, others @ row, lower=1)[0]
    return bool(np.linalg.norm(row - shares @ others) > 1e-3 * np.linalg.norm(row))


@door_as("max_margin")
def least_norm(A: Array, c: Array) -> tuple[Array, Array]:
    """(dual, b) of the shortest b with A b = c, for independent rows."""
    work = 64 * len(A)
    factor, tau, _, _ = scipy.linalg.lapack.dgeqrf(A.T, lwork=work)
    sizes = np.abs(factor.diagonal())
    if sizes.min() < ILL * sizes.max():  # an elimination that heeds the sizes of the columns
        try:
            system = reduce(A, c)
        except ValueError:
            raise Failed("to float64 the active rows contradict each other") from None
        inner, nu = interpolate.least_norm(np.ones(1), system)
        with np.errstate(over="ignore", invalid="ignore"):
            dual, b = system.original_dual(nu) * system.scale, system.scale * inner
        if not (np.isfinite(dual).all() and np.isfinite(b).all()):
            raise Failed("the shortest predictor with these margins is beyond float64")
        return dual, b
    if len(A) > A.shape[1] or not sizes.all():
        raise Failed("the active rows are dependent")
    basis = scipy.linalg.lapack.dorgqr(factor, tau, lwork=work)[0]
    triangle = factor[: len(A)]
    solve = scipy.linalg.lapack.dtrtrs  # which reads the upper triangle alone
    inner = solve(triangle, c, trans=1)[0]
    # one step of refinement: the margins are met to the last digit
    inner += solve(triangle, c - A @ (basis @ inner), trans=1)[0]
    return solve(triangle, inner)[0], basis @ inner


def least_squares(rows: Rows, softness: Array) -> tuple[Index, Iterate, int]:
    """The l2 problem, begun at the answer of a compiled nonnegative least squares solver."""
    weighted = rows.A * np.sqrt(softness)
    if len(rows.c) < rows.A.shape[1]:
        if isinstance(weighted, SparseRows):
            return in_span(rows, softness, SparseSpan(weighted))
        span = Span(weighted.copy())
        sizes = np.abs(span.rows.diagonal())
        if sizes.min() > ILL * sizes.max():
            return in_span(rows, softness, span)

    def on(active: Index, at: Iterate) -> Iterate:
        nu, b = np.zeros(len(rows.c)), np.zeros(rows.A.shape[1])
        if active.size:
            nu[active], inner = least_norm(weighted[active], rows.c[active])
            b = np.sqrt(softness) * inner
        return Iterate(nu, b)

    scaled_dual = nonnegative(weighted, rows.c)
    nu = np.zeros(len(rows.c)) if scaled_dual is None else scaled_dual[0] / scaled_dual[1]
    active = np.flatnonzero(nu > 0)
    if not independent_rows(weighted[active]):
        nu, active = np.zeros(len(rows.c)), active[:0]
    return settle(rows, on, active, Iterate(nu, np.zeros(weighted.shape[1])))


def in_span(rows: Rows, softness: Array, span: Span | SparseSpan) -> tuple[Index, Iterate, int]:
    """The same with one coordinate for each row: the answer is a combination of the rows."""
    inner = dataclasses.replace(rows, A=span.rows)
    active, end, steps = least_squares(inner, np.ones(span.rows.shape[1]))
    b = np.sqrt(softness) * span.out(end.b)
    # one step of refinement, with the margins of the rows themselves
    missing = rows.c[active] - rows.A[active] @ b
    b = b + np.sqrt(softness) * span.out(least_norm(span.rows[active], missing)[1])
    return active, Iterate(end.nu, b), steps


class Span:
    """The rows in an orthonormal basis of their own; overwrites the matrix it is given."""

    def __init__(self, matrix: Array):
        count = len(matrix)
        self.reflectors, self.tau, _, _ = scipy.linalg.lapack.dgeqrf(
            matrix.T, lwork=64 * count, overwrite_a=1
        )
        self.rows = np.ascontiguousarray(np.triu(self.reflectors[:count]).T)

    def out(self, inner: Array) -> Array:
        """The vector with these coordinates in the basis."""
        vector = np.zeros((len(self.reflectors), 1))
        vector[: len(inner), 0] = inner
        turned, _, _ = scipy.linalg.lapack.dormqr("L", "N", self.reflectors, self.tau, vector, 64)
        return np.asarray(turned[:, 0])


class SparseSpan:
    """The same for sparse rows, from the eigenvectors of their Gram matrix."""

    def __init__(self, matrix: Any):
        values, vectors = np.linalg.eigh(matrix.gram())
        new = values > len(values) * float(np.finfo(float).eps) * values[-1]
        self.matrix, self.inverse = matrix, vectors[:, new] / np.sqrt(values[new])
        self.rows = vectors[:, new] * np.sqrt(values[new])

    def out(self, inner: Array) -> Array:
        """The vector with these coordinates in the basis."""
        return np.asarray((self.inverse @ inner) @ self.matrix)


def nonnegative(G: Array, h: Array) -> tuple[Array, float] | None:
    """(u, short), u / short the dual of the least |w| with G w >= h, None where none was found.

    Lawson and Hanson: minimise |G^T u|^2 + (h.u - 1)^2 over u >= 0. Zero is reached if no w meets
    the constraints; otherwise short = 1 - h.u is positive.
    """
    from scipy.optimize import nnls

    target = np.zeros(G.shape[1] + 1)
    target[-1] = 1.0
    try:
        u = nnls(np.vstack([G.T, h]), target, maxiter=30 * len(h))[0]
    except RuntimeError:  # cycling
        return None
    short = 1.0 - float(h @ u)
    # 1 - h.u is known to the rounding of its terms; with |w| = 1e5 it is 1e-10, and no less sure
    return (u, short) if short > ROUNDING * (1.0 + float(np.abs(h) @ u)) else None


def independent_rows(A: Array) -> bool:
    if not 0 < len(A) <= A.shape[1]:
        return False
    sizes = np.abs(scipy.linalg.lapack.dgeqrf(A.T)[0].diagonal())
    return bool(sizes.min() > 1e-9 * sizes.max())
