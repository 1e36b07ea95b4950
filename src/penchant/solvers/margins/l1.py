"""argmin |b|_1 under A b >= c as linear programs, on a few columns where A has very many.

A pair (b, nu) solved on some columns is one on all columns if |A^T nu| <= 1 on the others too;
those that are longer join. Where margins tie, as they do on a cube, nu is far from unique and the
one a linear program ends with makes very many columns too long, round after round. The shortest
nu that belongs to the same b spreads over all ties, and few columns have to be held at length 1.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from penchant.arguments import Array
from penchant.limits import Turns, check_time, seconds_left
from penchant.solvers.continuation import Failed
from penchant.solvers.margins.active_set import Index, nonnegative
from penchant.solvers.margins.rows import Rows

TIGHT = 1e-7  # HiGHS meets its constraints to about this
MET = 1e-11  # of its target: what a margin may lack
FINER = 1e6  # from one unit to the next
REFINEMENTS = 4
WIDE = 4  # columns for each row from which on a few of them are tried first
LONG = 1e-11  # above 1: a length that is not rounding


def linear_program(rows: Rows, cost: Array | None = None) -> tuple[Array, Array, int]:
    """(b, nu, iterations) of HiGHS for sum cost_i |b_i|, every margin met to a relative 1e-11."""
    d = rows.A.shape[1]
    both = np.ones(2 * d) if cost is None else np.tile(cost, 2)
    x, nu, steps = refined(both, np.hstack([rows.A, -rows.A]), rows.c, np.zeros(2 * d))
    return x[:d] - x[d:], nu, steps


def refined(cost: Array, A: Array, c: Array, lowest: Array) -> tuple[Array, Array, int]:
    """(x, dual, iterations) of min cost.x under A x >= c and x >= lowest, in ever finer units."""
    x, nu, steps, unit = *highs(cost, A, c, lowest), 1.0
    for _ in range(REFINEMENTS):
        missing = c - A @ x
        if (missing <= MET * np.where(c > 0, c, np.abs(x).max())).all():
            break
        unit *= FINER
        move, nu, used = highs(cost, A, unit * missing, unit * (lowest - x))
        x, steps = np.maximum(x + move / unit, lowest), steps + used
    return x, nu, steps


def highs(cost: Array, A: Array, c: Array, lowest: Array) -> tuple[Array, Array, int]:
    """(x, dual, iterations) of min cost.x under A x >= c and x >= lowest."""
    from scipy.optimize import linprog

    bounds = np.column_stack([lowest, np.full(len(lowest), np.inf)])
    check_time()
    options = {"time_limit": seconds_left()}
    optimum = linprog(cost, A_ub=-A, b_ub=-c, bounds=bounds, method="highs-ds", options=options)
    check_time()
    if optimum.status != 0:
        raise Failed(f"the linear program ended with: {optimum.message}")
    return optimum.x, np.maximum(-optimum.ineqlin.marginals, 0.0), int(optimum.nit)


def vertex(rows: Rows, b: Array, nu: Array) -> tuple[Array, Array]:
    """The pair with its equations solved anew: margins on the active rows, signs on the support."""
    exact, support, _ = primal(rows, b, nu)
    weighted = np.flatnonzero(nu > TIGHT * nu.max())
    dual, signs = np.zeros_like(nu), np.sign(exact[support])
    dual[weighted] = corrected(rows.A[np.ix_(weighted, support)].T, nu[weighted], signs)
    return exact, np.maximum(dual, 0.0)


def primal(rows: Rows, b: Array, nu: Array) -> tuple[Array, Index, Index]:
    """(b, its support, active rows), b with the margins of its active rows solved anew."""
    # where targets spread over decades so may the entries of b
    spread = min(1.0, 1e3 * float(rows.c.min() / rows.c.max()))
    support = np.flatnonzero(np.abs(b) > spread * TIGHT * np.abs(b).max())
    weighted = np.flatnonzero(nu > TIGHT * nu.max())
    near = np.union1d(weighted, np.flatnonzero(rows.A @ b - rows.c < TIGHT * rows.c))
    exact = np.zeros_like(b)
    for active in (near, weighted):  # rows nearly equal to a weighted one need not be met exactly
        exact[support] = corrected(rows.A[np.ix_(active, support)], b[support], rows.c[active])
        if not rows.lacking(exact).any():
            break
    return exact, support, active


def corrected(matrix: Array, guess: Array, target: Array) -> Array:
    """The solution of a consistent system nearest to a guess."""
    for _ in range(2):
        guess = guess + np.linalg.lstsq(matrix, target - matrix @ guess, rcond=1e-12)[0]
    return guess


def solve(rows: Rows) -> tuple[Array, Array, int]:
    """(b, nu, iterations), a vertex of the minimisers and a dual, for separable rows."""
    samples, dimension = rows.A.shape
    if dimension <= WIDE * samples:
        b, nu, steps = linear_program(rows)
        return *vertex(rows, b, nu), steps
    columns, total = most(np.abs(rows.A.sum(axis=0)), 2 * samples), 0
    for _ in Turns(dimension, "the columns of the linear program"):
        columns, b, nu, steps = restricted(rows, columns)
        total += steps
        exact, dual, long = priced(rows, b, nu)
        joined = np.union1d(columns, long)
        if len(joined) == len(columns):
            break
        columns = joined
    return exact, dual, total


def most(sizes: Array, count: int) -> Index:
    return np.argsort(-sizes, kind="stable")[:count]


def restricted(rows: Rows, columns: Index) -> tuple[Index, Array, Array, int]:
    """(columns, b, nu, iterations) of the linear program on `columns`, or on more if needed."""
    dimension = rows.A.shape[1]
    for _ in Turns(dimension + 1, "the columns of a feasible linear program"):
        inside = dataclasses.replace(rows, A=rows.A[:, columns])
        try:
            some, nu, steps = linear_program(inside)
        except Failed:
            if len(columns) == dimension:
                raise
            more = np.setdiff1d(np.arange(dimension), columns)[: len(columns)]
            columns = np.union1d(columns, more)
        else:
            break
    b = np.zeros(dimension)
    b[columns] = some
    return columns, b, nu, steps


def priced(rows: Rows, b: Array, nu: Array) -> tuple[Array, Array, Index]:
    """(b, dual, columns that may shorten b): none of them if the pair is optimal."""
    exact, support, active = primal(rows, b, nu)
    dual, limited = serving(rows, DualFace(rows, exact, support, active))
    if dual is not None:
        return exact, dual, np.empty(0, dtype=np.intp)
    exact, dual = vertex(rows, b, nu)
    return exact, dual, np.abs(np.union1d(limited, too_long(rows, dual))) - 1


def serving(rows: Rows, face: DualFace) -> tuple[Array | None, Index]:
    """A dual of b under which no column is too long, or None and the columns that prevent it."""
    limited = np.empty(0, dtype=np.intp)
    turns = Turns(rows.A.shape[1] + 1, "the limits of a dual")
    while (dual := face.shortest(limited)) is not None:
        turns.take()
        long = too_long(rows, dual)
        if not long.size:
            return dual, limited
        if len(joined := np.union1d(limited, long)) == len(
            limited
        ):  # to rounding there is no other
            return None, limited
        limited = joined
    return None, limited


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

    def shortest(self, limited: Index) -> Array | None:
        """The shortest of them under which no limited column is longer than 1, None without any."""
        columns = self.rows.A[np.ix_(self.active, np.abs(limited) - 1)] * np.sign(limited)
        unit = float(np.linalg.norm(self.least))
        walls = np.vstack([self.free, -columns.T @ self.free])
        room = np.concatenate([-self.least, columns.T @ self.least - 1])
        multipliers = None if self.empty else nonnegative(walls, room / unit)
        if multipliers is None:
            return None
        move = walls.T @ multipliers[0] / multipliers[1]
        nu = np.zeros(len(self.rows.c))
        nu[self.active] = self.polished(self.least + unit * (self.free @ move), columns)
        return nu

    def polished(self, nu: Array, columns: Array) -> Array:
        """The same to the last digit: signs on the support, limited columns not above 1."""
        rows = np.flatnonzero(nu > 1e-13 * nu.max())
        inside = np.hstack([self.rows.A[np.ix_(self.active, self.support)], columns])[rows]
        targets = np.append(self.signs, np.minimum(nu @ columns, 1.0))
        exact = np.zeros_like(nu)
        exact[rows] = np.maximum(corrected(inside.T, nu[rows], targets), 0.0)
        return exact
