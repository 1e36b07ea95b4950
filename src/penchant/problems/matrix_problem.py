"""Linear measurements of an unknown matrix: single entries, or inner products."""

from __future__ import annotations

import abc
import dataclasses

import numpy as np
from numpy.typing import ArrayLike, NDArray

from penchant.arguments import Array, finite_array, matrix_shape, one_of
from penchant.door import Invalid, door
from penchant.problems.regression import SQUARED, Regression, frozen, log_factor
from penchant.records import Record, assign

Shape = tuple[int, int]


class MatrixProblem(Record, abc.ABC):
    """Numbers y_n = <X_n, M> of an unknown matrix M of `shape`, and the `truth` where known.

    This is what `Completion` and `Sensing` have in common; functions that take either name it.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> problem = penchant.problems.Completion((2, 2), [[0, 0], [1, 1]], [1.0, 2.0])
    >>> isinstance(problem, penchant.problems.MatrixProblem), problem.apply(np.eye(2))
    (True, array([1., 1.]))
    """

    shape: Shape
    y: Array
    truth: Array | None
    description: str
    loss: str
    test: None = None  # the truth tests a matrix

    @abc.abstractmethod
    def apply(self, matrix: Array) -> Array:
        """<X_n, matrix> for every measurement; also for a stack of matrices."""

    @abc.abstractmethod
    def adjoint(self, weights: Array) -> Array:
        """sum_n weights_n X_n; also for a stack of weights."""

    @property
    @abc.abstractmethod
    def design(self) -> Array:
        """The measurements as rows, entries in C order: design @ M.ravel() is apply(M)."""

    @property
    @abc.abstractmethod
    def hidden(self) -> NDArray[np.bool_]:
        """True for the entries of M over which a test error is computed."""

    @property
    def log_factor(self) -> float:
        """log of what the sum of squares is multiplied by."""
        return log_factor(self.loss)

    @property
    def samples(self) -> int:
        return len(self.y)

    @property
    def dimension(self) -> int:
        """The number of entries of M: features, seen as linear regression."""
        return self.shape[0] * self.shape[1]

    def test_error(self, matrix: Array) -> float:
        """The root mean square of matrix - truth over the hidden entries; NaN if there are none."""
        if self.truth is None:
            raise ValueError(
                f"{type(self).__name__}.test_error: the truth is not known; give truth="
            )
        missed = (matrix - self.truth)[self.hidden]
        return float(np.sqrt(np.mean(missed**2))) if missed.size else float("nan")

    def regression(self) -> Regression:
        """The same data as linear regression on vec(M), for flows that handle vectors only."""
        truth = None if self.truth is None else self.truth.ravel()
        return Regression(self.design, self.y, truth, description=self.description, loss=self.loss)


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Completion(MatrixProblem):
    """The `values` of single `entries` (one row and column index each) of a matrix of `shape`.

    An entry listed twice with the same value is kept once.

    Parameters
    ----------
    shape
        The numbers of rows and columns.
    entries
        The positions, one row of two indices each.
    values
        The values at these positions.
    truth
        The whole matrix, where it is known.
    symmetric
        The matrix is known to equal its transpose: entry (i, j) then also determines (j, i),
        which is not `hidden`.
    description
        One line that says what the data are.
    loss
        The sum of the squared residuals ("squares") or half of it ("half squares").

    Examples
    --------
    >>> import penchant
    >>> problem = penchant.problems.Completion((2, 2), [[0, 1], [1, 0]], [1.0, 2.0])
    >>> problem.hidden.tolist()
    [[True, False], [False, True]]
    """

    shape: Shape
    entries: NDArray[np.int64]
    values: Array
    truth: Array | None = None
    symmetric: bool = False
    description: str = "matrix entries given as arrays"
    loss: str = dataclasses.field(default="squares", kw_only=True)
    y: Array = dataclasses.field(init=False, repr=False)

    @door
    def __post_init__(self) -> None:
        shape = matrix_shape(self.shape)
        one_of("loss", self.loss, SQUARED)
        values = finite_array("values", self.values, ndim=1)
        entries = _entries(self.entries, shape)
        if len(entries) != len(values):
            raise Invalid(
                f"there are {len(entries)} entries but {len(values)} values; they must match"
            )
        if self.symmetric and shape[0] != shape[1]:
            raise Invalid(f"a symmetric matrix must be square, got shape {shape}")
        entries, values = _once(entries, values, shape)
        entries.setflags(write=False)
        truth = _truth(self.truth, shape)
        values = frozen(values)
        assign(self, shape=shape, entries=entries, values=values, y=values, truth=truth)

    @property
    def observed(self) -> NDArray[np.bool_]:
        """True where an entry was seen."""
        mask = np.zeros(self.shape, dtype=bool)
        mask[self.entries[:, 0], self.entries[:, 1]] = True
        return mask

    @property
    def hidden(self) -> NDArray[np.bool_]:
        seen = self.observed
        return ~(seen | seen.T) if self.symmetric else ~seen

    def apply(self, matrix: Array) -> Array:
        return matrix[..., self.entries[:, 0], self.entries[:, 1]]

    def adjoint(self, weights: Array) -> Array:
        matrix = np.zeros((*weights.shape[:-1], *self.shape))
        matrix[..., self.entries[:, 0], self.entries[:, 1]] = weights
        return matrix

    @property
    def positions(self) -> NDArray[np.int64]:
        """Where the observed entries are in M.ravel()."""
        return self.entries @ np.array([self.shape[1], 1])

    @property
    def design(self) -> Array:
        rows = np.zeros((self.samples, self.dimension))
        rows[np.arange(self.samples), self.positions] = 1.0
        return rows


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Sensing(MatrixProblem):
    """y_n = <measurements_n, M> for a stack of measurement matrices; every entry is `hidden`.

    Parameters
    ----------
    measurements
        The matrices, (samples, rows, columns).
    y
        One label per measurement.
    truth
        The matrix, where it is known.
    description
        One line that says what the data are.
    loss
        The sum of the squared residuals ("squares") or half of it ("half squares").

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> problem = penchant.problems.Sensing([[[1.0, 2.0], [0.0, 1.0]]], [3.0])
    >>> problem.apply(np.eye(2))
    array([2.])
    """

    measurements: Array
    y: Array
    truth: Array | None = None
    description: str = "matrix measurements given as arrays"
    loss: str = dataclasses.field(default="squares", kw_only=True)
    shape: Shape = dataclasses.field(init=False)

    @door
    def __post_init__(self) -> None:
        measurements = finite_array("measurements", self.measurements, ndim=3)
        one_of("loss", self.loss, SQUARED)
        y = finite_array("y", self.y, ndim=1)
        if len(measurements) != len(y):
            raise Invalid(
                f"there are {len(measurements)} measurements but y has {len(y)} entries; "
                "they must match"
            )
        shape = measurements.shape[1], measurements.shape[2]
        truth = _truth(self.truth, shape)
        assign(self, measurements=frozen(measurements), y=frozen(y), shape=shape, truth=truth)

    @property
    def hidden(self) -> NDArray[np.bool_]:
        return np.ones(self.shape, dtype=bool)

    def apply(self, matrix: Array) -> Array:
        return matrix.reshape(*matrix.shape[:-2], -1) @ self.design.T

    def adjoint(self, weights: Array) -> Array:
        return (weights @ self.design).reshape(*weights.shape[:-1], *self.shape)

    @property
    def design(self) -> Array:
        return self.measurements.reshape(self.samples, -1)


def _entries(entries: ArrayLike, shape: Shape) -> NDArray[np.int64]:
    """An (observations x 2) table of indices inside `shape`."""
    table = finite_array("entries", entries, ndim=2)
    if table.shape[1] != 2:
        raise Invalid(f"entries must be pairs (row, column), got {table.shape[1]} columns")
    if (table != np.rint(table)).any():
        raise Invalid("entries must be integers, got a fraction; indices start at 0")
    outside = np.flatnonzero(((table < 0) | (table >= np.array(shape))).any(axis=1))
    if len(outside):
        i, j = table[outside[0]].astype(int)
        raise Invalid(
            f"observation {outside[0]} is entry ({i}, {j}), outside a matrix of shape "
            f"{shape}; indices start at 0"
        )
    return table.astype(np.int64)


def _once(
    entries: NDArray[np.int64], values: Array, shape: Shape
) -> tuple[NDArray[np.int64], Array]:
    """Every entry once, in the order given; two different values for one entry raise."""
    positions = entries @ np.array([shape[1], 1])
    _, first, group = np.unique(positions, return_index=True, return_inverse=True)
    clash = np.flatnonzero(values != values[first][group])
    if len(clash):
        n = clash[0]
        i, j = entries[n]
        raise Invalid(
            f"entry ({i}, {j}) is observed twice with two values, "
            f"{values[first][group][n]:g} and {values[n]:g}; keep one of them"
        )
    keep = np.sort(first)
    return entries[keep], values[keep]


def _truth(truth: ArrayLike | None, shape: Shape) -> Array | None:
    """The truth as a frozen matrix of `shape`, or None."""
    if truth is None:
        return None
    matrix = finite_array("truth", truth, ndim=2)
    if matrix.shape != shape:
        raise Invalid(f"truth must have shape {shape}, got {matrix.shape}")
    return frozen(matrix)
