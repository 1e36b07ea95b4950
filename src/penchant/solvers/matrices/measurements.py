"""Linear measurements <X_n, M> = y_n brought to independent rows and unit scale."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
from numpy.typing import NDArray

from penchant.arguments import Array
from penchant.problems.matrix_problem import Completion, MatrixProblem
from penchant.records import Kind, Outcome
from penchant.solvers import constraints, exact

Index = NDArray[np.intp]


@dataclasses.dataclass(frozen=True)
class MeasurementRows:
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

    def exact_dual(self, dual: Array) -> Array:
        """The dual of the rows that were given, as a sum of vectors."""
        return self.reduced.exact_dual(dual)

    def mended(self, problem: MatrixProblem, matrix: Array) -> Array:
        """The nearest matrix that meets the measurements as they were given."""
        for _ in range(2):  # the second time what rounding left of the first
            missing = self.reduced.combine(missed(self, problem, matrix))
            matrix = matrix + self.adjoint(self.least(missing))
        return matrix


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

    def exact_dual(self, dual: Array) -> Array:
        original = np.zeros((1, len(dual)))
        original[0, self.first] = dual
        return original

    def mended(self, problem: MatrixProblem, matrix: Array) -> Array:
        mended = matrix.copy()
        mended[self.row, self.column] = self.scale * self.y
        return mended


Measurements = MeasurementRows | Entries


def missed(at: Measurements, problem: MatrixProblem, matrix: Array) -> Array:
    """y_n - <X_n, matrix>, without rounding where nearly dependent measurements magnify it."""
    if isinstance(at, Entries):
        return np.asarray(problem.y - problem.apply(matrix))
    ill = at.reduced.leading is not None
    return exact.missing(problem.design, matrix.ravel(), problem.y, ill)


def measurements(problem: MatrixProblem) -> Measurements | Outcome:
    """The reduced measurements, or an outcome that says why no matrix fits them."""
    if isinstance(problem, Completion):  # it holds every entry once
        first = np.argsort(problem.positions)
        row, column = problem.entries[first].T
        scale = constraints.power_above(problem.y)
        return Entries(problem.shape, row, column, problem.y[first] / scale, scale, first)
    try:
        reduced = constraints.reduce(problem.design, problem.y)
    except ValueError as error:  # raised for contradicting rows only
        sentence = str(error).replace("no beta", "no matrix")
        return Outcome(Kind.INFEASIBLE, sentence.replace("range of X", "range of the measurements"))
    return MeasurementRows(problem.shape, reduced.orthonormal())
