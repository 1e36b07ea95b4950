"""The point max_margin returns for l1: the only minimiser, or the middle of a face of them."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from tacit.arguments import Array
from tacit.records import Kind, Outcome
from tacit.regularizers.q import Q
from tacit.solvers import exact
from tacit.solvers.continuation import Failed, settled_level
from tacit.solvers.margins import columns, exact_program
from tacit.solvers.margins.active_set import Index
from tacit.solvers.margins.l1 import TIGHT, corrected
from tacit.solvers.margins.rows import Rows
from tacit.solvers.margins.walk import MarginWalk
from tacit.solvers.solution import SMALL, SOLVED, Found

DEEP = 30
LEVEL = -2000.0  # log mu at which Q of depth 2 stands for its limit on a face

UNIQUE = Outcome(Kind.SOLVED, "unique vertex, certified by its dual")
FACE = "the minimisers fill a face; this is"
ENTROPIC = Outcome(
    Kind.NOT_UNIQUE, f"{FACE} its point of largest entropy, the limit of Q of depth 2 for mu -> 0"
)
CORNER = Outcome(Kind.NOT_UNIQUE, f"{FACE} one of its corners")


def solve(rows: Rows) -> Found:
    """(b, nu, iterations, outcome) for separable rows."""
    try:
        b, nu, steps = columns.solve(rows)
    except Failed:  # HiGHS takes nearly opposite rows for inseparable
        return without_rounding(rows) or by_deep_net(rows)
    if proven(rows, b, nu):
        return middle(rows, b, nu[None], steps)
    return without_rounding(rows) or middle(rows, b, nu[None], steps)


def by_deep_net(rows: Rows) -> Found:
    """The limit of deep nets, which takes no nearly opposite rows for inseparable."""
    deep = Q(DEEP, log_alpha=0.0)
    b, nu, steps = MarginWalk(deep, rows).at(settled_level(deep))
    return Found(np.where(np.abs(b) > 1e-13 * np.abs(b).max(), b, 0.0), nu, steps, SOLVED)


def without_rounding(rows: Rows) -> Found | None:
    """The same from an exact linear program; None where that is too long."""
    try:
        vertex = exact_program.vertex(rows)
    except Failed:
        return None
    b, parts = np.array([float(v) for v in vertex.b]), exact_program.dual_parts(rows, vertex.nu)
    if vertex.alone:
        return Found(b, parts[0], vertex.steps, UNIQUE, 0.0, tuple(parts[1:]))
    return middle(rows, b, parts, vertex.steps)


def middle(rows: Rows, b: Array, parts: Array, steps: int) -> Found:
    """A vertex, or the middle of the face it belongs to; the dual is the sum of `parts`."""
    slopes = exact.product(parts, rows.A) if len(parts) > 1 else parts[0] @ rows.A
    b, outcome = chosen(rows, b, parts[0], slopes)
    return Found(b, parts[0], steps, outcome, 0.0, tuple(parts[1:]))


def chosen(rows: Rows, b: Array, nu: Array, slopes: Array) -> tuple[Array, Outcome]:
    """(the point that is returned, what it is) for a vertex b and its dual, slopes = A^T nu."""
    if unique(rows, b, nu, slopes):
        return b, UNIQUE
    if (inside := entropic(rows, b, nu, slopes)) is not None:
        return inside, ENTROPIC
    return b, CORNER


def proven(rows: Rows, b: Array, nu: Array) -> bool:
    """Whether the pair is optimal in the units of the data, where every target is one."""
    lengths, apart = nu @ rows.A, rows.A @ b - rows.c
    off = np.where(b == 0, np.abs(lengths) - 1, np.abs(lengths - np.sign(b)))
    complementary = nu * np.abs(apart) <= SMALL * float((nu * rows.c).max())
    met = -apart <= SMALL * rows.c
    return bool(off.max() <= SMALL and complementary.all() and met.all())


def unique(rows: Rows, b: Array, nu: Array, slopes: Array) -> bool:
    """Whether no other point has the same value.

    The minimisers have equality where nu > 0 and vanish where |A^T nu| < 1. If that leaves them
    no freedom b is unique; otherwise two linear programs look for the ends of the face in a
    direction drawn at random.
    """
    free = unhindered(slopes)
    fixed = nu > TIGHT * nu.max()
    if len(free) <= fixed.sum():
        sizes = np.linalg.svd(rows.A[np.ix_(fixed, free)], compute_uv=False)
        if sizes[-1] > 1e-9 * sizes[0]:
            return True
    low, high = ends(rows, free, fixed, slopes)
    return high - low <= 1e-6 * float(np.abs(b).max())


def ends(rows: Rows, free: Index, fixed: NDArray[np.bool_], slopes: Array) -> tuple[float, float]:
    """The least and largest value of a random linear function on the minimisers."""
    from scipy.optimize import linprog

    signs = np.sign(slopes)[free]
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


def unhindered(slopes: Array) -> Index:
    """The columns of length one under the dual; in all others every minimiser vanishes."""
    return np.flatnonzero(np.abs(slopes) > 1 - 1e-9)


def entropic(rows: Rows, b: Array, nu: Array, slopes: Array) -> Array | None:
    """The point of the face to which Q of depth 2 tends, None where that is not resolved."""
    free = unhindered(slopes)
    inside = dataclasses.replace(rows, A=rows.A[:, free])
    try:
        near, _, _ = MarginWalk(Q(2, log_alpha=LEVEL / 2), inside).at(LEVEL)
    except Failed:
        return None
    support = np.flatnonzero(np.abs(near) > 1e-9 * float(np.abs(near).max()))
    active = np.flatnonzero((nu > 0) | (inside.A @ near - rows.c < 1e-9 * rows.c))
    sharp = np.zeros_like(b)
    sharp[free[support]] = corrected(
        inside.A[np.ix_(active, support)], near[support], rows.c[active]
    )
    same = abs(np.abs(sharp).sum() - np.abs(b).sum()) <= 1e-12 * np.abs(b).sum()
    return sharp if same and not rows.lacking(sharp).any() else None
