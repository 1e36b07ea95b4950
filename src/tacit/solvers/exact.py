"""Products of float64 numbers without rounding, for vectors that float64 alone does not hold."""

from __future__ import annotations

import math

import numpy as np

from tacit.arguments import Array

EPS = float(np.finfo(float).eps)
VISIBLE = 1e-13  # of the largest target: rounding of a sum that shows
MOST = 1_000_000  # products, about a tenth of a second


def product(parts: Array, matrix: Array) -> Array:
    """v @ matrix for the vector v = parts[0] + parts[1] + ..., each entry rounded once."""
    vector, power = integers(parts)
    total = vector.sum(axis=0)
    found = np.empty(matrix.shape[1])
    for place, column in enumerate(matrix.T):
        numbers, unit = integers(column)
        found[place] = rounded(int(total @ numbers), power + unit)
    return found


def rest(target: Array, parts: Array, matrix: Array) -> Array:
    """target - v @ matrix for the vector v = parts[0] + parts[1] + ..., each entry rounded once."""
    given = np.zeros((len(parts), len(target)))
    given[0] = target
    return product(np.hstack([given, -parts]), np.vstack([np.eye(len(target)), matrix]))


def missing(matrix: Array, vector: Array, target: Array) -> Array:
    """target - matrix @ vector, without rounding where that would show."""
    terms = np.abs(matrix) @ np.abs(vector)
    shown = EPS * terms.max(initial=0.0) > VISIBLE * np.abs(target).max(initial=0.0)
    if shown and matrix.size <= MOST and np.isfinite(terms).all():
        return rest(target, vector[None], matrix.T)
    found: Array = target - matrix @ vector
    return found


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
