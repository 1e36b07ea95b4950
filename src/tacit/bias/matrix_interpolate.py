"""argmin regularizer(M) under <X_n, M> = y_n, for regularizers of the singular values."""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import ArrayLike

from tacit.arguments import Array, finite_array
from tacit.bias import matrix_nuclear
from tacit.bias.continuation import Failed
from tacit.bias.matrix_law import law_of
from tacit.bias.matrix_measurements import MatrixData, Measurements, Sensed, measurements
from tacit.bias.matrix_newton import corrected
from tacit.bias.matrix_path import descend
from tacit.bias.matrix_solution import MatrixSolution, graph_distance, kkt, residual
from tacit.bias.spectral import Frobenius, Nuclear, Schatten, Spectral, shape_of
from tacit.records import Kind, NumericalError, Outcome
from tacit.threads import one_blas_thread

Found = tuple[Array, Array, int, Outcome]

SOLVED = Outcome(Kind.SOLVED, "the optimality conditions hold to rounding")
RESOLVED = 1e-11  # slacks 1 - s below this are too coarse in float64


def interpolate_matrix(problem: MatrixData, reg: Spectral, *, throw: bool = True) -> MatrixSolution:
    """The matrix that fits <X_n, M> = y_n with the least value of the regularizer.

    Any consistent measurements are solved, also dependent or repeated ones. With `throw=False` a
    numerical failure comes back as the solution's outcome instead of an error.
    """
    if not isinstance(reg, Spectral):
        raise ValueError(
            f"interpolate_matrix: expected a spectral regularizer such as Nuclear(), got {reg!r}"
        )
    with one_blas_thread():
        solution = certified(problem, reg, *found(problem, reg))
    if throw and not solution.outcome.ok:
        raise NumericalError("interpolate_matrix", solution.outcome)
    return solution


def interpolate_measured(
    X: ArrayLike, y: ArrayLike, reg: Spectral, *, throw: bool = True
) -> MatrixSolution:
    """The same for measurement matrices given as an array (samples, d1, d2)."""
    if len(shape := shape_of(X)) == 2:
        raise ValueError(
            f"interpolate: X must have 3 dimensions (samples, d1, d2) for {reg}, got shape"
            f" {shape}; for measurement vectors use Q(...), L1() or L2()"
        )
    matrices = finite_array("interpolate", "X", X, ndim=3)
    y = finite_array("interpolate", "y", y, ndim=1)
    if len(matrices) != len(y):
        raise ValueError(
            f"interpolate: X has {len(matrices)} matrices but y has {len(y)} entries;"
            " they must match"
        )
    return interpolate_matrix(Sensed(matrices, y), reg, throw=throw)


def found(problem: MatrixData, reg: Spectral) -> Found:
    """(matrix, dual, iterations, outcome) in the original units."""
    at = measurements(problem)
    if isinstance(at, Outcome):
        return nothing(problem, at)
    if not at.y.any():
        zero = Outcome(Kind.SOLVED, "y = 0: the zero matrix is the only minimiser")
        return np.zeros(problem.shape), np.zeros(len(problem.y)), 0, zero
    try:
        matrix, nu, steps, outcome = solve(at, reg)
    except Failed as reason:
        return nothing(problem, Outcome(Kind.STALLED, f"no minimiser of {reg}: {reason}"))
    dual = at.original_dual(nu)
    # only the Frobenius norm's gradient grows with the matrix itself at a fixed y/scale
    return (
        at.scale * matrix,
        dual * at.scale if isinstance(reg, Frobenius) else dual,
        steps,
        outcome,
    )


def nothing(problem: MatrixData, outcome: Outcome) -> Found:
    return np.full(problem.shape, np.nan), np.full(len(problem.y), np.nan), 0, outcome


def solve(at: Measurements, reg: Spectral) -> Found:
    """(matrix, dual, iterations, outcome) in the units of `at`."""
    if isinstance(reg, Frobenius):
        nu = at.least(at.y)
        return at.adjoint(nu), nu, 1, SOLVED
    if isinstance(reg, Nuclear):
        return matrix_nuclear.solve(at)
    if isinstance(reg, Schatten):
        return schatten(at, reg)
    raise ValueError(f"interpolate_matrix: knows Nuclear, Frobenius and Schatten, got {reg}")


def schatten(at: Measurements, reg: Schatten) -> Found:
    """The minimiser of Schatten-Q; where float64 does not resolve its slacks, its limit."""
    level = reg.q.level - float(np.log(at.scale))
    smallest = float(np.log(RESOLVED)) * reg.q.power
    if level >= smallest:
        return *at_level(at, reg, level), SOLVED
    ends = [at_level(at, reg, smallest)]
    matrix, nu, steps, outcome = matrix_nuclear.solve(at)
    if outcome in (matrix_nuclear.UNIQUE, matrix_nuclear.ALONE):
        ends.append((matrix, nu, steps))
    best = min(ends, key=lambda e: graph_distance(reg, at.scale * e[0], at.adjoint(e[1])))
    text = f"slacks of {reg} are below {RESOLVED:g}, too small for float64; this is its limit there"
    return *best, Outcome(Kind.SOLVED, text)


def at_level(at: Measurements, reg: Schatten, level: float) -> tuple[Array, Array, int]:
    """(matrix, dual, iterations) of Schatten-Q with log mu = level in the units of `at`."""
    (stop,) = deque(descend(at, law_of(reg.q), level, close=1e-10), maxlen=1)
    return corrected(stop.state, stop.hessian), stop.state.nu, stop.spent


def certified(
    problem: MatrixData, reg: Spectral, matrix: Array, dual: Array, steps: int, outcome: Outcome
) -> MatrixSolution:
    """The solution with its certificate, computed from what is returned and the original data."""
    if not np.isfinite(matrix).all():
        return MatrixSolution(matrix, dual, np.nan, np.nan, np.nan, steps, outcome)
    misfit = residual(problem, matrix)
    gap = kkt(problem, reg, matrix, dual) if matrix.any() else 0.0
    worst = max(misfit, gap)
    if outcome.ok and worst > 1e-8:
        text = f"relative residual {misfit:.2g} and KKT residual {gap:.2g} are not small"
        outcome = Outcome(Kind.STALLED, f"{text} ({outcome.sentence})")
    elif outcome is SOLVED and worst > 1e-10:
        outcome = Outcome(Kind.SOLVED, f"the optimality conditions hold to {worst:.1g}")
    return MatrixSolution(matrix, dual, reg(matrix), misfit, gap, steps, outcome)
