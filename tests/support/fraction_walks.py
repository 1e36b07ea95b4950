"""Saddles and the slow flow walked in fractions by trying every support and every sign.

They share no code with the solvers, and are slow: for a handful of rows and columns.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

Row = Sequence[Fraction]


def solve_exactly(matrix: Sequence[Row], right: Row) -> list[Fraction] | None:
    """The solution of a square system by elimination; None if the matrix is singular."""
    table = [[*row, r] for row, r in zip(matrix, right, strict=True)]
    for k in range(len(table)):
        pivot = next((i for i in range(k, len(table)) if table[i][k]), None)
        if pivot is None:
            return None
        table[k], table[pivot] = table[pivot], table[k]
        table[k] = [x / table[k][k] for x in table[k]]
        for i in range(len(table)):
            if i != k and table[i][k]:
                share = table[i][k]
                table[i] = [a - share * b for a, b in zip(table[i], table[k], strict=True)]
    return [row[-1] for row in table]


def dot(a: Row, b: Row) -> Fraction:
    return sum((x * z for x, z in zip(a, b, strict=True)), Fraction(0))


def exact_rows(X: np.ndarray) -> list[list[Fraction]]:
    return [[Fraction(float(x)) for x in row] for row in X]


def pulls(columns: list[Row], y: Row, beta: Row) -> list[Fraction]:
    """-1/2 of the gradient of the sum of squares."""
    left = [v - dot(beta, row) for v, row in zip(y, zip(*columns, strict=True), strict=True)]
    return [dot(column, left) for column in columns]


def least_under_signs(columns: list[Row], y: Row, s: Row, low: Row, high: Row) -> list[Fraction]:
    """The sign-constrained least squares, by trying every support."""
    bound = [j for j, v in enumerate(s) if v in (low[j], high[j])]
    for size in range(len(bound) + 1):
        for support in itertools.combinations(bound, size):
            gram = [[dot(columns[i], columns[j]) for j in support] for i in support]
            b = solve_exactly(gram, [dot(columns[i], y) for i in support])
            if b is None or any(b_j * s[j] <= 0 for b_j, j in zip(b, support, strict=True)):
                continue
            beta = [Fraction(0)] * len(s)
            for b_j, j in zip(b, support, strict=True):
                beta[j] = b_j
            pull = pulls(columns, y, beta)
            if all(s[j] * pull[j] <= 0 for j in bound if j not in support):
                return beta
    raise AssertionError("no support is optimal")


def walk_saddles(
    X: np.ndarray, y: np.ndarray, growth: np.ndarray | None = None
) -> tuple[list[Fraction], list[list[Fraction]]]:
    """(times, points) of the saddles, with one tie or more at a time."""
    columns = exact_rows(np.asarray(X).T)
    high, low = exact_rows(np.ones((2, len(columns))) if growth is None else growth)
    low = [-t for t in low]
    targets = [Fraction(float(v)) for v in y]
    s, tau, beta = [Fraction(0)] * len(columns), Fraction(0), [Fraction(0)] * len(columns)
    times, points = [tau], [beta]
    for _ in range(200):
        speed = [4 * p for p in pulls(columns, targets, beta)]
        waits = {j: ((high if v > 0 else low)[j] - s[j]) / v for j, v in enumerate(speed) if v}
        if not waits:
            return times, points
        wait = min(waits.values())
        s = [s[j] + wait * v for j, v in enumerate(speed)]
        tau, beta = tau + wait, least_under_signs(columns, targets, s, low, high)
        times.append(tau)
        points.append(beta)
    raise AssertionError("no end")


def orthogonal(rows: list[list[Fraction]]) -> list[list[Fraction]]:
    """Gram and Schmidt, without what depends on others."""
    basis: list[list[Fraction]] = []
    for row in rows:
        left = row
        for b in basis:
            share = dot(left, b) / dot(b, b)
            left = [x - share * z for x, z in zip(left, b, strict=True)]
        if any(left):
            basis.append(left)
    return basis


def beyond(basis: list[list[Fraction]], s: list[Fraction]) -> list[Fraction]:
    """s without its part in the span of an orthogonal basis."""
    for b in basis:
        share = dot(s, b) / dot(b, b)
        s = [x - share * z for x, z in zip(s, b, strict=True)]
    return s


def velocity(P: list[list[Fraction]], a: list[Fraction]) -> list[Fraction]:
    """-P s for the s that makes it shortest, by trying where s is 1, -1 or between at each zero."""
    at_zero = [j for j, x in enumerate(a) if x == 0]
    for signs in itertools.product([0, 1, -1], repeat=len(at_zero)):
        s = [Fraction((x > 0) - (x < 0)) for x in a]
        for j, sign in zip(at_zero, signs, strict=True):
            s[j] = Fraction(sign)
        free = [j for j in at_zero if not s[j]]
        t = solve_exactly([[P[i][j] for j in free] for i in free], [-dot(P[i], s) for i in free])
        if t is None or any(abs(x) > 1 for x in t):
            continue
        bound = [j for j in at_zero if j not in free]
        for x, j in zip(t, free, strict=True):
            s[j] = x
        v = [-dot(row, s) for row in P]
        if all(v[j] * s[j] >= 0 for j in bound):
            return v
    raise AssertionError("no signs are right")


def walk_slow_flow(X: np.ndarray, start: np.ndarray) -> tuple[list[Fraction], list[list[Fraction]]]:
    """(times, points) of the corners of the slow flow."""
    a, tau = [Fraction(float(x)) for x in start], Fraction(0)
    basis, size = orthogonal(exact_rows(X)), len(start)
    P = [beyond(basis, [Fraction(int(i == j)) for i in range(size)]) for j in range(size)]
    times, points = [tau], [a]
    for _ in range(50):
        v = velocity(P, a)
        waits = [-x / z for x, z in zip(a, v, strict=True) if x * z < 0]
        if not waits:
            return times, points
        tau, a = tau + min(waits), [x + min(waits) * z for x, z in zip(a, v, strict=True)]
        times.append(tau)
        points.append(a)
    raise AssertionError("no end")
