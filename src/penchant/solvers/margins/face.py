"""The point max_margin returns for l1: the only minimiser, or the middle of a face of them."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from penchant.arguments import Array
from penchant.limits import Turns
from penchant.records import Kind, Outcome
from penchant.regularizers.q import Q
from penchant.solvers import exact
from penchant.solvers.constraints import PARTS, VISIBLE
from penchant.solvers.continuation import Failed, settled_level
from penchant.solvers.exact import integers
from penchant.solvers.margins import l1
from penchant.solvers.margins.active_set import Index
from penchant.solvers.margins.l1 import TIGHT, corrected
from penchant.solvers.margins.rows import Rows
from penchant.solvers.margins.walk import MarginWalk
from penchant.solvers.pivots import EPS
from penchant.solvers.solution import SMALL, SOLVED, Found
from penchant.solvers.sparse import UNIQUE
from penchant.solvers.sparse_rows import SparseRows

DEEP = 30
LEVEL = -2000.0  # log mu at which Q of depth 2 stands for its limit on a face
FACE = "the minimisers fill a face; this is"
ENTROPIC = Outcome(
    Kind.NOT_UNIQUE, f"{FACE} its point of largest entropy, the limit of Q of depth 2 for mu -> 0"
)
CORNER = Outcome(Kind.NOT_UNIQUE, f"{FACE} one of its corners")
WORK = 3_000_000  # products of numbers of 1000 bits, about two seconds
PATIENCE = 10  # steps for each row before the rule that cannot cycle


def solve(rows: Rows) -> Found:
    try:
        b, nu, steps = l1.solve(rows)
    except Failed:  # HiGHS takes nearly opposite rows for inseparable
        if (exactly := without_rounding(rows)) is not None:
            return exactly
        # the limit of deep nets takes no nearly opposite rows for inseparable
        deep = Q(DEEP, log_alpha=0.0)
        b, nu, steps = MarginWalk(deep, rows).at(settled_level(deep))
        return Found(np.where(np.abs(b) > 1e-13 * np.abs(b).max(), b, 0.0), nu, steps, SOLVED)
    if proven(rows, b, nu):
        return middle(rows, b, nu[None], steps)
    return without_rounding(rows) or middle(rows, b, nu[None], steps)


def without_rounding(rows: Rows) -> Found | None:
    """The same from an exact linear program; None where that is too long."""
    try:
        vertex = exact_vertex(rows)
    except Failed:
        return None
    b, parts = np.array([float(v) for v in vertex.b]), dual_parts(rows, vertex.nu)
    if vertex.alone:
        return Found(b, parts[0], vertex.steps, UNIQUE, 0.0, tuple(parts[1:]))
    return middle(rows, b, parts, vertex.steps)


def middle(rows: Rows, b: Array, parts: Array, steps: int) -> Found:
    """A vertex, or the middle of the face it belongs to; the dual is the sum of `parts`."""
    slopes = exact.product(parts, rows.A) if len(parts) > 1 else parts[0] @ rows.A
    outcome = UNIQUE
    if not unique(rows, b, parts[0], slopes):
        inside = entropic(rows, b, parts[0], slopes)
        b, outcome = (b, CORNER) if inside is None else (inside, ENTROPIC)
    return Found(b, parts[0], steps, outcome, 0.0, tuple(parts[1:]))


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
    extremes = []
    for side in (1.0, -1.0):
        end = linprog(
            side * direction,
            A_ub=-A[~fixed] if (~fixed).any() else None,
            b_ub=-(1 - 1e-9) * rows.c[~fixed] if (~fixed).any() else None,
            A_eq=A[fixed],
            b_eq=rows.c[fixed],
        )
        if end.status != 0:
            return 0.0, np.inf
        extremes.append(side * float(end.fun))
    return extremes[0], extremes[1]


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


@dataclasses.dataclass(frozen=True)
class Vertex:
    """The exact b and dual weights, and whether every other point has a larger value."""

    b: list[Fraction]
    nu: list[Fraction]
    alone: bool
    steps: int


def exact_vertex(rows: Rows) -> Vertex:
    if isinstance(rows.A, SparseRows):
        if rows.A.dense is None:
            raise Failed("the exact linear program needs all entries of the rows")
        rows = dataclasses.replace(rows, A=rows.A.dense)
    table, work = Table(rows), 0.0
    turns = Turns(10_000_000, "the exact linear program")
    while (leaving := table.unmet()) is not None:
        turns.take()
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
        return all(self.price(*variable) > 0 for variable in both if variable not in self.basis)


def dual_parts(rows: Rows, nu: list[Fraction]) -> Array:
    """Vectors of float64 whose sum is nu, as many as A^T nu needs."""
    parts: list[Array] = []
    for _ in range(PARTS):
        parts.append(np.array([float(number) for number in nu]))
        nu = [number - Fraction(part) for number, part in zip(nu, parts[-1].tolist(), strict=True)]
        if EPS * (np.abs(parts[-1]) @ np.abs(rows.A)).max() <= VISIBLE:
            break
    return np.array(parts)
