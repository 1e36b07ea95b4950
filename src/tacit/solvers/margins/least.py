"""Margin problems of regularizers without a scale to follow: l2 exactly, others by their solver."""

from __future__ import annotations

import dataclasses

import numpy as np
import scipy

from tacit.arguments import Array
from tacit.regularizers.regularizer import Regularizer
from tacit.solvers import interpolate
from tacit.solvers.constraints import reduce
from tacit.solvers.continuation import Failed
from tacit.solvers.margins.active_set import Equations, Index, Iterate, settle
from tacit.solvers.margins.rows import Rows

ILL = 1e-6  # spread of the diagonal of a triangular factor that asks for more care


class LeastSquares(Equations):
    """min (1/2) sum b_i^2 / softness_i, by a QR factorization of the active rows."""

    def __init__(self, rows: Rows, softness: Array):
        self.rows, self.root = rows, np.sqrt(softness)

    def on(self, active: Index, at: Iterate) -> Iterate:
        nu, b = np.zeros(len(self.rows.c)), np.zeros(self.rows.A.shape[1])
        if active.size:
            weighted = self.rows.A[active] * self.root
            nu[active], inner = least_norm(weighted, self.rows.c[active])
            b = self.root * inner
        return Iterate(nu, b)


def least_norm(A: Array, c: Array) -> tuple[Array, Array]:
    """(dual, b) of the shortest b with A b = c, for independent rows."""
    basis, triangle = np.linalg.qr(A.T)
    sizes = np.abs(triangle.diagonal())
    if sizes.min() < ILL * sizes.max():  # an elimination that heeds the sizes of the columns
        system = reduce("max_margin", A, c)
        inner, nu = interpolate.least_norm(np.ones(1), system)
        return system.original_dual(nu) * system.scale, system.scale * inner
    try:
        inner = np.linalg.solve(triangle.T, c)
        # one step of refinement: the margins are met to the last digit
        inner += np.linalg.solve(triangle.T, c - A @ (basis @ inner))
        return np.linalg.solve(triangle, inner), basis @ inner
    except np.linalg.LinAlgError:
        raise Failed("the active rows are dependent") from None


class ByInterpolation(Equations):
    """Any regularizer that `interpolate` can minimise, each set of rows from scratch."""

    def __init__(self, rows: Rows, regularizer: Regularizer):
        self.rows, self.regularizer = rows, regularizer

    def on(self, active: Index, at: Iterate) -> Iterate:
        nu = np.zeros(len(self.rows.c))
        if not active.size:
            return Iterate(nu, self.regularizer.primal_of(np.zeros_like(at.b)) / self.rows.scale)
        system = reduce("max_margin", self.rows.A[active], self.rows.scale * self.rows.c[active])
        found = interpolate.solve(self.regularizer, system)
        if not found.outcome.ok:
            raise Failed(found.outcome.sentence)
        nu[active] = found.dual
        return Iterate(nu, found.beta / self.rows.scale)


def least_squares(rows: Rows, softness: Array) -> tuple[Index, Iterate, int]:
    """The l2 problem, begun at the answer of a compiled nonnegative least squares solver.

    Raises `Unbounded` with the weights of a combination at zero where there is no margin.
    """
    weighted = rows.A * np.sqrt(softness)
    if len(rows.c) < rows.A.shape[1]:
        span = Span(weighted.copy())
        sizes = np.abs(span.rows.diagonal())
        if sizes.min() > ILL * sizes.max():
            return in_span(rows, softness, span)
    nu = nonnegative(weighted, rows.c)
    start = Iterate(nu, np.zeros(weighted.shape[1]))
    return settle(LeastSquares(rows, softness), independent_rows(weighted, nu), start)


def in_span(rows: Rows, softness: Array, span: Span) -> tuple[Index, Iterate, int]:
    """The same with one coordinate for each row: the answer is a combination of the rows.

    Householder's factorization turns the rows into those of a triangle, with all products kept
    to rounding; the Gram matrix would square their condition.
    """
    inner = dataclasses.replace(rows, A=span.rows)
    active, found, steps = least_squares(inner, np.ones(len(rows.c)))
    b = np.sqrt(softness) * span.out(found.b)
    # one step of refinement, with the margins of the rows themselves
    missing = rows.c[active] - rows.A[active] @ b
    b = b + np.sqrt(softness) * span.out(least_norm(span.rows[active], missing)[1])
    return active, Iterate(found.nu, b), steps


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


def nonnegative(A: Array, c: Array) -> Array:
    """Dual weights of the least |b| with A b >= c, as least distance programming gives them.

    Minimise |A^T u|^2 + (c.u - 1)^2 over u >= 0. Zero is reached if no b meets the constraints;
    otherwise u / (1 - c.u) is the dual. The rounding of this route is left to `settle`.
    """
    from scipy.optimize import nnls

    target = np.zeros(A.shape[1] + 1)
    target[-1] = 1.0
    try:
        u = nnls(np.vstack([A.T, c]), target, maxiter=30 * len(c))[0]
    except RuntimeError:  # cycling; the exchanges of `settle` start from nothing then
        return np.zeros(len(c))
    short = 1.0 - float(c @ u)
    return u / short if short > 1e-10 else np.zeros(len(c))


def independent_rows(A: Array, nu: Array) -> Index:
    """The rows of positive weight if they are independent, otherwise none: a start for `settle`."""
    active = np.flatnonzero(nu > 0)
    if not active.size or len(active) > A.shape[1]:
        nu[:] = 0.0
        return np.empty(0, dtype=np.intp)
    sizes = np.abs(np.diag(np.linalg.qr(A[active].T)[1]))
    if sizes.min() > 1e-9 * sizes.max():
        return active
    nu[:] = 0.0
    return np.empty(0, dtype=np.intp)
