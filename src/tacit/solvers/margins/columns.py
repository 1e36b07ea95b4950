"""argmin |b|_1 under A b >= c when A has many more columns than rows, from a few of them.

A pair (b, nu) solved on some columns is one on all columns if |A^T nu| <= 1 on the others too;
those that are longer join. Where margins tie, as they do on a cube, nu is far from unique and the
one a linear program ends with makes very many columns too long, round after round. The shortest
nu that belongs to the same b spreads over all ties, and few columns have to be held at length 1.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from tacit.arguments import Array
from tacit.solvers.continuation import Failed
from tacit.solvers.margins.active_set import Index
from tacit.solvers.margins.l1 import corrected, linear_program, primal, vertex
from tacit.solvers.margins.rows import Rows

WIDE = 4  # columns for each row from which on a few of them are tried first
LONG = 1e-11  # above 1: a length that is not rounding


def solve(rows: Rows) -> tuple[Array, Array, int]:
    """(b, nu, iterations), a vertex of the minimisers and a dual, for separable rows."""
    samples, dimension = rows.A.shape
    if dimension <= WIDE * samples:
        b, nu, steps = linear_program(rows)
        return *vertex(rows, b, nu), steps
    kept, total = most(np.abs(rows.A.sum(axis=0)), 2 * samples), 0
    while True:
        kept, b, nu, steps = restricted(rows, kept)
        total += steps
        exact, dual, long = priced(rows, b, nu)
        joined = np.union1d(kept, long)
        if len(joined) == len(kept):
            return exact, dual, total
        kept = joined


def most(sizes: Array, count: int) -> Index:
    """The places of the `count` largest."""
    return np.argsort(-sizes, kind="stable")[:count]


def restricted(rows: Rows, kept: Index) -> tuple[Index, Array, Array, int]:
    """(columns, b, nu, iterations) of the linear program on `kept`, or on more if that has none."""
    dimension = rows.A.shape[1]
    while True:
        inside = dataclasses.replace(rows, A=rows.A[:, kept])
        try:
            some, nu, steps = linear_program(inside)
        except Failed:
            if len(kept) == dimension:
                raise
            more = np.setdiff1d(np.arange(dimension), kept)[: len(kept)]
            kept = np.union1d(kept, more)
            continue
        b = np.zeros(dimension)
        b[kept] = some
        return kept, b, nu, steps


def priced(rows: Rows, b: Array, nu: Array) -> tuple[Array, Array, Index]:
    """(b, dual, columns that may shorten b): none of them if the pair is optimal."""
    exact, support, active = primal(rows, b, nu)
    dual, held = serving(rows, DualFace(rows, exact, support, active))
    if dual is not None:
        return exact, dual, np.empty(0, dtype=np.intp)
    exact, dual = vertex(rows, b, nu)
    return exact, dual, np.abs(np.union1d(held, too_long(rows, dual))) - 1


def serving(rows: Rows, face: DualFace) -> tuple[Array | None, Index]:
    """A dual of b under which no column is too long, or None and the columns that prevent it."""
    held = np.empty(0, dtype=np.intp)
    while (dual := face.shortest(held)) is not None:
        long = too_long(rows, dual)
        if not long.size:
            return dual, held
        if len(joined := np.union1d(held, long)) == len(held):  # to rounding there is no other
            return None, held
        held = joined
    return None, held


def too_long(rows: Rows, nu: Array) -> Index:
    """The columns longer than 1 under nu, the longest if there are many, as +-(1 + place)."""
    lengths = nu @ rows.A
    long = np.flatnonzero(np.abs(lengths) > 1 + LONG)
    long = long[most(np.abs(lengths[long]), 2 * len(nu))]
    return np.where(lengths[long] > 0, 1 + long, -1 - long)


class DualFace:
    """The dual vectors that prove b optimal on its support: nu >= 0, A^T nu = sign(b) there."""

    def __init__(self, rows: Rows, b: Array, support: Index, active: Index):
        self.rows, self.support, self.active = rows, support, active
        self.signs = np.sign(b[support])
        matrix = rows.A[np.ix_(active, support)]
        left, sizes, _ = np.linalg.svd(matrix, full_matrices=True)
        self.free = left[:, int(np.sum(sizes > 1e-12 * sizes[0])) :]  # keeps A^T nu on the support
        self.least = corrected(matrix.T, np.zeros(len(active)), self.signs)
        self.empty = bool(np.abs(matrix.T @ self.least - self.signs).max() > LONG)

    def shortest(self, held: Index) -> Array | None:
        """The shortest of them under which no held column is longer than 1, None without any."""
        columns = self.rows.A[np.ix_(self.active, np.abs(held) - 1)] * np.sign(held)
        unit = float(np.linalg.norm(self.least))
        walls = np.vstack([self.free, -columns.T @ self.free])
        room = np.concatenate([-self.least, columns.T @ self.least - 1])
        move = None if self.empty else least_distance(walls, room / unit)
        if move is None:
            return None
        nu = np.zeros(len(self.rows.c))
        nu[self.active] = self.polished(self.least + unit * (self.free @ move), columns)
        return nu

    def polished(self, nu: Array, columns: Array) -> Array:
        """The same to the last digit: signs on the support, held columns not above 1."""
        rows = np.flatnonzero(nu > 1e-13 * nu.max())
        inside = np.hstack([self.rows.A[np.ix_(self.active, self.support)], columns])[rows]
        targets = np.append(self.signs, np.minimum(nu @ columns, 1.0))
        exact = np.zeros_like(nu)
        exact[rows] = np.maximum(corrected(inside.T, nu[rows], targets), 0.0)
        return exact


def least_distance(G: Array, h: Array) -> Array | None:
    """The shortest w with G w >= h, None without one: Lawson and Hanson's reduction to nnls."""
    from scipy.optimize import nnls

    system = np.vstack([G.T, h])
    target = np.zeros(len(system))
    target[-1] = 1.0
    try:
        u = nnls(system, target, maxiter=30 * len(h))[0]
    except RuntimeError:
        return None
    short = 1.0 - float(h @ u)
    return G.T @ u / short if short > 1e-10 else None
