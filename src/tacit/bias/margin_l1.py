"""argmin |beta|_1 under Z beta >= 1: a linear program, its vertex solved exactly and certified."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tacit.arguments import Array
from tacit.bias.continuation import Failed
from tacit.bias.margin_rows import Rows
from tacit.bias.margin_set import Index
from tacit.bias.margin_walk import MarginWalk
from tacit.bias.q import Q
from tacit.records import Kind, Outcome

TIGHT = 1e-7  # HiGHS meets its constraints to about this
LEVEL = -2000.0  # log mu at which Q of depth 2 stands for its limit on a face

UNIQUE = Outcome(Kind.SOLVED, "unique vertex, certified by its dual")


def solve(rows: Rows) -> tuple[Array, Array, int, Outcome]:
    """(b, nu, iterations, outcome) for separable rows."""
    b, nu, steps = linear_program(rows)
    b, nu = vertex(rows, b, nu)
    if unique(rows, b, nu):
        return b, nu, steps, UNIQUE
    if (middle := entropic(rows, b, nu)) is not None:
        return middle, nu, steps, ENTROPIC
    return b, nu, steps, CORNER


FACE = "the minimisers fill a face; this is"
ENTROPIC = Outcome(
    Kind.NOT_UNIQUE, f"{FACE} its point of largest entropy, the limit of Q of depth 2 for mu -> 0"
)
CORNER = Outcome(Kind.NOT_UNIQUE, f"{FACE} one of its corners")


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
    support = np.flatnonzero(np.abs(b) > TIGHT * np.abs(b).max())
    weighty = np.flatnonzero(nu > TIGHT * nu.max())
    active = np.union1d(weighty, np.flatnonzero(rows.A @ b - rows.c < TIGHT * rows.c))
    exact, dual = np.zeros_like(b), np.zeros_like(nu)
    exact[support] = corrected(rows.A[np.ix_(active, support)], b[support], rows.c[active])
    signs = np.sign(exact[support])
    dual[weighty] = corrected(rows.A[np.ix_(weighty, support)].T, nu[weighty], signs)
    return exact, np.maximum(dual, 0.0)


def corrected(matrix: Array, guess: Array, target: Array) -> Array:
    """The solution of a consistent system nearest to a guess."""
    for _ in range(2):
        guess = guess + np.linalg.lstsq(matrix, target - matrix @ guess, rcond=1e-12)[0]
    return guess


def unique(rows: Rows, b: Array, nu: Array) -> bool:
    """Whether no other point has the same value.

    The minimisers have equality where nu > 0 and vanish where |A^T nu| < 1. If that leaves them
    no freedom b is unique; otherwise two linear programs look for the ends of the face in a
    direction drawn at random.
    """
    free = np.flatnonzero(np.abs(nu @ rows.A) > 1 - 1e-9)
    fixed = nu > TIGHT * nu.max()
    if len(free) <= fixed.sum():
        sizes = np.linalg.svd(rows.A[np.ix_(fixed, free)], compute_uv=False)
        if sizes[-1] > 1e-9 * sizes[0]:
            return True
    low, high = ends(rows, free, fixed, nu)
    return high - low <= 1e-6 * float(np.abs(b).max())


def ends(rows: Rows, free: Index, fixed: NDArray[np.bool_], nu: Array) -> tuple[float, float]:
    """The least and largest value of a random linear function on the minimisers."""
    from scipy.optimize import linprog

    signs = np.sign(nu @ rows.A)[free]
    A = rows.A[:, free] * signs
    direction = np.random.default_rng(0).normal(size=len(free))
    found = []
    for side in (1.0, -1.0):
        end = linprog(
            side * direction,
            A_ub=-A[~fixed] if (~fixed).any() else None,
            b_ub=-rows.c[~fixed] + 1e-9 if (~fixed).any() else None,
            A_eq=A[fixed],
            b_eq=rows.c[fixed],
        )
        if end.status != 0:
            return 0.0, np.inf
        found.append(side * float(end.fun))
    return found[0], found[1]


def entropic(rows: Rows, b: Array, nu: Array) -> Array | None:
    """The point of the face to which Q of depth 2 tends, None where that is not resolved."""
    try:
        near, _, _ = MarginWalk(Q(2, log_alpha=LEVEL / 2), rows).at(LEVEL)
    except Failed:
        return None
    largest = float(np.abs(near).max())
    support = np.flatnonzero(np.abs(near) > 1e-9 * largest)
    active = np.flatnonzero((nu > 0) | (rows.A @ near - rows.c < 1e-9 * rows.c))
    exact = np.zeros_like(b)
    exact[support] = corrected(rows.A[np.ix_(active, support)], near[support], rows.c[active])
    same = abs(np.abs(exact).sum() - np.abs(b).sum()) <= 1e-12 * np.abs(b).sum()
    return exact if same and not rows.lacking(exact).any() else None
