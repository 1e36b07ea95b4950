"""Matrices of least norm against semidefinite programs, general minimisers, vectors and limits."""

import cvxpy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from penchant import L1, L2, NumericalError, Q, interpolate
from penchant.lab import Kind
from penchant.problems import (
    Completion,
    Sensing,
    commuting_sensing,
    gaussian_sensing,
    low_rank_completion,
)
from penchant.regularizers import Frobenius, Nuclear, Schatten
from penchant.solvers.matrices.interpolate import graph_distance, kkt, matrix_interpolant

settings.register_profile("penchant", deadline=None, derandomize=True, max_examples=20)
settings.load_profile("penchant")

REGULARIZERS = {
    "nuclear": Nuclear(),
    "frobenius": Frobenius(),
    "depth 2": Schatten(Q(2, alpha=0.3)),
    "depth 2 rich": Schatten(Q(2, log_alpha=-12)),
    "depth 2 extreme": Schatten(Q(2, log_alpha=-50)),
    "depth 3": Schatten(Q(3, alpha=0.2)),
    "depth 10": Schatten(Q(10, mu=1e-7)),
}
any_regularizer = pytest.mark.parametrize("reg", REGULARIZERS.values(), ids=REGULARIZERS.keys())


def sensed(shape, rank, samples, seed):
    """Gaussian measurements of a matrix of this rank."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(shape[0], rank)) @ rng.normal(size=(rank, shape[1]))
    X = rng.normal(size=(samples, *shape))
    return Sensing(X, np.tensordot(X, truth, 2))


def seen(shape, rank, samples, seed):
    """Random entries of a matrix of this rank."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(shape[0], rank)) @ rng.normal(size=(rank, shape[1]))
    positions = rng.permutation(truth.size)[:samples]
    entries = np.stack(np.unravel_index(positions, shape), axis=1)
    return Completion(shape, entries, truth.ravel()[positions])


def least_nuclear_norm(problem):
    """The same by a semidefinite program in Clarabel."""
    M = cvxpy.Variable(problem.shape)
    fit = problem.design @ cvxpy.vec(M, order="C") == problem.y
    program = cvxpy.Problem(cvxpy.Minimize(cvxpy.normNuc(M)), [fit])
    program.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return M.value


MAKERS = {"sensed": sensed, "seen": seen}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
@pytest.mark.parametrize(
    ("shape", "rank", "samples", "seed"),
    [((5, 5), 1, 14, 0), ((3, 6), 2, 9, 1), ((8, 4), 3, 20, 2), ((6, 6), 2, 8, 3)],
)
def test_the_nuclear_norm_against_a_semidefinite_program(make, shape, rank, samples, seed):
    problem = make(shape, rank, samples, seed)
    solution, other = matrix_interpolant(problem, Nuclear()), least_nuclear_norm(problem)
    assert solution.value == pytest.approx(Nuclear()(other), rel=1e-7)
    assert solution.value <= Nuclear()(other) * (1 + 1e-8)  # ours is the more accurate one
    if "only minimiser" in solution.outcome.sentence:
        assert solution.matrix == pytest.approx(other, abs=2e-4)
    # the control: the Frobenius fit is no nuclear one
    control = matrix_interpolant(problem, Frobenius()).matrix
    assert Nuclear()(control) > solution.value * (1 + 1e-5)


def minimise_over_fits(problem, reg):
    """argmin reg over all fits, by BFGS in the null space of the measurements."""
    design = problem.design
    start = np.linalg.pinv(design) @ problem.y
    null = np.linalg.svd(design)[2][len(design) :].T

    def value_and_slope(z):
        M = (start + null @ z).reshape(problem.shape)
        return reg(M), null.T @ reg.gradient(M).ravel()

    found = minimize(
        value_and_slope, np.zeros(null.shape[1]), jac=True, method="BFGS",
        options={"gtol": 1e-10, "maxiter": 3000},
    )  # fmt: skip
    return (start + null @ found.x).reshape(problem.shape), found.fun


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 2)])
@pytest.mark.parametrize("q", [Q(2, alpha=0.4), Q(3, alpha=0.6), Q(6, mu=0.05)], ids=str)
def test_schatten_against_a_general_minimiser(make, shape, q):
    problem, reg = make(shape, 2, 6, 5), Schatten(q)
    solution, (other, value) = matrix_interpolant(problem, reg), minimise_over_fits(problem, reg)
    assert solution.value == pytest.approx(value, rel=1e-9)
    assert solution.matrix == pytest.approx(other, abs=1e-5 * np.abs(other).max())
    control = matrix_interpolant(problem, Schatten(Q(q.depth, log_alpha=q.log_alpha - 1))).matrix
    assert np.abs(control - other).max() > 1e-3 * np.abs(other).max()


@pytest.mark.parametrize("rotated", [False, True])
@pytest.mark.parametrize(
    "q", [Q(2, alpha=2.0), Q(2, alpha=0.05), Q(2, log_alpha=-50), Q(3, alpha=0.05), Q(8, mu=1e-5)],
    ids=str,
)  # fmt: skip
def test_commuting_measurements_reduce_to_vectors(q, rotated):
    """W Theorem 4: with X_n = B diag(x_n) B^T the minimiser is B diag(beta) B^T."""
    problem = commuting_sensing(samples=4, dimension=7, seed=3, rotated=rotated)
    basis = np.linalg.eigh(problem.measurements[0])[1] if rotated else np.eye(7)
    rows = np.stack([np.diagonal(basis.T @ X @ basis) for X in problem.measurements])
    beta = interpolate(rows, problem.y, q).beta
    matrix = matrix_interpolant(problem, Schatten(q)).matrix
    assert np.abs(matrix - (basis * beta) @ basis.T).max() < 1e-10
    other = interpolate(rows, problem.y, Q(q.depth, alpha=5.0)).beta
    assert np.abs(matrix - (basis * other) @ basis.T).max() > 1e-5


def test_the_limits_agree_with_vectors_too():
    problem = commuting_sensing(samples=4, dimension=7, seed=3, rotated=False)
    rows = np.diagonal(problem.measurements, axis1=1, axis2=2)
    for reg, vector in ((Nuclear(), L1()), (Frobenius(), L2())):
        beta = interpolate(rows, problem.y, vector).beta
        assert matrix_interpolant(problem, reg).matrix == pytest.approx(np.diag(beta), abs=1e-8)


shapes = st.tuples(st.integers(1, 6), st.integers(1, 6))


@any_regularizer
@given(
    seed=st.integers(0, 10**6), shape=shapes, rank=st.integers(1, 6), share=st.floats(0, 1),
    kind=st.sampled_from(sorted(MAKERS)),
)  # fmt: skip
@settings(max_examples=12)
def test_no_other_fit_is_better(reg, seed, shape, rank, share, kind):
    """Any shape, rank and number of samples: certified, and optimal as such."""
    samples = 1 + round(share * (shape[0] * shape[1] - 1))
    problem = MAKERS[kind](shape, min(rank, *shape), samples, seed)
    solution = matrix_interpolant(problem, reg)
    assert solution.residual < 1e-12
    assert solution.kkt < 1e-8
    null = np.linalg.svd(problem.design)[2][samples:]
    rng = np.random.default_rng(seed)
    for size in (1e-2, 1.0) if len(null) else ():
        move = size * np.abs(solution.matrix).max() * rng.normal(size=len(null)) @ null
        other = solution.matrix + move.reshape(shape)
        assert reg(other) >= solution.value * (1 - 2e-10)
        # the control: a fit that is not the minimiser can be improved
        assert reg(0.5 * (other + solution.matrix)) < reg(other)


@given(seed=st.integers(0, 10**6), decades=st.floats(0, 9))
@settings(max_examples=8)
def test_values_over_many_decades(seed, decades):
    problem = seen((5, 6), 2, 14, seed)
    sizes = 10.0 ** -np.random.default_rng(seed).uniform(0, decades, 14)
    uneven = Completion(problem.shape, problem.entries, problem.y * sizes)
    for reg in (Nuclear(), Schatten(Q(2, log_alpha=-20))):
        solution = matrix_interpolant(uneven, reg)
        assert max(solution.kkt, solution.residual) < 1e-8


def test_the_certificate_notices_errors():
    problem = gaussian_sensing(samples=9, dimension=5, rank=2, seed=1)
    wrong = 1e-3 * np.random.default_rng(0).normal(size=(5, 5))
    for reg in REGULARIZERS.values():
        solution = matrix_interpolant(problem, reg)
        S = problem.adjoint(solution.dual)
        assert kkt(reg, solution.matrix, S) < 1e-8
        assert kkt(reg, solution.matrix + wrong, S) > 1e-5
        assert kkt(reg, solution.matrix, 1.001 * S) > 1e-5


def test_the_certificate_s_distance_is_the_nearest_pair():
    """On numbers the graph can be searched: the pair with the same sum is at most that far."""
    reg, size = Schatten(Q(2, alpha=0.5)), np.linspace(0, 4, 400001)
    M, S = 2.0, float(reg.gradient([[2.0]])[0, 0]) + 0.3
    slope = reg.law.gradient(size)
    farthest = np.maximum(np.abs(size - M) / M, np.abs(slope - S) / S)
    found = graph_distance(reg, np.array([[M]]), np.array([[S]]))
    assert found == pytest.approx(farthest.min(), rel=1e-4)


def test_exact_recovery_of_rank_one():
    """W Figure 5's problem: 60 entries of a 10 x 10 matrix of rank one."""
    problem = low_rank_completion(samples=60, dimension=10, rank=1, seed=0)
    solution = matrix_interpolant(problem, Nuclear())
    assert solution.residual < 1e-14
    assert np.abs(solution.matrix - problem.truth).max() < 1e-12
    assert solution.outcome.sentence == "the only minimiser, of low rank, certified by its dual"
    S = problem.adjoint(solution.dual)
    assert np.linalg.norm(S, 2) <= 1 + 1e-14
    assert abs(problem.y @ solution.dual / solution.value - 1) < 1e-13
    # the control: the kernel limit leaves what was not observed at zero
    control = matrix_interpolant(problem, Frobenius()).matrix
    assert np.abs(control - problem.truth).max() > 1
    assert not control[~problem.observed].any()


def distances(problem, limit, qs):
    found = [matrix_interpolant(problem, Schatten(q)).matrix for q in qs]
    return np.log([np.linalg.norm(M - limit) for M in found])


def test_a_system_on_which_divide_and_conquer_gives_up():
    # LAPACK's gelsd finds no singular values of the first Gauss-Newton system of these entries
    rng = np.random.default_rng((35174042, 16, 1))
    truth = np.outer(rng.standard_normal(16), rng.standard_normal(16))
    where = np.stack(np.unravel_index(rng.permutation(256)[:147], (16, 16)), axis=1)
    problem = Completion((16, 16), where, truth[where[:, 0], where[:, 1]], truth)
    solution = interpolate(problem, Nuclear())
    assert solution.outcome.kind is Kind.SOLVED
    np.testing.assert_allclose(solution.matrix[*where.T], problem.y, atol=1e-9)
    assert np.linalg.norm(solution.matrix, "nuc") < np.linalg.norm(truth, "nuc")


def test_large_scales_tend_to_frobenius():
    """b(s) = 2 mu s (1 + O(s^2)) with s in proportion to 1/mu: the distance falls as mu^-2."""
    problem = gaussian_sensing(samples=9, dimension=5, rank=2, seed=1)
    limit = matrix_interpolant(problem, Frobenius()).matrix
    for depth in (2, 3):
        logs = distances(problem, limit, [Q(depth, mu=mu) for mu in (1e2, 1e3)])
        assert np.diff(logs)[0] / np.log(10) == pytest.approx(-2, abs=0.01)


def test_small_scales_tend_to_the_nuclear_norm():
    """Depth 3 adds slacks in proportion to alpha; depth 2 is off by one over log(1/alpha)."""
    problem = gaussian_sensing(samples=9, dimension=5, rank=2, seed=1)
    solution = matrix_interpolant(problem, Nuclear())
    assert "only minimiser" in solution.outcome.sentence
    logs = distances(problem, solution.matrix, [Q(3, alpha=a) for a in (1e-4, 1e-5)])
    assert -np.diff(logs)[0] / np.log(10) == pytest.approx(1, abs=0.01)
    logs = distances(problem, solution.matrix, [Q(2, log_alpha=a) for a in (-500.0, -5000.0)])
    assert -np.diff(logs)[0] / np.log(10) == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("depth", [3, 8])
def test_scales_below_float64_are_the_limit_and_say_so(depth):
    tiny = Schatten(Q(depth, log_alpha=-60))
    recovered = low_rank_completion(samples=60, dimension=10, rank=1, seed=0)
    solution = matrix_interpolant(recovered, tiny)
    assert solution.matrix == pytest.approx(recovered.truth, abs=1e-9)
    assert "slacks" in solution.outcome.sentence
    assert solution.kkt < 1e-9
    # where the nuclear norm has a face of minimisers, Q is still strictly convex
    face = Sensing(np.eye(3)[None], np.array([1.0]))
    for reg in (tiny, Schatten(Q(2, log_alpha=-200))):
        assert matrix_interpolant(face, reg).matrix == pytest.approx(np.eye(3) / 3, abs=1e-9)


def test_a_face_of_minimisers_is_named():
    """Every trace-one positive matrix has trace one: dimension 3 * 4 / 2 - 1."""
    solution = matrix_interpolant(Sensing(np.eye(3)[None], np.array([1.0])), Nuclear())
    assert solution.outcome.kind is Kind.NOT_UNIQUE
    assert "dimension 5" in solution.outcome.sentence
    assert solution.value == pytest.approx(1, abs=1e-10)


@any_regularizer
def test_entries_and_their_measurement_matrices_agree(reg):
    problem = seen((4, 5), 2, 11, 4)
    arrays = problem.design.reshape(-1, 4, 5)
    one, two = matrix_interpolant(problem, reg), interpolate(arrays, problem.y, reg)
    assert one.value == pytest.approx(two.value, rel=1e-9)
    assert one.matrix == pytest.approx(two.matrix, abs=1e-6)


@any_regularizer
def test_repeated_dependent_and_empty_measurements(reg):
    problem = sensed((4, 3), 2, 6, 7)
    X, y = problem.measurements, problem.y
    more = np.concatenate([X, X[:2], 3 * X[:1] - X[1:2], 0 * X[:1]])
    values = np.concatenate([y, y[:2], 3 * y[:1] - y[1:2], [0.0]])
    expected, found = matrix_interpolant(problem, reg), interpolate(more, values, reg)
    assert found.matrix == pytest.approx(expected.matrix, abs=1e-7)
    assert max(found.kkt, found.residual) < 1e-9
    assert found.dual.shape == values.shape
    twice = Completion((2, 2), [[0, 0], [0, 0], [1, 1]], [1.0, 1.0, 2.0])
    once = Completion((2, 2), [[0, 0], [1, 1]], [1.0, 2.0])
    both = [matrix_interpolant(p, reg) for p in (twice, once)]
    assert both[0].matrix == pytest.approx(both[1].matrix, abs=1e-14)
    assert both[0].kkt < 1e-9


@any_regularizer
def test_zero_and_complete_observations(reg):
    problem = sensed((3, 4), 2, 5, 8)
    zero = interpolate(problem.measurements, 0 * problem.y, reg)
    assert not zero.matrix.any()
    assert zero.value == 0
    full = seen((3, 4), 2, 12, 8)
    complete = matrix_interpolant(full, reg)
    assert full.apply(complete.matrix) == pytest.approx(full.y, abs=1e-14)
    assert complete.kkt < 1e-9


@any_regularizer
@pytest.mark.parametrize("factor", [1e-100, 1e100])
def test_units_of_y_and_of_the_measurements(reg, factor):
    problem = sensed((3, 4), 2, 5, 9)
    plain = matrix_interpolant(problem, reg)
    rescaled = interpolate(factor * problem.measurements, factor * problem.y, reg)
    assert rescaled.matrix == pytest.approx(plain.matrix, abs=1e-9)
    larger = interpolate(problem.measurements, factor * problem.y, reg)
    assert max(larger.kkt, larger.residual) < 1e-8


@any_regularizer
def test_contradictions_are_infeasible(reg):
    problem = sensed((3, 4), 2, 5, 9)
    X, y = np.concatenate([problem.measurements] * 2), np.concatenate([problem.y, problem.y + 0.1])
    solution = interpolate(X, y, reg, throw=False)
    assert solution.outcome.kind is Kind.INFEASIBLE
    assert np.isnan(solution.matrix).all()
    with pytest.raises(NumericalError, match="no matrix fits"):
        interpolate(X, y, reg)


def test_what_is_refused():
    X, y = np.ones((2, 3, 3)), np.ones(2)
    with pytest.raises(ValueError, match=r"interpolate: X must have 3 dimensions.*Nuclear"):
        interpolate(np.ones((2, 9)), y, Nuclear())
    with pytest.raises(ValueError, match=r"interpolate: X must have 2 dimensions.*Nuclear"):
        interpolate(X, y, L1())
    with pytest.raises(ValueError, match="2 matrices but y has 3"):
        interpolate(X, np.ones(3), Nuclear())
    with pytest.raises(ValueError, match=r"interpolate: a matrix needs .* singular values.*L1"):
        matrix_interpolant(Sensing(X, y), L1())
    with pytest.raises(ValueError, match="finite"):
        interpolate(X * np.inf, y, Nuclear())
