"""Proofs without rounding that a predictor exists, asked for before it is said that none does."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tacit.arguments import Array
from tacit.solvers.pivots import balanced

PRIME = 2**61 - 1  # a rank modulo a prime is a lower bound for the rank
MOST = 20_000_000  # products in the elimination, about two seconds
UNSURE = 1e-13  # of its terms: a float64 margin above this has the right sign


def separates(Z: Array, beta: Array) -> bool:
    """Whether every row of Z has a positive product with beta, in exact arithmetic."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        margins, terms = Z @ beta, np.abs(Z) @ np.abs(beta)
        sure = (margins > UNSURE * terms) & np.isfinite(terms) & (terms > 1e-290)
    if sure.all():
        return True
    exact = [Fraction(float(b)) for b in beta]
    return all(
        sum(Fraction(float(x)) * b for x, b in zip(row, exact, strict=True)) > 0 for row in Z[~sure]
    )


def separating(Z: Array) -> Array | None:
    """A beta with positive margins Z beta, proven; None if a linear program finds none.

    The program has rows and columns in units of their own: whether there is such a beta does not
    depend on those.
    """
    from scipy.optimize import linprog

    factors, columns = balanced(Z)
    A = Z * factors[:, None] * columns
    samples, dimension = A.shape
    cost = np.append(np.zeros(dimension), -1.0)  # the least margin, of entries within [-1, 1]
    bounds = [(-1.0, 1.0)] * dimension + [(0.0, None)]
    found = linprog(
        cost, A_ub=np.hstack([-A, np.ones((samples, 1))]), b_ub=np.zeros(samples), bounds=bounds
    )
    if found.status != 0:
        return None
    beta = columns * found.x[:dimension]
    return beta if beta.any() and np.isfinite(beta).all() and separates(Z, beta) else None


def independent(X: Array) -> bool:
    """True if the rows of X are independent, proven: X beta = y then has a solution for any y.

    False says nothing: they may depend on each other, or be too many for this proof.
    """
    samples, dimension = X.shape
    if samples > dimension or samples * samples * dimension > MOST:
        return False
    rows = modular(X)
    for place in range(samples):
        columns = np.flatnonzero(rows[place])
        if not columns.size:
            return False
        first = columns[0]
        rows[place] = rows[place] * pow(int(rows[place, first]), -1, PRIME) % PRIME
        below = rows[place + 1 :]
        below[:] = (below - np.outer(below[:, first], rows[place])) % PRIME
    return True


def modular(X: Array) -> np.ndarray:
    """The entries of X, each row times a power of two that makes them integers, modulo PRIME."""
    parts, powers = np.frexp(X)
    whole = np.ldexp(parts, 53).astype(np.int64)
    rows = np.empty(X.shape, dtype=object)
    for place, (numbers, shifts) in enumerate(zip(whole, powers, strict=True)):
        least = int(shifts.min())
        rows[place] = [
            int(n) % PRIME * pow(2, int(k) - least, PRIME) % PRIME
            for n, k in zip(numbers, shifts, strict=True)
        ]
    return rows
