"""What a solver over matrices returns: the selected matrix with its certificate."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from tacit.arguments import Array
from tacit.records import Outcome, Record
from tacit.regularizers.spectral import Nuclear, Spectral
from tacit.solvers.matrices.measurements import MatrixData
from tacit.solvers.solution import Solution


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class MatrixSolution(Record):
    """A constrained minimiser and the numbers that prove it, from `matrix` and `dual` as returned.

    Attributes
    ----------
    matrix
        The minimiser.
    dual
        The multipliers, one per measurement.
    value
        The value of the regularizer at `matrix`.
    residual
        max|<X_n, M> - y_n| / max|y|.
    kkt
        For the nuclear norm, the larger of the relative duality gap and the excess of |S| over
        1, where S = sum_n dual_n X_n; otherwise the distance of (M, S) from the graph of the
        gradient, each axis in units of its largest singular value.
    iterations
        The iterations that the solver took.
    outcome
        How the computation ended, in a sentence.
    log_value
        The natural logarithm of `value`, as in a Solution.
    log_dual_unit
        The unit of the dual, as in a Solution.

    Examples
    --------
    >>> import tacit
    >>> problem = tacit.Completion((2, 2), [[0, 0], [0, 1], [1, 0]], [1.0, 2.0, 3.0])
    >>> solution = tacit.interpolate(problem, tacit.Frobenius())
    >>> solution.outcome.ok, round(solution.value, 6)
    (True, 14.0)
    """

    matrix: Array
    dual: Array
    value: float
    residual: float
    kkt: float
    iterations: int
    outcome: Outcome
    log_value: float = math.nan
    log_dual_unit: float = 0.0

    rows = Solution.rows


def residual(problem: MatrixData, matrix: Array) -> float:
    """max|<X_n, M> - y_n| relative to max|y|."""
    scale = float(np.abs(problem.y).max())
    return float(np.abs(problem.apply(matrix) - problem.y).max() / (scale if scale > 0 else 1.0))


def kkt(problem: MatrixData, reg: Spectral, matrix: Array, dual: Array) -> float:
    """The relative certificate of optimality, see MatrixSolution."""
    S = problem.adjoint(dual)
    if isinstance(reg, Nuclear):
        value = reg(matrix)
        gap = abs(value - float(problem.y @ dual)) / value
        return max(gap, float(np.linalg.norm(S, 2)) - 1)
    return graph_distance(reg, matrix, S)


def graph_distance(reg: Spectral, matrix: Array, S: Array) -> float:
    """How far (M, S) is from a pair with S = gradient(M), in units of |M| and |S|.

    The gradient is monotone, so exactly one pair of its graph has the same M/|M| + S/|S|.
    """
    size, height = float(np.linalg.norm(matrix, 2)), float(np.linalg.norm(S, 2))
    if height == 0:
        return 1.0
    U, total, Vt = np.linalg.svd(matrix / size + S / height, full_matrices=False)
    on_graph = (U * resolvent(reg, total, size, height)) @ Vt
    return float(np.linalg.norm(matrix / size - on_graph, 2))


def resolvent(reg: Spectral, total: Array, size: float, height: float) -> Array:
    """x with x + gradient(size x)/height = total, by bisection in the gradient."""
    low, high = np.zeros_like(total), total * height
    for _ in range(200):
        middle = (low + high) / 2
        with np.errstate(over="ignore"):
            above = reg.law.primal_of(middle) / size + middle / height > total
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return np.maximum(total - low / height, 0.0)
