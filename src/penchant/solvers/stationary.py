"""The local minimisers of |beta|_p, p < 1, under y_n <x_n, beta> >= 1, found from many starts.

On its support |beta|_p is concave, so a local minimiser is a vertex of the margin constraints
there, and off the support the slope is infinite. Reweighted l1 (linear programs whose costs are
the slopes at the last vertex) goes down from vertex to vertex and ends at one of them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, classification_data, integer
from penchant.door import Invalid, door
from penchant.limits import OutOfTime, limited
from penchant.records import Kind, NumericalError, Outcome
from penchant.regularizers.lp import Lp
from penchant.regularizers.regularizer import Regularizer
from penchant.solvers.continuation import Failed
from penchant.solvers.margins.active_set import Index, least_squares
from penchant.solvers.margins.l1 import corrected, linear_program
from penchant.solvers.margins.rows import Rows, certified, scaled_rows
from penchant.solvers.margins.separation import refuse_inseparable
from penchant.solvers.solution import Found, Solution
from penchant.threads import one_blas_thread

WHO = "stationary_points"
NOTHING = 1e-11  # relative size below which a coordinate of a vertex is zero
TOUCHING = 1e-9  # a margin this close to one is at the vertex
STRICT = 1e-10  # a dual weight above this, relative to the largest, is positive
SAME = 1e-8  # two vertices closer than this are one
DESCENTS = 100
SPREADS = (0.3, 1.0, 3.0, 10.0)  # of the logarithms of the random costs

LOCAL = Outcome(Kind.SOLVED, "a strict local minimiser, certified by its dual")


@door
def stationary_points(
    X: ArrayLike,
    y: ArrayLike,
    regularizer: Regularizer,
    *,
    starts: int = 100,
    seed: int = 0,
    max_seconds: float | None = None,
) -> tuple[Solution, ...]:
    """The local minimisers of Lp(p), p < 1, with margins >= 1, best first, each certified.

    They are reached from the l1 and l2 solutions and from random costs; there may be others.

    Parameters
    ----------
    X
        The samples, one row each.
    y
        The labels, -1 or +1.
    regularizer
        Lp(p) with p < 1.
    starts
        The number of random costs.
    seed
        The seed of all random numbers.
    max_seconds
        No other costs are tried after this time; None sets no limit.

    Returns
    -------
    tuple of Solution
        The minimisers.

    Examples
    --------
    >>> import penchant
    >>> norm = penchant.regularizers.Lp(0.5)
    >>> points = penchant.solvers.stationary_points([[1.0, 2.0]], [1], norm, starts=5)
    >>> [point.beta.round(4).tolist() for point in points]
    [[0.0, 0.5], [1.0, 0.0]]
    """
    X, y = classification_data(X, y)
    if not isinstance(regularizer, Lp) or regularizer.p >= 1:
        raise Invalid(
            f"expected Lp(p) with p < 1, got {regularizer}; a convex regularizer has one"
            " minimiser, use max_margin()"
        )
    starts, seed = integer("starts", starts, least=1), integer("seed", seed, least=0)
    Z = X * y[:, None]
    with one_blas_thread(), limited(max_seconds):
        try:
            refuse_inseparable(Z)
            return local_points(Z, regularizer, starts, seed)
        except OutOfTime as reason:
            raise NumericalError(WHO, Outcome(Kind.BUDGET_SPENT, str(reason))) from None


def local_points(Z: Array, norm: Lp, starts: int = 100, seed: int = 0) -> tuple[Solution, ...]:
    rows = scaled_rows(Z)
    solutions: list[Solution] = []
    begun: set[bytes] = set()  # vertices from which the way down is known
    for cost in costs(rows, norm.p, starts, seed):
        try:
            b = polished(rows, linear_program(rows, cost)[0])
            name = np.round(b / np.abs(b).max(), 9).tobytes()  # the same but for rounding
            if name in begun:
                continue
            begun.add(name)
            b, steps = descended(rows, norm.p, b)
        except Failed:
            continue  # a linear program of wild costs; the other starts are enough
        except OutOfTime:
            if not solutions:
                raise
            break
        apart = [np.abs(b * rows.scale - s.beta).max() / np.abs(s.beta).max() for s in solutions]
        if apart and min(apart) <= SAME:
            continue
        if (nu := multipliers(rows, norm, b)) is not None:
            dual = rows.factors * nu * rows.scale ** (norm.p - 1)
            solutions.append(certified(Z, norm, Found(rows.scale * b, dual, steps, LOCAL)))
    return tuple(sorted((s for s in solutions if s.outcome.ok), key=lambda s: s.value))


def costs(rows: Rows, p: float, starts: int, seed: int) -> Iterator[Array]:
    """Costs of the first linear program: even, the slopes at the l2 point, and random ones."""
    dimension = rows.A.shape[1]
    yield np.ones(dimension)
    yield slopes(least_squares(rows, np.ones(dimension))[1].b, p)
    rng = np.random.default_rng(seed)
    for k in range(starts):
        spread = SPREADS[k % len(SPREADS)]
        yield np.exp(np.clip(spread * rng.normal(size=dimension), -10, 10))


def slopes(b: Array, p: float) -> Array:
    """|b|^(p-1) relative to the smallest, with an end where b vanishes."""
    size = np.abs(b) / np.abs(b).max()
    return np.maximum(size, 1e-6) ** (p - 1)


def descended(rows: Rows, p: float, b: Array) -> tuple[Array, int]:
    """(vertex, linear programs solved) at which reweighting from the vertex b comes to rest."""
    for step in range(1, DESCENTS):
        support = np.flatnonzero(b)
        inside = dataclasses.replace(rows, A=rows.A[:, support])
        after = np.zeros_like(b)
        after[support] = linear_program(inside, slopes(b[support], p))[0]
        after = polished(rows, after)
        if np.abs(after) @ slopes_at(b, p) >= (1 - 1e-12) * (np.abs(b) @ slopes_at(b, p)):
            return b, step
        b = after
    raise Failed("reweighting does not come to rest")


def slopes_at(b: Array, p: float) -> Array:
    """|b|^(p-1) on the support, zero off it."""
    with np.errstate(divide="ignore"):
        return np.where(b == 0, 0.0, np.abs(b) ** (p - 1))


def polished(rows: Rows, b: Array) -> Array:
    """The vertex with its margins of one solved for exactly."""
    support = np.flatnonzero(np.abs(b) > NOTHING * np.abs(b).max())
    near = touching(rows, b, 1e-7)
    exact = np.zeros_like(b)
    exact[support] = corrected(rows.A[np.ix_(near, support)], b[support], rows.c[near])
    return exact


def touching(rows: Rows, b: Array, tolerance: float) -> Index:
    return np.flatnonzero(rows.A @ b - rows.c < tolerance * rows.c)


def multipliers(rows: Rows, norm: Lp, b: Array) -> Array | None:
    """Dual weights that prove b a strict local minimiser, or None.

    Along every feasible direction the value must rise at first order, since at second order it
    falls: its slope lies inside the cone of the touching rows, a positive combination of all.
    """
    support, active = np.flatnonzero(b), touching(rows, b, TOUCHING)
    columns = rows.A[np.ix_(active, support)].T
    # every coordinate in its own unit: the spread of columns is no dependence
    units = np.abs(columns).max(axis=1, keepdims=True, initial=0.0)  # no row touches: no vertex
    if not units.all() or np.linalg.matrix_rank(columns / units, rtol=1e-9) < len(support):
        return None
    target = norm.dual_of(b)[support]
    size = float(np.abs(target).max())
    weights = largest_least(columns, target / size)
    if weights is None or weights.min() <= STRICT * weights.max():
        return None
    nu = np.zeros(len(rows.c))
    nu[active] = size * weights
    return nu


def largest_least(columns: Array, target: Array) -> Array | None:
    """u with columns u = target whose smallest entry is as large as can be."""
    from scipy.optimize import linprog

    count = columns.shape[1]
    if count == len(columns):
        return corrected(columns, np.zeros(count), target)
    # u = v + t with v >= 0; t may be negative, and is bounded so that a pointless cone has an end
    optimum = linprog(
        np.append(np.zeros(count), -1.0),
        A_eq=np.column_stack([columns, columns.sum(axis=1)]),
        b_eq=target,
        bounds=[(0, None)] * count + [(-1.0, 1.0)],
    )
    if optimum.status != 0:
        return None
    return corrected(columns, optimum.x[:-1] + optimum.x[-1], target)
