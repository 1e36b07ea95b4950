"""argmin |b|_1 under A b >= c without rounding: the dual simplex method on integers.

Where rows or columns spread over many decades float64 takes small targets for zero, and with them
the wrong vertex. Here b = 0 with all weights zero is dual feasible from the start, and each step
exchanges one variable of the basis. The table has integers over one common denominator, which
divides every new entry (Bareiss): numbers grow no longer than the determinants they are.
"""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np

from tacit.arguments import Array
from tacit.solvers.constraints import PARTS, VISIBLE
from tacit.solvers.continuation import Failed
from tacit.solvers.exact import integers
from tacit.solvers.margins.rows import Rows
from tacit.solvers.pivots import EPS

WORK = 3_000_000  # products of numbers of 1000 bits, about two seconds
PATIENCE = 10  # steps for each row before the rule that cannot cycle


@dataclasses.dataclass(frozen=True)
class Vertex:
    """The exact b and dual weights, and whether every other point has a larger value."""

    b: list[Fraction]
    nu: list[Fraction]
    alone: bool
    steps: int


def vertex(rows: Rows) -> Vertex:
    """The optimal vertex, for rows that some b meets."""
    table, work = Table(rows), 0.0
    while (leaving := table.unmet()) is not None:
        work += table.rows.size * (1 + table.whole.bit_length() / 1000)
        if work > WORK:
            raise Failed(f"the exact linear program needs more than {table.steps} steps")
        table.exchange(leaving)
    return table.vertex()


class Table:
    """The equations t = A b - c solved for the variables of the basis.

    Columns are b, t and the right side. Column b_j stands for its positive part and, with the other
    sign, for its negative part; each costs 1. `prices` are -A^T nu, nu and the value.
    """

    def __init__(self, rows: Rows):
        samples, self.dimension = rows.A.shape
        scaled = [integers(row) for row in np.column_stack([rows.A, rows.c])]
        self.powers = [power for _, power in scaled]
        given = np.array([numbers for numbers, _ in scaled], dtype=object)
        unit = np.eye(samples, dtype=int).astype(object)
        self.rows = np.hstack([-given[:, :-1], unit, -given[:, -1:]])
        self.prices = np.zeros(self.rows.shape[1], dtype=int).astype(object)
        self.whole = 1  # the common denominator
        self.basis = [(self.dimension + n, 1) for n in range(samples)]  # (column, sign)
        self.steps = 0

    def unmet(self) -> int | None:
        """The row whose variable is negative: the most so, later the first in order."""
        values = self.rows[:, -1]
        if not (values < 0).any():
            return None
        if self.steps < PATIENCE * len(values):
            return min(range(len(values)), key=lambda row: values[row] << self.shift(row))
        return min(np.flatnonzero(values < 0).tolist(), key=lambda row: self.basis[row])

    def shift(self, row: int) -> int:
        """The power of two that brings the variable of a row to a unit all have in common."""
        column, _ = self.basis[row]
        power = 0 if column < self.dimension else self.powers[column - self.dimension]
        return power - min(0, *self.powers)

    def exchange(self, leaving: int) -> None:
        """The variable of a row leaves the basis for the one whose price falls to zero first."""
        column, sign = self.entering(self.rows[leaving])
        row, entering = self.rows[leaving], sign * self.rows[:, column]
        price, pivot = self.price(column, sign), -entering[leaving]
        self.prices = (pivot * self.prices + price * row) // self.whole
        self.rows = (pivot * self.rows + np.outer(entering, row)) // self.whole
        self.rows[leaving] = -row
        self.whole, self.basis[leaving] = pivot, (column, sign)
        self.steps += 1

    def price(self, column: int, sign: int) -> int:
        """What one unit of a variable adds to the value."""
        fixed = self.whole if column < self.dimension else 0
        return int(fixed + sign * self.prices[column])

    def entering(self, row: np.ndarray) -> tuple[int, int]:
        """(column, sign) of the least price for each unit by which it lifts the row."""
        best, least, unit = None, 0, 1  # the least price is least / unit
        for column, entry in enumerate(row[:-1]):
            if not entry or (column >= self.dimension and entry > 0):
                continue
            sign = -1 if entry > 0 else 1
            price = self.price(column, sign)
            if best is None or price * unit < least * abs(entry):
                best, least, unit = (column, sign), price, abs(entry)
        if best is None:
            raise Failed("no predictor meets the margins")
        return best

    def vertex(self) -> Vertex:
        b = [Fraction(0)] * self.dimension
        for (column, sign), value in zip(self.basis, self.rows[:, -1], strict=True):
            if column < self.dimension:
                b[column] = Fraction(sign * int(value), self.whole)
        weights = self.prices[self.dimension : -1]
        nu = [
            Fraction(int(weight), self.whole) / Fraction(2) ** power
            for weight, power in zip(weights, self.powers, strict=True)
        ]
        return Vertex(b, nu, self.alone(), self.steps)

    def alone(self) -> bool:
        """Whether every variable outside of the basis has a positive price."""
        both = [(column, sign) for column in range(self.dimension) for sign in (1, -1)]
        both += [(column, 1) for column in range(self.dimension, len(self.prices) - 1)]
        return all(self.price(*one) > 0 for one in both if one not in self.basis)


def dual_parts(rows: Rows, nu: list[Fraction]) -> Array:
    """Vectors of float64 whose sum is nu, as many as A^T nu needs."""
    parts: list[Array] = []
    while len(parts) < PARTS:
        parts.append(np.array([float(number) for number in nu]))
        nu = [number - Fraction(part) for number, part in zip(nu, parts[-1].tolist(), strict=True)]
        if EPS * (np.abs(parts[-1]) @ np.abs(rows.A)).max() <= VISIBLE:
            break
    return np.array(parts)
