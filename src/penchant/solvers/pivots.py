"""The heaviest independent columns of a matrix, also where ties and scales mislead a QR.

How it works. Where the slopes b' of a dual Newton method differ by many decades, its equations are
well posed in another basis: nu is replaced by s on the coordinates that carry most of the
predictor, that is, rows are combined so that those columns become unit vectors. This module chooses
the columns, greedily by weight times the part that is new, and eliminates.

LAPACK's QR with pivoting chooses in one call and is right almost always. It is not where two equal
columns are heavy: after the first one the second leaves only rounding, but rounding times a large
weight outweighs every light column, and both are taken. So what is left of each chosen column is
compared with its own length, and in doubt the columns are projected out one after the other.

Pitfalls. The weights are squares of sizes and leave the range of float64, so they are logarithms.
Elimination of columns whose condition is beyond 1e4 leaves errors that the dual shows: its
residuals are then computed exactly (`exact.rest`) and the solution is refined until it rests. An
entry that is no more than the rounding of its sum is set to zero, so that a column that is zero
stays zero. Units are removed by powers of two, which rounds nothing.
"""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray

from penchant.arguments import Array
from penchant.solvers import exact
from penchant.solvers.sparse_rows import WIDE, SparseRows

Index = NDArray[np.intp]

EPS = float(np.finfo(float).eps)
ILL = 1e4  # condition of chosen columns from which on their elimination is refined exactly
REFINEMENTS = 10
MOST = 10_000_000  # products in one refinement, about one second
POWERS = -1000, 1000  # of two that float64 holds, as their inverses
DEPENDENT = 1e-11  # of its own length: what is left of a column that depends on others


def heaviest_columns(X: Array, log_weight: Array, dependent: float = DEPENDENT) -> Index:
    """Independent columns, as many as the rank, chosen greedily by weight times what is new.

    Equal columns of large weight leave rounding that outweighs every other column, so that
    LAPACK's pivoting takes both; what is left of a column is judged against its own length.
    """
    if isinstance(X, SparseRows):
        some = X.heaviest(log_weight, WIDE * len(X))
        return some[heaviest_columns(X[:, some], log_weight[some], dependent)]
    length = np.linalg.norm(X, axis=0)
    moving = np.flatnonzero(length)
    heavy = log_weight[moving] + 2 * np.log(length[moving])
    unit = X[:, moving] / length[moving]
    fast = by_qr(unit, heavy, 1e3 * dependent)
    return moving[by_projection(unit, heavy, dependent) if fast is None else fast]


def by_qr(unit: Array, heavy: Array, dependent: float) -> Index | None:
    """LAPACK's choice, or None where it may have taken a column that depends on others."""
    samples, count = unit.shape
    if not 0 < samples <= count:
        return None
    root = np.exp(np.maximum((heavy - heavy.max()) / 2, -300.0))
    triangle, order = scipy.linalg.qr(unit * root, mode="r", pivoting=True, check_finite=False)
    left = np.abs(triangle.diagonal()) / root[order[:samples]]
    return order[:samples] if left.min() > dependent else None


def by_projection(unit: Array, heavy: Array, dependent: float) -> Index:
    """The same by projecting out one column after the other."""
    left, chosen, basis = unit.copy(), [], np.zeros((len(unit), 0))
    for _ in range(min(unit.shape)):
        new = np.linalg.norm(left, axis=0)
        with np.errstate(divide="ignore"):
            score = np.where(new > dependent, heavy + 2 * np.log(new), -np.inf)
        best = int(np.argmax(score))
        if score[best] == -np.inf:
            break
        direction = left[:, best] / new[best]
        direction -= basis @ (basis.T @ direction)
        direction /= np.linalg.norm(direction)
        left -= np.outer(direction, direction @ left)
        left[:, best] = 0.0
        basis = np.column_stack([basis, direction])
        chosen.append(best)
    return np.array(chosen, dtype=np.intp)


class Elimination:
    """Rows combined so that some of their columns become unit vectors."""

    def __init__(self, columns: Array) -> None:
        self.columns, self.back, self.ill = columns, np.zeros((0, 0)), False
        if not columns.size:  # LAPACK takes no empty matrix
            return
        self.factor = scipy.linalg.lu_factor(columns, check_finite=False)
        unit = np.eye(len(columns))
        #: from a dual vector of the combined rows to one of the rows
        self.back = scipy.linalg.lu_solve(self.factor, unit, trans=1, check_finite=False)
        #: float64 residuals would leave an error that the dual shows
        self.ill = bool((np.abs(self.back.T) @ np.abs(columns)).max(initial=0.0) > ILL)

    def missed(self, right: Array, x: Array) -> Array:
        """right - columns x, each entry rounded once."""
        pairs = zip(np.atleast_2d(right.T), np.atleast_2d(x.T), strict=True)
        rests = [exact.rest(target, guess[None], self.columns.T) for target, guess in pairs]
        return np.array(rests).T.reshape(right.shape)

    def of(self, right: Array) -> Array:
        """The combinations of `right`; what is no more than their rounding is zero."""
        if not self.columns.size:
            return np.zeros_like(right)
        x = scipy.linalg.lu_solve(self.factor, right, check_finite=False)
        exactly = self.ill and right.size * len(right) < MOST
        for _ in range(REFINEMENTS if exactly else 1):
            missed = self.missed(right, x) if exactly else right - self.columns @ x
            move = scipy.linalg.lu_solve(self.factor, missed, check_finite=False)
            x = x + move
            if (np.abs(move) <= EPS * np.abs(x).max(axis=0, initial=0.0)).all():
                break
        noise = 4 * EPS * (np.abs(self.back.T) @ np.abs(right))
        noise = np.minimum(noise, 8 * EPS * np.abs(x).max(axis=0, initial=0.0))
        return np.where(np.abs(x) > noise, x, 0.0)


class Pivoted:
    """Independent rows and columns of X, with all entries near one, and their elimination."""

    def __init__(self, X: Array, dependent: float) -> None:
        self.factors, self.columns = balanced(X)
        self.X = X * self.factors[:, None] * self.columns
        self.chosen = heaviest_columns(self.X, -2 * np.log(self.columns), dependent)
        self.rows = independent_rows(self.X[:, self.chosen])
        self.elimination = Elimination(self.X[np.ix_(self.rows, self.chosen)])

    def fit(self, y: Array) -> Array:
        """The chosen coordinates that fit y on the independent rows, in units of the columns."""
        return self.elimination.of((y * self.factors)[self.rows])

    def combined(self) -> Array:
        """The rows combined so that the chosen columns are unit vectors."""
        combined = self.elimination.of(self.X[self.rows])
        combined[:, self.chosen] = np.eye(len(self.chosen))
        return combined

    def back(self) -> Array:
        """From a dual vector of the combined rows to one of the rows that were given."""
        back = np.zeros((len(self.X), len(self.chosen)))
        back[self.rows] = self.factors[self.rows][:, None] * self.elimination.back
        return back


def balanced(X: Array) -> tuple[Array, Array]:
    """Powers of two for rows and columns that bring the entries of X near one."""
    present = X != 0
    logs = np.log2(np.where(present, np.abs(X), 1.0))
    in_row, in_column = (np.maximum(present.sum(axis=a), 1) for a in (1, 0))
    rows, columns = np.zeros(len(X)), np.zeros(X.shape[1])
    for _ in range(10):  # geometric means of what is there
        rows = -np.where(present, logs + columns, 0.0).sum(axis=1) / in_row
        columns = -np.where(present, logs + rows[:, None], 0.0).sum(axis=0) / in_column
    return np.exp2(np.clip(np.round(rows), *POWERS)), np.exp2(np.clip(np.round(columns), *POWERS))


def independent_rows(columns: Array) -> Index:
    """As many independent rows of independent columns."""
    if columns.shape[1] in (0, len(columns)):  # LAPACK takes no empty matrix
        return np.arange(columns.shape[1])
    order = scipy.linalg.qr(columns.T, mode="r", pivoting=True, check_finite=False)[-1]
    return np.sort(order[: columns.shape[1]])
