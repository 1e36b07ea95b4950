"""argmin regularizer(M) under <X_n, M> = y_n, for regularizers of the singular values."""

from __future__ import annotations

import dataclasses
import math
from collections import deque

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, finite_array
from penchant.door import Invalid, door_as
from penchant.limits import OutOfTime, limited
from penchant.problems.matrix_problem import Completion, MatrixProblem, Sensing
from penchant.records import Kind, NumericalError, Outcome, Record
from penchant.regularizers.spectral import Frobenius, Nuclear, Schatten, SpectralFunction, shape_of
from penchant.solvers import exact
from penchant.solvers.accuracy import Given, of_matrix, of_norm, off_graph
from penchant.solvers.certificate import UNKNOWN, Certificate
from penchant.solvers.continuation import Failed
from penchant.solvers.data import units_of
from penchant.solvers.matrices import nuclear
from penchant.solvers.matrices.measurements import Measurements, measurements, missed
from penchant.solvers.matrices.path import LINEAR, corrected, descend, kernel_level
from penchant.solvers.matrices.state import law_of
from penchant.solvers.solution import SOLVED, Found, Solution, concluded, normalized, restored
from penchant.threads import one_blas_thread

RESOLVED = 1e-11  # slacks 1 - s below this are too coarse in float64


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
    certificate
        The relative error that is certified, as in a Solution; `error` is its number.
    dual_rest
        More parts of the dual, as in a Solution.

    Examples
    --------
    >>> import penchant
    >>> problem = penchant.problems.Completion((2, 2), [[0, 0], [0, 1], [1, 0]], [1.0, 2.0, 3.0])
    >>> solution = penchant.interpolate(problem, penchant.regularizers.Frobenius())
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
    certificate: Certificate = UNKNOWN
    dual_rest: tuple[Array, ...] = ()

    rows = Solution.rows
    error = Solution.error


def residual(problem: MatrixProblem, matrix: Array) -> float:
    scale = float(np.abs(problem.y).max())
    return float(np.abs(problem.apply(matrix) - problem.y).max() / (scale if scale > 0 else 1.0))


def kkt(reg: SpectralFunction, matrix: Array, S: Array) -> float:
    """How far a matrix and S = sum_n dual_n X_n are from optimality."""
    if isinstance(reg, Nuclear):
        value = reg(matrix)
        gap = abs(value - float((matrix * S).sum())) / value
        return max(gap, float(np.linalg.norm(S, 2)) - 1)
    return graph_distance(reg, matrix, S)


def graph_distance(reg: SpectralFunction, matrix: Array, S: Array) -> float:
    """How far (M, S) is from a pair with S = gradient(M), in units of |M| and |S|."""
    size, height = float(np.linalg.norm(matrix, 2)), float(np.linalg.norm(S, 2))
    return off_graph(reg.law, matrix, S, size, height) if height else 1.0


@door_as("interpolate")
def matrix_interpolant(
    problem: MatrixProblem,
    reg: SpectralFunction,
    *,
    throw: bool = True,
    max_seconds: float | None = None,
) -> MatrixSolution:
    """The matrix that fits <X_n, M> = y_n with the least value of the regularizer."""
    if not isinstance(reg, SpectralFunction):
        raise Invalid(
            f"a matrix needs a regularizer of singular values such as Nuclear(), got "
            f"{reg!r}; problem.regression() has its entries as a vector"
        )
    with one_blas_thread(), limited(max_seconds):
        try:
            solution = in_good_units(problem, reg)
        except OutOfTime as reason:
            solution = nothing(problem, Outcome(Kind.BUDGET_SPENT, str(reason)))
    if throw and not solution.outcome.ok:
        raise NumericalError("interpolate", solution.outcome)
    return solution


def in_good_units(problem: MatrixProblem, reg: SpectralFunction) -> MatrixSolution:
    """The certified solution, found in other units where the data are huge or tiny."""
    ones = isinstance(problem, Completion)
    rows = np.ones((len(problem.y), 1)) if ones else problem.design
    units = units_of(rows, problem.y, scales=True)
    if units is None:
        return solved(problem, reg)
    matrices = problem.design.reshape(-1, *problem.shape)
    scaled = Sensing(units.of_rows(matrices), units.of_targets(problem.y))
    inner = reg.in_units(units.log_size)
    solution: MatrixSolution = restored(solved(scaled, inner), units, reg, "matrix")
    return solution


@door_as("interpolate")
def interpolate_measured(
    X: ArrayLike,
    y: ArrayLike,
    reg: SpectralFunction,
    *,
    throw: bool = True,
    max_seconds: float | None = None,
) -> MatrixSolution:
    """The same for measurement matrices given as an array (samples, d1, d2)."""
    if len(shape := shape_of(X)) == 2:
        raise Invalid(
            f"X must have 3 dimensions (samples, d1, d2) for {reg}, got shape"
            f" {shape}; for measurement vectors use Q(...), L1() or L2()"
        )
    matrices = finite_array("X", X, ndim=3)
    y = finite_array("y", y, ndim=1)
    if len(matrices) != len(y):
        raise Invalid(f"X has {len(matrices)} matrices but y has {len(y)} entries; they must match")
    return matrix_interpolant(Sensing(matrices, y), reg, throw=throw, max_seconds=max_seconds)


def solved(problem: MatrixProblem, reg: SpectralFunction) -> MatrixSolution:
    """The certified solution in the units of the problem."""
    at = measurements(problem)
    if isinstance(at, Outcome):
        return nothing(problem, at)
    if not at.y.any():
        zero = Outcome(Kind.SOLVED, "y = 0: the zero matrix is the only minimiser")
        answer = Found(np.zeros(problem.shape), np.zeros(len(problem.y)), 0, zero)
        return certified(problem, at, reg, answer)
    try:
        matrix, nu, steps, outcome, unit, *_ = solve(at, reg)
    except Failed as reason:
        return nothing(problem, Outcome(Kind.STALLED, f"no minimiser of {reg}: {reason}"))
    # only the Frobenius norm's gradient grows with the matrix itself at a fixed y/scale
    height = 2 * at.scale if isinstance(reg, Frobenius) else 1.0
    dual, *rest = height * at.exact_dual(nu)
    return certified(
        problem, at, reg, Found(at.scale * matrix, dual, steps, outcome, unit, tuple(rest))
    )


def nothing(problem: MatrixProblem, outcome: Outcome) -> MatrixSolution:
    """A solution without numbers."""
    numbers = np.full(problem.shape, np.nan), np.full(len(problem.y), np.nan)
    return MatrixSolution(*numbers, math.nan, math.nan, math.nan, 0, outcome)


def solve(at: Measurements, reg: SpectralFunction) -> Found:
    """(matrix, dual, iterations, outcome) in the units of `at`."""
    if isinstance(reg, Frobenius):
        nu = at.least(at.y)
        return Found(at.adjoint(nu), nu, 1, SOLVED)
    if isinstance(reg, Nuclear):
        return Found(*nuclear.solve(at))
    if isinstance(reg, Schatten):
        return schatten(at, reg)
    raise ValueError(f"interpolate: a matrix needs Nuclear, Frobenius or Schatten, got {reg}")


def schatten(at: Measurements, reg: Schatten) -> Found:
    """The minimiser of Schatten-Q; where float64 does not resolve its slacks, its limit."""
    level = reg.q.level - float(np.log(at.scale))
    smallest = float(np.log(RESOLVED)) * reg.q.power
    if level >= smallest:
        near = min(level, kernel_level(at, law_of(reg.q)) + LINEAR)
        return Found(*at_level(at, reg, near), SOLVED, near - level)
    ends = [at_level(at, reg, smallest)]
    matrix, nu, steps, outcome = nuclear.solve(at)
    if outcome in (nuclear.UNIQUE, nuclear.ALONE):
        ends.append((matrix, nu, steps))
    best = min(ends, key=lambda e: graph_distance(reg, at.scale * e[0], at.adjoint(e[1])))
    text = f"slacks of {reg} are below {RESOLVED:g}, too small for float64; this is its limit there"
    return Found(*best, Outcome(Kind.SOLVED, text))


def at_level(at: Measurements, reg: Schatten, level: float) -> tuple[Array, Array, int]:
    """(matrix, dual, iterations) of Schatten-Q with log mu = level in the units of `at`."""
    (stop,) = deque(descend(at, law_of(reg.q), level, close=1e-10), maxlen=1)
    return corrected(stop.state, stop.hessian), stop.state.nu, stop.spent


def certified(
    problem: MatrixProblem, at: Measurements, reg: SpectralFunction, candidate: Found
) -> MatrixSolution:
    """The solution with its certificate, computed from what is returned and the original data."""
    inner, factor = normalized(reg, np.ones(1), candidate.log_unit)
    S = dual_matrix(problem, candidate)
    off = kkt(inner, factor * candidate.beta, S) if candidate.beta.any() else 0.0
    certificate = certificate_of(problem, at, inner, candidate, float(factor[0]), S, off)
    proof = residual(problem, candidate.beta), off
    return MatrixSolution(*concluded(reg, candidate, candidate.beta, proof, certificate))


def dual_matrix(problem: MatrixProblem, candidate: Found) -> Array:
    """sum_n dual_n X_n, each entry rounded once where the dual has several parts."""
    if not candidate.rest:
        return problem.adjoint(candidate.dual)
    parts = np.vstack([candidate.dual, *candidate.rest])
    return exact.product(parts, problem.design).reshape(problem.shape)


def certificate_of(
    problem: MatrixProblem,
    at: Measurements,
    reg: SpectralFunction,
    candidate: Found,
    factor: float,
    S: Array,
    off: float,
) -> Certificate:
    """The error of a matrix: of its value for a norm, else of the matrix itself.

    `off` is its distance from the graph of the gradient, which a norm has no use for.
    """
    near = at.mended(problem, candidate.beta)
    if isinstance(reg, Nuclear):
        parts = np.vstack([candidate.dual, *candidate.rest])
        reward = float(exact.product(parts, problem.y[:, None])[0])
        change = reg(near - candidate.beta)
        known = of_norm(reg(candidate.beta), change, reward, float(np.linalg.norm(S, 2)))
    else:
        known = of_matrix(
            reg.law, factor * candidate.beta, S, factor * (near - candidate.beta), off
        )
    return dataclasses.replace(known, error=known.error + unmet(problem, at, candidate.beta))


def unmet(problem: MatrixProblem, at: Measurements, matrix: Array) -> float:
    """By how much a matrix misses the worst measurement, each in its own units."""
    if not isinstance(problem, Sensing):
        return residual(problem, matrix)
    given = Given(problem.design, problem.y)
    return given.unmet(matrix.ravel(), missed(at, problem, matrix))
