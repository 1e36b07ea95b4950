"""Linear measurements <X_n, M> = y_n brought to independent rows and unit scale."""

from __future__ import annotations

import abc
import dataclasses
import functools
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.arguments import Array
from tacit.records import Kind, Outcome
from tacit.solvers import constraints

Index = NDArray[np.intp]


class MatrixData(Protocol):
    """What a problem over matrices must offer; `entries` is looked up where there is one."""

    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def y(self) -> Array: ...
    @property
    def samples(self) -> int: ...
    @property
    def design(self) -> Array: ...
    def apply(self, matrix: Array, /) -> Array: ...
    def adjoint(self, dual: Array, /) -> Array: ...


@dataclasses.dataclass(frozen=True)
class Sensed:
    """Measurement matrices as one array (samples, d1, d2), with the values y."""

    matrices: Array
    y: Array

    @property
    def shape(self) -> tuple[int, int]:
        return self.matrices.shape[1], self.matrices.shape[2]

    @property
    def samples(self) -> int:
        return len(self.y)

    @property
    def design(self) -> Array:
        return self.matrices.reshape(len(self.y), -1)

    def apply(self, matrix: Array, /) -> Array:
        return self.design @ matrix.ravel()

    def adjoint(self, dual: Array, /) -> Array:
        return (dual @ self.design).reshape(self.shape)


class Measurements(abc.ABC):
    """Independent measurements of M/scale with values y of unit scale."""

    shape: tuple[int, int]
    y: Array
    scale: float

    @abc.abstractmethod
    def apply(self, matrix: Array) -> Array:
        """<X_n, matrix> for every n."""

    @abc.abstractmethod
    def adjoint(self, dual: Array) -> Array:
        """sum_n dual_n X_n."""

    @abc.abstractmethod
    def rotated(self, U: Array, V: Array) -> Array:
        """U^T X_n V for every n, as one array (samples, d1, d2)."""

    @abc.abstractmethod
    def least(self, values: Array) -> Array:
        """The dual of the matrix of least Frobenius norm with these values: it is its adjoint."""

    @abc.abstractmethod
    def original_dual(self, dual: Array) -> Array:
        """The dual of the rows that were given."""


@dataclasses.dataclass(frozen=True)
class Rows(Measurements):
    """Any measurement matrices, by their reduced design rows."""

    shape: tuple[int, int]
    reduced: constraints.Constraints

    @property
    def y(self) -> Array:  # type: ignore[override]
        return self.reduced.y

    @property
    def scale(self) -> float:  # type: ignore[override]
        return self.reduced.scale

    def apply(self, matrix: Array) -> Array:
        return self.reduced.X @ matrix.ravel()

    def adjoint(self, dual: Array) -> Array:
        return (dual @ self.reduced.X).reshape(self.shape)

    def rotated(self, U: Array, V: Array) -> Array:
        return U.T @ self.reduced.X.reshape(-1, *self.shape) @ V

    @functools.cached_property
    def triangle(self) -> Array:
        """R with R^T R the Gram matrix of the rows, without squaring their condition."""
        return np.linalg.qr(self.reduced.X.T)[1]

    def least(self, values: Array) -> Array:
        R = self.triangle
        dual = np.linalg.solve(R, np.linalg.solve(R.T, values))
        left = values - self.apply(self.adjoint(dual))
        return dual + np.linalg.solve(R, np.linalg.solve(R.T, left))

    def original_dual(self, dual: Array) -> Array:
        return self.reduced.original_dual(dual)


@dataclasses.dataclass(frozen=True)
class Entries(Measurements):
    """Single entries (row_n, column_n), each once; `first` says where each stood in the data."""

    shape: tuple[int, int]
    row: Index
    column: Index
    y: Array
    scale: float
    first: Index
    samples: int

    def apply(self, matrix: Array) -> Array:
        return matrix[self.row, self.column]

    def adjoint(self, dual: Array) -> Array:
        matrix = np.zeros(self.shape)
        matrix[self.row, self.column] = dual
        return matrix

    def rotated(self, U: Array, V: Array) -> Array:
        return U[self.row][:, :, None] * V[self.column][:, None, :]

    def least(self, values: Array) -> Array:
        return values

    def original_dual(self, dual: Array) -> Array:
        original = np.zeros(self.samples)
        original[self.first] = dual
        return original


def measurements(problem: MatrixData) -> Measurements | Outcome:
    """The reduced measurements, or an outcome that says why no matrix fits them."""
    entries = getattr(problem, "entries", None)
    if entries is not None:
        return distinct(problem.shape, np.asarray(entries, dtype=np.intp), problem.y)
    try:
        reduced = constraints.reduce("interpolate", problem.design, problem.y)
    except ValueError as error:  # raised for contradicting rows only
        sentence = str(error).removeprefix("interpolate: ").replace("no beta", "no matrix")
        return Outcome(Kind.INFEASIBLE, sentence.replace("range of X", "range of the measurements"))
    return Rows(problem.shape, reduced.orthonormal())


def distinct(shape: tuple[int, int], entries: Index, y: Array) -> Measurements | Outcome:
    """Every observed entry once, or an outcome where two observations contradict each other."""
    flat = entries[:, 0] * shape[1] + entries[:, 1]
    _, first, where = np.unique(flat, return_index=True, return_inverse=True)
    scale = float(np.abs(y).max()) or 1.0
    values = y / scale
    apart = np.abs(values - values[first][where])
    if apart.max() > constraints.CONSISTENT:
        i, j = (int(k) for k in entries[np.argmax(apart)])
        text = f"entry ({i}, {j}) is observed with two values, {apart.max() * scale:.3g} apart"
        return Outcome(Kind.INFEASIBLE, f"{text}; drop or mend one of them")
    row, column = entries[first].T
    return Entries(shape, row, column, values[first], scale, first, len(y))
