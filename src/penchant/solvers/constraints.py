"""The linear constraints X beta = y brought to full row rank and unit scale."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import scipy

from penchant.arguments import Array
from penchant.door import Invalid
from penchant.solvers import exact
from penchant.solvers.pivots import Pivoted
from penchant.solvers.sparse_rows import WIDE, SparseRows, gram, row_lengths

CONSISTENT = 1e-9  # relative distance of y from the range of X that still counts as rounding
NEARLY = 16  # roundings for each row or column: rows closer to dependent than this are dependent
ROUNDING = 1e-14  # of the largest target: what may be left of one that vanishes
VISIBLE = 1e-12  # of the largest entry of X^T dual: what rounding of the dual may change there
LEAST = float(np.finfo(float).smallest_subnormal)
PARTS = 40  # numbers of float64 whose sum is one entry of a dual, at most


@dataclasses.dataclass(frozen=True)
class Constraints:
    """An equivalent system `X beta/scale = y` with independent rows of comparable size.

    `back` maps a dual vector of this system to one of the original rows (a vector of row factors,
    or a matrix where rows had to be combined). Then `leading` are the columns of the original rows
    that have become unit vectors.
    """

    X: Array
    y: Array
    scale: float
    back: Array
    leading: Array | None = None
    turn: Array | None = None  # from the dual of turned rows to that of the combined ones
    units: Array | float = 1.0  # of the leading columns
    gram: Array | None = None  # Cholesky's factor of X X^T, for rows that are far from dependent

    def shortest(self, right: Array) -> Array:
        """The shortest v with X v = right, for rows that are far from dependent."""
        return np.asarray(scipy.linalg.lapack.dpotrs(self.gram, right, lower=True)[0] @ self.X)

    def orthonormal(self) -> Constraints:
        """The same with combined rows turned into orthonormal ones; others stay as they are."""
        if self.leading is None or not len(self.X):
            return self
        basis, triangle = np.linalg.qr(self.X.T)
        y = np.linalg.solve(triangle.T, self.y)
        turn = np.linalg.inv(triangle)
        return dataclasses.replace(self, X=np.ascontiguousarray(basis.T), y=y, turn=turn)

    def combine(self, values: Array) -> Array:
        """One value for each reduced row from those of the original rows."""
        combined = self.back * values if self.leading is None else values @ self.back
        return combined if self.turn is None else combined @ self.turn

    def original_dual(self, dual: Array) -> Array:
        if self.turn is not None:
            dual = self.turn @ dual
        if self.leading is None:
            return self.back * dual
        original = self.back @ dual
        for _ in range(2):  # rounding is taken out where the dual can be read off
            original += self.back @ (dual - original @ self.leading)
        return original

    def exact_dual(self, dual: Array) -> Array:
        """The dual of the original rows as a sum of vectors, the first of them the largest."""
        if self.turn is not None:
            return dataclasses.replace(self, turn=None).exact_dual(self.turn @ dual)
        parts = self.original_dual(dual)[None]
        if self.leading is None or not dual.any():
            return parts
        enough, last = VISIBLE * float(np.abs(dual).max()), np.inf
        if np.finfo(float).eps * (np.abs(parts[0]) @ np.abs(self.leading)).max() <= enough:
            return parts
        for _ in range(PARTS - 1):
            missing = exact.rest(dual, parts, self.leading)
            size = float(np.abs(self.units * missing).max())
            if np.abs(missing).max() <= enough or not size < 0.5 * last:
                break
            parts, last = np.vstack([parts, self.back @ missing]), size
        return parts


def reduce(X: Array, y: Array) -> Constraints:
    """The equivalent full-rank system, or a ValueError when no predictor fits y."""
    given = X
    # dividing twice keeps rows of size 1e-200 and their squares representable
    factors = unit(np.abs(X).max(axis=1))
    # first y in its own unit: huge rows would take it below float64
    lift = power_above(y)
    X, y = X * factors[:, None], y / lift * factors
    more = unit(row_lengths(X))
    X, y, factors = X * more[:, None], y * more, factors * more
    # a power of two: any other scale would round y, which nearly dependent rows magnify
    scale = power_above(y)
    y, scale = y / scale, max(lift * scale, LEAST)
    if len(X) <= X.shape[1] and (factor := gram_factor(X)) is not None:
        return Constraints(X, y, scale, factors, gram=factor)
    if isinstance(X, SparseRows):
        if X.dense is None:
            raise Invalid(
                "the rows of the sparse X are too close to dependent, and it is too large to be"
                " made dense; drop rows that nearly depend on others"
            )
        X, given = X.dense, given.dense
    return combined_rows(X, y, scale, factors, given)


def unit(sizes: Array) -> Array:
    """Powers of two that bring `sizes` to order one: exact, so that column relations survive."""
    # the power that belongs to a number below 2^-1023 is beyond float64
    return np.ldexp(1.0, np.minimum(-np.frexp(np.where(sizes > 0, sizes, 1.0))[1], 1023))


def power_above(values: Array) -> float:
    """The power of two next above the largest of the values, one for zeros."""
    return math.ldexp(1.0, math.frexp(float(np.abs(values).max(initial=0.0)) or 0.5)[1])


def gram_factor(X: Array) -> Array | None:
    """Cholesky's factor of X X^T; None unless the condition of X is below about 1e4.

    LAPACK estimates the condition of the Gram matrix, and its estimate may miss by any factor. The
    least pivot is an upper bound of the least eigenvalue.
    """
    products = gram(X)
    factor, failed = scipy.linalg.lapack.dpotrf(products, lower=True)
    if failed or not factor.diagonal().min(initial=1.0) ** 2 > 1e-8 * products.max(initial=0.0):
        return None
    reciprocal, _ = scipy.linalg.lapack.dpocon(factor, np.abs(products).sum(axis=0).max(), uplo="L")
    return np.asarray(factor) if reciprocal > 1e-8 else None


def combined_rows(X: Array, y: Array, scale: float, factors: Array, given: Array) -> Constraints:
    """Combinations of the rows in which the heaviest independent columns are unit vectors."""
    rounding = max(X.shape) * np.finfo(float).eps
    for dependent in (NEARLY * rounding, rounding):
        pivoted = Pivoted(X, dependent)
        fit = pivoted.fit(y)
        misfit = missed(pivoted, fit, y)
        if not misfit:
            break
    else:
        if exact.independent(given):
            raise Invalid(
                "the rows of X are independent, but too close to dependent for float64: a"
                " beta that fits y would be huge; drop or correct rows that nearly depend on others"
            )
        raise Invalid(
            f"y must lie in the range of X, but no beta fits it: {misfit:.2g} of y's norm"
            " cannot be reached; drop or correct contradicting rows"
        )
    chosen, columns = pivoted.chosen, pivoted.columns
    combined = pivoted.combined()
    combined *= columns[chosen][:, None] / columns
    target = fit * columns[chosen]
    back = factors[:, None] * pivoted.back() * columns[chosen]
    # the combined targets may have left unit scale
    size = power_above(target)
    leading = given[:, chosen]
    combined = np.ascontiguousarray(combined)
    units = columns[chosen]
    return Constraints(combined, target / size, scale * size, back, leading, units=units)


def missed(pivoted: Pivoted, fit: Array, y: Array) -> float:
    """The part of y's norm by which a fit on independent rows misses the others; 0 for rounding."""
    y, columns = y * pivoted.factors, pivoted.X[:, pivoted.chosen]
    gaps = np.abs(y - columns @ fit)
    terms = np.abs(columns) @ np.abs(fit)
    # a target that should vanish may be the rounding of a sum of entries of the fit's size
    largest = float(
        np.abs(y).max() + np.abs(fit).max(initial=0.0) * np.abs(columns).max(initial=0.0)
    )
    if (gaps <= CONSISTENT * terms + ROUNDING * largest).all():
        return 0.0
    return float(np.linalg.norm(gaps) / np.linalg.norm(y))


def refitted(X: Array, y: Array, beta: Array, free: Any = None) -> Array:
    """beta with X beta = y to rounding, moved along the heaviest columns of X alone.

    `free` says which entries may move; by default those that are not zero, and all where these do
    not meet the rows.
    """
    if isinstance(X, SparseRows):
        some = X.heaviest(np.zeros(len(beta)), WIDE * len(X))
        lacking = exact.missing(X, beta, y)
        moved = beta.copy()
        moved[some] += refitted(X[:, some], lacking, np.zeros(len(some)))
        return moved
    choices = (beta != 0, np.ones(len(beta), dtype=bool)) if free is None else (free,)
    for free in choices:
        pivoted = Pivoted(X * free, NEARLY * max(X.shape) * np.finfo(float).eps)
        moved = beta.copy()
        for _ in range(2):
            move = pivoted.fit(exact.missing(X, moved, y))
            moved[pivoted.chosen] += pivoted.columns[pivoted.chosen] * move
        if np.abs(exact.missing(X, moved, y)).max() <= 1e-6 * np.abs(y).max():
            break
    return moved
