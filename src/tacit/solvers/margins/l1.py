"""argmin |b|_1 under A b >= c as one linear program, its vertex solved exactly."""

from __future__ import annotations

import numpy as np

from tacit.arguments import Array
from tacit.solvers.continuation import Failed
from tacit.solvers.margins.active_set import Index
from tacit.solvers.margins.rows import Rows

TIGHT = 1e-7  # HiGHS meets its constraints to about this
MET = 1e-11
FINER = 1e6  # from one unit to the next
REFINEMENTS = 4


def linear_program(rows: Rows, cost: Array | None = None) -> tuple[Array, Array, int]:
    """(b, nu, iterations) of HiGHS for sum cost_i |b_i|, every margin met to a relative 1e-11.

    HiGHS meets its constraints to an absolute 1e-7. Where rows have targets far below that, what
    is missing is a linear program of the same kind, which is solved in units of its own.
    """
    d = rows.A.shape[1]
    both = np.ones(2 * d) if cost is None else np.tile(cost, 2)
    A = np.hstack([rows.A, -rows.A])
    x, nu, steps, unit = *highs(both, A, rows.c, np.zeros(2 * d)), 1.0
    for _ in range(REFINEMENTS):
        missing = rows.c - A @ x
        if (missing <= MET * rows.c).all():
            break
        unit *= FINER
        move, nu, used = highs(both, A, unit * missing, -unit * x)
        x, steps = np.maximum(x + move / unit, 0.0), steps + used
    return x[:d] - x[d:], nu, steps


def highs(cost: Array, A: Array, c: Array, lowest: Array) -> tuple[Array, Array, int]:
    """(x, dual, iterations) of min cost.x under A x >= c and x >= lowest."""
    from scipy.optimize import linprog

    bounds = np.column_stack([lowest, np.full(len(lowest), np.inf)])
    found = linprog(cost, A_ub=-A, b_ub=-c, bounds=bounds, method="highs-ds")
    if found.status != 0:
        raise Failed(f"the linear program ended with: {found.message}")
    return found.x, np.maximum(-found.ineqlin.marginals, 0.0), int(found.nit)


def vertex(rows: Rows, b: Array, nu: Array) -> tuple[Array, Array]:
    """The pair with its equations solved anew: margins on the active rows, signs on the support."""
    exact, support, _ = primal(rows, b, nu)
    weighty = np.flatnonzero(nu > TIGHT * nu.max())
    dual, signs = np.zeros_like(nu), np.sign(exact[support])
    dual[weighty] = corrected(rows.A[np.ix_(weighty, support)].T, nu[weighty], signs)
    return exact, np.maximum(dual, 0.0)


def primal(rows: Rows, b: Array, nu: Array) -> tuple[Array, Index, Index]:
    """(b, its support, active rows), b with the margins of its active rows solved anew."""
    # where targets spread over decades so may the entries of b
    spread = min(1.0, 1e3 * float(rows.c.min() / rows.c.max()))
    support = np.flatnonzero(np.abs(b) > spread * TIGHT * np.abs(b).max())
    weighty = np.flatnonzero(nu > TIGHT * nu.max())
    near = np.union1d(weighty, np.flatnonzero(rows.A @ b - rows.c < TIGHT * rows.c))
    exact = np.zeros_like(b)
    for active in (near, weighty):  # rows nearly equal to a weighty one need not be met exactly
        exact[support] = corrected(rows.A[np.ix_(active, support)], b[support], rows.c[active])
        if not rows.lacking(exact).any():
            break
    return exact, support, active


def corrected(matrix: Array, guess: Array, target: Array) -> Array:
    """The solution of a consistent system nearest to a guess."""
    for _ in range(2):
        guess = guess + np.linalg.lstsq(matrix, target - matrix @ guess, rcond=1e-12)[0]
    return guess
