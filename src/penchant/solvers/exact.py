"""Products of float64 numbers without rounding, and proofs by them that a predictor exists."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from penchant.arguments import Array
from penchant.solvers.sparse_rows import SparseRows

EPS = float(np.finfo(float).eps)
VISIBLE = 1e-13  # of the largest target: rounding of a sum that shows
MOST = 1_000_000  # products, about a tenth of a second
PRIME = 2**61 - 1  # a rank modulo a prime is a lower bound for the rank
ELIMINATION = 20_000_000  # products in the elimination, about two seconds
UNSURE = 1e-13  # of its terms: a float64 margin above this has the right sign


def product(parts: Array, matrix: Array) -> Array:
    """v @ matrix for the vector v = parts[0] + parts[1] + ..., each entry rounded once."""
    if isinstance(matrix, SparseRows):  # by columns that would take minutes
        return np.asarray(sum(part @ matrix for part in parts[::-1]))
    vector, power = integers(parts)
    total = vector.sum(axis=0)
    entries = np.empty(matrix.shape[1])
    for index, column in enumerate(matrix.T):
        numbers, unit = integers(column)
        entries[index] = rounded(int(total @ numbers), power + unit)
    return entries


def rest(target: Array, parts: Array, matrix: Array) -> Array:
    """target - v @ matrix for the vector v = parts[0] + parts[1] + ..., each entry rounded once."""
    given = np.zeros((len(parts), len(target)))
    given[0] = target
    return product(np.hstack([given, -parts]), np.vstack([np.eye(len(target)), matrix]))


def missing(matrix: Array, vector: Array, target: Array, ill: bool = False) -> Array:
    """target - matrix @ vector, without rounding where that would show; for ill rows it would."""
    terms = np.abs(matrix) @ np.abs(vector)
    shown = ill or EPS * terms.max(initial=0.0) > VISIBLE * np.abs(target).max(initial=0.0)
    if shown and matrix.size <= MOST and np.isfinite(terms).all():
        if isinstance(matrix, SparseRows):
            return missing_row_by_row(matrix, vector, target)
        return rest(target, vector[None], matrix.T)
    difference: Array = target - matrix @ vector
    return difference


def missing_row_by_row(matrix: SparseRows, vector: Array, target: Array) -> Array:
    """The same for sparse rows, from the entries that are there."""
    ends, entries, places = matrix.csr.indptr, matrix.csr.data, matrix.csr.indices
    sums = np.empty(len(target))
    for n, row in enumerate(map(slice, ends[:-1], ends[1:])):
        sums[n] = rest(target[n : n + 1], vector[None, places[row]], entries[row][:, None])[0]
    return sums


def integers(numbers: Array) -> tuple[np.ndarray, int]:
    """(integers, power) with numbers = 2^power integers."""
    fractions, powers = np.frexp(numbers)
    whole = np.ldexp(fractions, 53).astype(np.int64)
    present = whole != 0
    least = int(powers[present].min()) if present.any() else 0
    shifts = np.where(present, powers - least, 0)
    return whole.astype(object) << shifts.astype(object), least - 53


def rounded(whole: int, power: int) -> float:
    """2^power whole, infinite beyond float64."""
    more = max(whole.bit_length() - 64, 0)
    try:
        return math.ldexp(float(whole >> more), power + more)
    except OverflowError:
        return math.copysign(math.inf, whole)


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


def independent(X: Array) -> bool:
    """True if the rows of X are independent, proven: X beta = y then has a solution for any y."""
    samples, dimension = X.shape
    if samples > dimension or samples * samples * dimension > ELIMINATION:
        return False
    return len(independent_rows(X)) == samples


def independent_rows(X: Array) -> list[int]:
    """Places of rows that are independent, proven; almost surely as many as the rank."""
    rows, chosen = modular(X), []
    for index in range(len(rows)):
        columns = np.flatnonzero(rows[index])
        if not columns.size:
            continue
        first = columns[0]
        rows[index] = rows[index] * pow(int(rows[index, first]), -1, PRIME) % PRIME
        below = rows[index + 1 :]
        below[:] = (below - np.outer(below[:, first], rows[index])) % PRIME
        chosen.append(index)
    return chosen


def modular(X: Array) -> np.ndarray:
    """The entries of X, each row times a power of two that makes them integers, modulo PRIME."""
    parts, powers = np.frexp(X)
    whole = np.ldexp(parts, 53).astype(np.int64)
    rows = np.empty(X.shape, dtype=object)
    for index, (numbers, shifts) in enumerate(zip(whole, powers, strict=True)):
        least = int(shifts.min())
        rows[index] = [
            int(n) % PRIME * pow(2, int(k) - least, PRIME) % PRIME
            for n, k in zip(numbers, shifts, strict=True)
        ]
    return rows
