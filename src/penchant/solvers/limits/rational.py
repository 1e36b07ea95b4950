"""Linear systems of float64 numbers in integers: every result is exact, every zero is one.

A float64 number is an integer times a power of two, so least squares, projections and their signs
are rational numbers. Where columns or rows nearly depend on each other, or spread over so many
decades that float64 cannot tell a small slope from rounding, `saddles` and `slow_flow` repeat their
walk with the numbers of this module. It is slower by two to three orders of magnitude.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from penchant.arguments import Array
from penchant.solvers.exact import integers

BITS = 1500  # of numbers that are summed over a walk: what rounding them changes is never seen
WORK = 500_000  # products of numbers of 53 bits in a walk, some seconds
Integers = Any


def affordable(X: Array) -> bool:
    """Whether a walk on X in rational numbers takes seconds and not minutes."""
    powers = np.frexp(X[X != 0])[1]
    bits = 53 + (int(powers.max()) - int(powers.min()) if powers.size else 0)
    return X.size * min(X.shape) ** 2 * bits / 53 <= WORK


def solve(matrix: Integers, right: Integers) -> tuple[Integers, int]:
    """(numerators, denominator) of matrix^-1 right, for a positive definite integer matrix.

    Bareiss' elimination: the entries are minors of the matrix, so that all divisions are exact.
    """
    size, last = len(matrix), 1
    if not size:
        return right, last
    table = np.concatenate([matrix, right.reshape(size, -1)], axis=1)
    for k in range(size):
        pivot, row, column = table[k, k], table[k].copy(), table[:, k].copy()
        table = (pivot * table - column[:, None] * row) // last
        table[k], last = row, pivot
    return table[:, size:].reshape(right.shape), int(last)


def fractions(numerators: Integers, denominator: int) -> Integers:
    """The quotients as an array."""
    return np.array([Fraction(int(n), denominator) for n in numerators], dtype=object)


def common(numbers: Integers) -> tuple[Integers, int]:
    """(numerators, denominator) of fractions."""
    denominator = math.lcm(*(x.denominator for x in numbers))
    numerators = [x.numerator * (denominator // x.denominator) for x in numbers]
    return np.array(numerators, dtype=object), denominator


def shortened(number: Fraction) -> Fraction:
    """The number with BITS significant bits."""
    size = number.numerator.bit_length() - number.denominator.bit_length()
    unit = Fraction(2) ** (size - BITS)
    return round(number / unit) * unit


def nearest(number: Fraction) -> float:
    """The float64 number next to it, infinite beyond float64."""
    try:
        return float(number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


def floats(numbers: Integers) -> Array:
    return np.array([nearest(Fraction(x)) for x in numbers.ravel()]).reshape(numbers.shape)


def whole_rows(X: Array) -> Integers:
    """Integer rows, each its row of X times a power of two."""
    return np.array([integers(row)[0] for row in X], dtype=object).reshape(X.shape)
