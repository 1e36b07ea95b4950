"""argmin regularizer(beta) under X beta = y."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg.lapack import dgeqrf, dormqr, dtrtrs

from penchant.arguments import Array
from penchant.columns import named_as_given
from penchant.door import Invalid, door, door_as
from penchant.limits import OutOfTime, limited
from penchant.problems.matrix_problem import MatrixProblem
from penchant.problems.regression import Regression
from penchant.records import Kind, NumericalError, Outcome
from penchant.regularizers.lp import Lp
from penchant.regularizers.norms import L1, L2
from penchant.regularizers.q import SignedPair
from penchant.regularizers.regularizer import Regularizer
from penchant.regularizers.spectral import SpectralFunction, shape_of
from penchant.solvers import continuation, power_norm, sparse
from penchant.solvers.accuracy import Answer, Equations, Given
from penchant.solvers.certificate import TOLERANCE
from penchant.solvers.constraints import Constraints, reduce
from penchant.solvers.data import FARTHEST, NEAREST, after_problem, units_of, unpacked
from penchant.solvers.solution import (
    SOLVED,
    Found,
    Solution,
    as_sum,
    concluded,
    kkt_residual,
    must_fit,
    normalized,
    of_root,
    restored,
    unfinished,
    unreachable,
)
from penchant.solvers.sparse_rows import SparseRows, regression_rows
from penchant.threads import one_blas_thread

BLOCK = 64  # reflections that LAPACK applies together

if TYPE_CHECKING:
    from penchant.solvers.matrices.interpolate import MatrixSolution


@overload
def interpolate(
    X: ArrayLike,
    y: ArrayLike,
    regularizer: Regularizer,
    *,
    throw: bool = ...,
    max_seconds: float | None = ...,
) -> Solution: ...


@overload
def interpolate(
    X: ArrayLike,
    y: ArrayLike,
    regularizer: SpectralFunction,
    *,
    throw: bool = ...,
    max_seconds: float | None = ...,
) -> MatrixSolution: ...


@overload
def interpolate(
    problem: Regression,
    regularizer: Regularizer,
    /,
    *,
    throw: bool = ...,
    max_seconds: float | None = ...,
) -> Solution: ...


@overload
def interpolate(
    problem: MatrixProblem,
    regularizer: SpectralFunction,
    /,
    *,
    throw: bool = ...,
    max_seconds: float | None = ...,
) -> MatrixSolution: ...


@door
@named_as_given
def interpolate(
    X: Any,
    y: Any = None,
    regularizer: Any = None,
    *,
    throw: bool = True,
    max_seconds: float | None = None,
) -> Any:
    """The predictor that fits y = X beta with the least value of the regularizer.

    The system may have dependent rows or more rows than columns, as long as it has a solution.

    Parameters
    ----------
    X
        The samples, one row each, a sparse matrix of SciPy, which stays sparse, or a problem
        instead of X and y. With measurement matrices (samples, d1, d2) and a regularizer of
        singular values such as Nuclear() the predictor is a matrix.
    y
        One label per sample.
    regularizer
        The function to minimise, such as L1() or Q(alpha=0.1); for matrices, Nuclear(),
        Frobenius() or Schatten(q).
    throw
        False returns a numerical failure as the outcome instead of raising it.
    max_seconds
        The call ends after this time as a failure; None sets no limit.

    Returns
    -------
    Solution or MatrixSolution
        The minimiser `beta` (or `matrix`) with the numbers that prove it.

    Raises
    ------
    ValueError
        No predictor fits, or an argument is wrong.
    NumericalError
        The solver failed; see `throw`.

    Examples
    --------
    >>> import penchant
    >>> problem = penchant.problems.low_rank_completion(samples=14, dimension=5, rank=1, seed=1)
    >>> penchant.interpolate(problem, penchant.regularizers.Nuclear()).matrix.shape
    (5, 5)
    >>> X, y = [[1.0, 2.0]], [2.0]
    >>> penchant.interpolate(X, y, penchant.L1()).beta.round(4)
    array([0., 1.])
    >>> penchant.interpolate(penchant.Regression(X, y), penchant.L2()).beta.round(4)
    array([0.4, 0.8])
    """
    if isinstance(X, MatrixProblem):
        from penchant.solvers.matrices.interpolate import matrix_interpolant

        regularizer = after_problem(y, regularizer)
        return matrix_interpolant(X, regularizer, throw=throw, max_seconds=max_seconds)
    X, y, regularizer = unpacked(Regression, X, y, regularizer)
    if isinstance(regularizer, SpectralFunction):
        from penchant.solvers.matrices.interpolate import interpolate_measured

        return interpolate_measured(X, y, regularizer, throw=throw, max_seconds=max_seconds)
    if isinstance(regularizer, Regularizer) and len(shape := shape_of(X)) == 3:
        raise Invalid(
            f"X must have 2 dimensions for {regularizer}, got shape {shape};"
            " for measurement matrices use Nuclear(), Frobenius() or Schatten(Q(...))"
        )
    X, y = regression_rows(X, y)
    must_fit(regularizer, X.shape[1])
    if isinstance(regularizer, Lp) and regularizer.p <= 1:
        if regularizer.p < 1:
            raise Invalid(
                f"{regularizer} is not convex, so its minimiser cannot be "
                "computed; use L1() or p > 1"
            )
        regularizer = L1()
    with one_blas_thread(), limited(max_seconds):
        try:
            solution = in_good_units(X, y, as_sum(regularizer))
        except OutOfTime as reason:
            solution = unfinished(X, reason)
    if throw and not solution.outcome.ok:
        raise NumericalError("interpolate", solution.outcome)
    return solution if as_sum(regularizer) is regularizer else of_root(solution)


@door_as("interpolate")
def in_good_units(X: Array, y: Array, regularizer: Regularizer) -> Solution:
    """The certified solution, found in other units where the data are huge or tiny."""
    units = units_of(X, y, scales=regularizer.degree is not None)
    if units is None:
        at = reduce(X, y)
        return certified(Given(X, y), regularizer, solve(regularizer, at), at)
    given, inner = y, regularizer.in_units(units.log_size)
    X, y = units.of_rows(X), units.of_targets(y)
    if regularizer.degree is None and not fits_units(given, y):
        return Solution(*unreachable(regularizer, X.shape[1], len(X)))
    at = reduce(X, y)
    shown = Given(X, y, units.rows + units.predictor)
    solution = certified(shown, inner, solve(inner, at), at)
    return restored(solution, units, regularizer)


def fits_units(given: Array, y: Array) -> bool:
    """Whether targets in units of the rows, of which all may vanish, are within reach."""
    largest = float(np.abs(y).max())
    return 2.0**-NEAREST < largest < 2.0**FARTHEST or not given.any()


def solve(regularizer: Regularizer, at: Constraints) -> Found:
    """The minimiser and its dual in the original units."""
    if isinstance(regularizer, SignedPair):
        (end,) = continuation.follow(regularizer, at, [regularizer.level - np.log(at.scale)])
        return arrived(regularizer, at, end)
    if isinstance(regularizer, L1):
        beta, nu, steps, outcome = sparse.solve(at.X, at.y)
        return in_data(at, at.scale * beta, nu, steps, outcome)
    if isinstance(regularizer, L2):
        beta, nu = least_norm(regularizer.spread_weights, at)
        return in_data(at, at.scale * beta, 2 * at.scale * nu, 1, SOLVED)
    if isinstance(regularizer, Lp):
        beta, nu, steps, outcome = power_norm.solve(regularizer, at.X, at.y)
        beta, unit = at.scale * beta, 0.0
        if beta.any():  # nu is the dual of the norm, which has no unit
            unit = (regularizer.p - 1) * power_norm.log_norm(regularizer.p, beta)
        return in_data(at, beta, nu, steps, outcome, unit)
    from penchant.solvers import homotopy

    beta, nu, steps, outcome = homotopy.solve(regularizer, at.X, at.scale * at.y)
    return in_data(at, beta, nu, steps, outcome)


def in_data(
    at: Constraints, beta: Array, nu: Array, steps: int, outcome: Outcome, log_unit: float = 0.0
) -> Found:
    """What was found, with the dual of the rows that were given."""
    dual, *rest = at.exact_dual(nu)
    return Found(beta, dual, steps, outcome, log_unit, tuple(rest))


def arrived(pair: SignedPair, at: Constraints, end: continuation.Point | Outcome) -> Found:
    """The end of a continuation in the original units, or what can be said without it."""
    if isinstance(end, continuation.Point):
        beta = at.scale * end.beta
        candidate = in_data(at, beta, end.nu, end.factorizations, SOLVED, end.log_unit)
        return candidate._replace(mend=lambda missing: end.mend(at.combine(missing)))
    plain = pair.shape is None and pair.tilt is None and end.kind is not Kind.BUDGET_SPENT
    if plain and pair.level - np.log(at.scale) < -30 * pair.power:
        # slacks are below e^-30: a unique l1 vertex is the minimiser, and its certificate says so
        beta, nu, steps, outcome = sparse.solve(at.X, at.y)
        if outcome.kind is Kind.SOLVED:
            return in_data(at, at.scale * beta, nu, steps, SOLVED)
    return Found(np.full(at.X.shape[1], np.nan), np.full(len(at.back), np.nan), 0, end)


def least_norm(weights: Array, at: Constraints) -> tuple[Array, Array]:
    """(beta, nu) of the least sum weights_i beta_i^2, weights_i beta_i = (X^T nu)_i, by QR."""
    if isinstance(at.X, SparseRows):
        hessian = continuation.Hessian(at.X, np.broadcast_to(1 / weights, at.X.shape[1]), 1e-15)
        nu = hessian.solve(at.y)
        for _ in range(3):
            nu = hessian.refine(nu, at.y)
        return hessian.slope * (nu @ at.X), nu
    root = np.broadcast_to(np.sqrt(1 / weights), at.X.shape[1])
    rank = len(at.y)
    if not rank:
        return np.zeros(len(root)), at.y
    # LAPACK itself, since most problems are tiny
    factor, tau, _, _ = dgeqrf((at.X * root).T, lwork=BLOCK * rank)
    inner = dtrtrs(factor[:rank], at.y, trans=1)[0]
    place = np.zeros((len(root), 1), order="F")
    place[:rank, 0] = inner
    lifted = dormqr("L", "N", factor, tau, place, BLOCK * (BLOCK + 1), overwrite_c=True)[0]
    return root * lifted[:, 0], dtrtrs(factor[:rank], inner)[0]


def certified(
    given: Given, regularizer: Regularizer, candidate: Found, at: Constraints, valued: bool = True
) -> Solution:
    """The solution with its certificate, computed from what is returned and the original data."""
    return concluded_from(
        given, regularizer, candidate, posed(given, regularizer, candidate, at), valued
    )


def posed(
    given: Given, regularizer: Regularizer, candidate: Found, at: Constraints
) -> Answer | None:
    """What was found as an answer to equations; None where there is nothing to certify."""
    if not np.isfinite(candidate.beta).all() or candidate.outcome.kind is Kind.INFEASIBLE:
        return None
    inner, factor = normalized(regularizer, np.ones(1), candidate.log_unit)
    equations = Equations(inner, given, at, float(factor[0]), candidate.mend)
    return equations.answer(candidate.beta, np.vstack([candidate.dual, *candidate.rest]))


def concluded_from(
    given: Given, regularizer: Regularizer, candidate: Found, answer: Answer | None, valued: bool
) -> Solution:
    """The solution that an answer is after it was improved and certified."""
    if answer is None:
        nothing = math.nan, math.nan, math.nan
        return Solution(
            candidate.beta, candidate.dual, *nothing, candidate.iterations, candidate.outcome
        )
    inner = answer.equations.regularizer
    answer, certificate = answer.equations.improved(answer)
    residual = float(np.abs(given.as_given(answer.missing)).max()) / given.most
    kkt = 0.0
    if answer.beta.any():
        graph = None if isinstance(inner, L1) else answer.graph
        kkt = kkt_residual(inner, answer.scaled, answer.slopes, graph)
    if certificate.part == "value" and not isinstance(inner, L1) and kkt > TOLERANCE:
        # the value is known, but a coordinate that it does not feel is not
        certificate = dataclasses.replace(certificate, error=max(certificate.error, kkt))
    candidate = candidate._replace(dual=answer.parts[0], rest=tuple(answer.parts[1:]))
    proof = residual, kkt
    return Solution(*concluded(regularizer, candidate, answer.beta, proof, certificate, valued))
