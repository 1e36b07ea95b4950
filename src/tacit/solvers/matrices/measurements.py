"""Linear measurements <X_n, M> = y_n brought to independent rows and unit scale."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
from numpy.typing import NDArray

from tacit.arguments import Array
from tacit.problems.matrix_problem import Completion, MatrixProblem
from tacit.records import Kind, Outcome
from tacit.solvers import constraints

Index = NDArray[np.intp]


@dataclasses.dataclass(frozen=True)
class Rows:
    """Any measurement matrices, by their reduced design rows."""

    shape: tuple[int, int]
    reduced: constraints.Constraints

    @property
    def y(self) -> Array:
        return self.reduced.y

    @property
    def scale(self) -> float:
        return self.reduced.scale

    def apply(self, matrix: Array) -> Array:
        """<X_n, matrix> for every n."""
        return self.reduced.X @ matrix.ravel()

    def adjoint(self, dual: Array) -> Array:
        """sum_n dual_n X_n."""
        return (dual @ self.reduced.X).reshape(self.shape)

    def rotated(self, U: Array, V: Array) -> Array:
        """U^T X_n V for every n, as one array (samples, d1, d2)."""
        return U.T @ self.reduced.X.reshape(-1, *self.shape) @ V

    @functools.cached_property
    def triangle(self) -> Array:
        """R with R^T R the Gram matrix of the rows, without squaring their condition."""
        return np.linalg.qr(self.reduced.X.T)[1]

    def least(self, values: Array) -> Array:
        """The dual of the matrix of least Frobenius norm with these values: it is its adjoint."""
        R = self.triangle
        dual = np.linalg.solve(R, np.linalg.solve(R.T, values))
        left = values - self.apply(self.adjoint(dual))
        return dual + np.linalg.solve(R, np.linalg.solve(R.T, left))

    def original_dual(self, dual: Array) -> Array:
        """The dual of the rows that were given."""
        return self.reduced.original_dual(dual)


@dataclasses.dataclass(frozen=True)
class Entries:
    """Single entries (row_n, column_n), each once; `first` says where each stood in the data."""

    shape: tuple[int, int]
    row: Index
    column: Index
    y: Array
    scale: float
    first: Index

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
        original = np.zeros(len(dual))
        original[self.first] = dual
        return original


Measurements = Rows | Entries


def measurements(problem: MatrixProblem) -> Measurements | Outcome:
    """The reduced measurements, or an outcome that says why no matrix fits them."""
    if isinstance(problem, Completion):  # it holds every entry once
        first = np.argsort(problem.positions)
        row, column = problem.entries[first].T
        scale = float(np.abs(problem.y).max()) or 1.0
        return Entries(problem.shape, row, column, problem.y[first] / scale, scale, first)
    try:
        reduced = constraints.reduce("interpolate", problem.design, problem.y)
    except ValueError as error:  # raised for contradicting rows only
        sentence = str(error).removeprefix("interpolate: ").replace("no beta", "no matrix")
        return Outcome(Kind.INFEASIBLE, sentence.replace("range of X", "range of the measurements"))
    return Rows(problem.shape, reduced.orthonormal())
