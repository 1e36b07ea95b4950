"""The point max_margin returns for l1: the only minimiser, or the middle of a face of them."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from tacit.arguments import Array
from tacit.records import Kind, Outcome
from tacit.regularizers.q import Q
from tacit.solvers.continuation import Failed, settled_level
from tacit.solvers.margins import columns
from tacit.solvers.margins.active_set import Index
from tacit.solvers.margins.l1 import TIGHT, corrected
from tacit.solvers.margins.rows import Rows
from tacit.solvers.margins.walk import MarginWalk
from tacit.solvers.solution import SOLVED

DEEP = 30
LEVEL = -2000.0  # log mu at which Q of depth 2 stands for its limit on a face

UNIQUE = Outcome(Kind.SOLVED, "unique vertex, certified by its dual")
FACE = "the minimisers fill a face; this is"
ENTROPIC = Outcome(
    Kind.NOT_UNIQUE, f"{FACE} its point of largest entropy, the limit of Q of depth 2 for mu -> 0"
)
CORNER = Outcome(Kind.NOT_UNIQUE, f"{FACE} one of its corners")


def solve(rows: Rows) -> tuple[Array, Array, int, Outcome]:
    """(b, nu, iterations, outcome) for separable rows."""
    try:
        b, nu, steps = columns.solve(rows)
    except Failed:  # HiGHS takes nearly opposite rows for inseparable; a deep net does not
        deep = Q(DEEP, log_alpha=0.0)
        b, nu, steps = MarginWalk(deep, rows).at(settled_level(deep))
        return np.where(np.abs(b) > 1e-13 * np.abs(b).max(), b, 0.0), nu, steps, SOLVED
    if unique(rows, b, nu):
        return b, nu, steps, UNIQUE
    if (middle := entropic(rows, b, nu)) is not None:
        return middle, nu, steps, ENTROPIC
    return b, nu, steps, CORNER


def unique(rows: Rows, b: Array, nu: Array) -> bool:
    """Whether no other point has the same value.

    The minimisers have equality where nu > 0 and vanish where |A^T nu| < 1. If that leaves them
    no freedom b is unique; otherwise two linear programs look for the ends of the face in a
    direction drawn at random.
    """
    free = unhindered(rows, nu)
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


def unhindered(rows: Rows, nu: Array) -> Index:
    """The columns of length one under the dual; in all others every minimiser vanishes."""
    return np.flatnonzero(np.abs(nu @ rows.A) > 1 - 1e-9)


def entropic(rows: Rows, b: Array, nu: Array) -> Array | None:
    """The point of the face to which Q of depth 2 tends, None where that is not resolved."""
    free = unhindered(rows, nu)
    inside = dataclasses.replace(rows, A=rows.A[:, free])
    try:
        near, _, _ = MarginWalk(Q(2, log_alpha=LEVEL / 2), inside).at(LEVEL)
    except Failed:
        return None
    support = np.flatnonzero(np.abs(near) > 1e-9 * float(np.abs(near).max()))
    active = np.flatnonzero((nu > 0) | (inside.A @ near - rows.c < 1e-9 * rows.c))
    exact = np.zeros_like(b)
    exact[free[support]] = corrected(
        inside.A[np.ix_(active, support)], near[support], rows.c[active]
    )
    same = abs(np.abs(exact).sum() - np.abs(b).sum()) <= 1e-12 * np.abs(b).sum()
    return exact if same and not rows.lacking(exact).any() else None
