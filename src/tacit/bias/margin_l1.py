"""argmin |b|_1 under A b >= c as one linear program, its vertex solved exactly."""

from __future__ import annotations

import numpy as np

from tacit.arguments import Array
from tacit.bias.continuation import Failed
from tacit.bias.margin_rows import Rows
from tacit.bias.margin_set import Index

TIGHT = 1e-7  # HiGHS meets its constraints to about this


def linear_program(rows: Rows, cost: Array | None = None) -> tuple[Array, Array, int]:
    """(b, nu, iterations) of HiGHS for sum cost_i |b_i|, accurate to its tolerances."""
    from scipy.optimize import linprog

    A, d = rows.A, rows.A.shape[1]
    both = np.ones(2 * d) if cost is None else np.tile(cost, 2)
    found = linprog(both, A_ub=np.hstack([-A, A]), b_ub=-rows.c, method="highs-ds")
    if found.status != 0:
        raise Failed(f"the linear program ended with: {found.message}")
    return found.x[:d] - found.x[d:], np.maximum(-found.ineqlin.marginals, 0.0), int(found.nit)


def vertex(rows: Rows, b: Array, nu: Array) -> tuple[Array, Array]:
    """The pair with its equations solved anew: margins on the active rows, signs on the support."""
    exact, support, _ = primal(rows, b, nu)
    weighty = np.flatnonzero(nu > TIGHT * nu.max())
    dual, signs = np.zeros_like(nu), np.sign(exact[support])
    dual[weighty] = corrected(rows.A[np.ix_(weighty, support)].T, nu[weighty], signs)
    return exact, np.maximum(dual, 0.0)


def primal(rows: Rows, b: Array, nu: Array) -> tuple[Array, Index, Index]:
    """(b, its support, active rows), b with the margins of its active rows solved anew."""
    support = np.flatnonzero(np.abs(b) > TIGHT * np.abs(b).max())
    weighty = np.flatnonzero(nu > TIGHT * nu.max())
    active = np.union1d(weighty, np.flatnonzero(rows.A @ b - rows.c < TIGHT * rows.c))
    exact = np.zeros_like(b)
    exact[support] = corrected(rows.A[np.ix_(active, support)], b[support], rows.c[active])
    return exact, support, active


def corrected(matrix: Array, guess: Array, target: Array) -> Array:
    """The solution of a consistent system nearest to a guess."""
    for _ in range(2):
        guess = guess + np.linalg.lstsq(matrix, target - matrix @ guess, rcond=1e-12)[0]
    return guess
