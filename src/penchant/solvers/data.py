"""The data of a solver: arrays or the problem that holds them, in units of order one."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penchant.arguments import Array
from penchant.door import Invalid
from penchant.problems.classification import Classification
from penchant.problems.matrix_problem import MatrixProblem
from penchant.problems.regression import Regression

Problem = Regression | Classification | MatrixProblem
OTHERS = {
    Regression: "max_margin() separates",
    Classification: "interpolate() fits",
}
ORDINARY = 100  # exponents of two up to this need no other units: squares and products stay finite
FARTHEST = 300  # exponent of a predictor up to which a regularizer without a scale is followed
NEAREST = 1000  # exponent below one of targets that leave float64 the digits of a predictor
LOG2 = math.log(2.0)


def after_problem(y: Any, third: Any, default: Any = None) -> Any:
    """The argument after a problem, given in place of y or by name."""
    if y is None:
        return third
    if third is not default or np.ndim(y) > 0:
        raise Invalid("a problem holds its own y; give the problem without y, or X and y as arrays")
    return y


def unpacked(
    kind: type[Regression | Classification],
    X: Any,
    y: Any,
    third: Any,
    default: Any = None,
) -> tuple[Any, Any, Any]:
    """(X, y, third), from these arguments or from (problem, third) with a problem of this kind."""
    if not isinstance(X, Problem):
        return X, y, third
    third = after_problem(y, third, default)
    if isinstance(X, kind):
        return X.X, X.y, third
    way = f"{OTHERS[kind]} its samples"
    if isinstance(X, MatrixProblem):
        way = "use interpolate(problem, Nuclear()), or problem.regression() for vectors"
    raise Invalid(f"the problem must be a {kind.__name__}, got {type(X).__name__}; {way}")


@dataclasses.dataclass(frozen=True)
class Units:
    """The problem X' beta' = y' with X = 2^rows X' and beta = 2^predictor beta'."""

    rows: NDArray[np.intp]
    predictor: int

    def of_rows(self, X: Array) -> Array:
        return np.ldexp(X, -self.rows.reshape(-1, *(1,) * (X.ndim - 1)))

    def of_targets(self, y: Array) -> Array:
        """The targets in their units; one that is negligible may vanish."""
        with np.errstate(under="ignore", over="ignore"):
            return np.ldexp(y, -self.rows - self.predictor)

    @property
    def log_size(self) -> float:
        """log beta / beta'."""
        return LOG2 * self.predictor

    def original(self, beta: Array) -> Array:
        """The predictor in the units of the data: infinite where it overflows."""
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(beta, self.predictor)


def units_of(X: Array, y: Array, scales: bool) -> Units | None:
    """Units in which rows and predictor are of order one; None for data of ordinary size."""
    sizes = np.abs(X if X.ndim == 2 else X.reshape(len(X), -1)).max(axis=1)
    rows = exponents(sizes)
    targets = exponents(y)
    if max(np.abs(rows).max(), np.abs(targets).max()) <= ORDINARY:
        return None
    moving = y != 0
    moving &= sizes > 0
    predictor = int((targets - rows)[moving].max()) if scales and moving.any() else 0
    # a row of zeros has no size: its target stays in sight
    return Units(np.where(sizes > 0, rows, targets - predictor), predictor)


def exponents(sizes: Array) -> NDArray[np.intp]:
    """The exponents of two next above each size; zero for zero."""
    return np.frexp(sizes)[1].astype(np.intp)


def rows_of_order_one(X: Array) -> Array:
    """Every row divided by a power of two, which is exact, also for rows that are subnormal."""
    return np.ldexp(X, -exponents(np.abs(X).max(axis=1, initial=0.0))[:, None])


def common_units(Z: Array) -> Units | None:
    """One unit for all rows, whose margins are all measured against one; None if rows need none."""
    powers = exponents(np.abs(Z).max(axis=1))
    if np.abs(powers).max() <= ORDINARY:
        return None
    middle = int(powers.min() + powers.max()) // 2
    return Units(np.full(len(Z), middle), -middle)


def column_exponents(X: Array) -> NDArray[np.intp]:
    """The exponents of two of the columns; a column of zeros has that of the largest."""
    sizes = np.abs(X).max(axis=0, initial=0.0)
    powers, used = exponents(sizes), sizes > 0
    if used.all():
        return powers
    return np.where(used, powers, int(powers[used].max()) if used.any() else 0)


def representable(
    parts: Array, shifts: NDArray[np.intp] | int, log_unit: float
) -> tuple[Array, float]:
    """(parts, 0) of the dual 2^shifts sum(parts) e^log_unit; where float64 does not hold that, in
    a unit of its own. Several parts are only multiplied by powers of two: their sum is exact.
    """
    fractions, powers = np.frexp(parts)
    powers = powers + shifts
    if not parts.any():
        return parts, 0.0
    several = len(parts) > 1
    top = int(powers[parts != 0].max())
    whole = round(log_unit / LOG2)
    left = log_unit - whole * LOG2
    with np.errstate(under="ignore"):
        if abs(top + whole) >= (ORDINARY if several else 1000):
            return np.ldexp(fractions, powers - top), log_unit + top * LOG2
        if several:
            return np.ldexp(fractions, powers + whole), left
        return np.ldexp(fractions * math.exp(left), powers + whole), 0.0
