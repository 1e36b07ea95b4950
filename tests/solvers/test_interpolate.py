"""interpolate and interpolate_path against general solvers, limits and optimality itself."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penchant
from general_solvers import least_l1
from penchant import L1, L2, Q, interpolate
from penchant.lab import Kind
from penchant.regularizers import Lp, R
from penchant.solvers import interpolate_path

settings.register_profile("penchant", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("penchant")


def problem(seed, samples=8, dimension=30, noise=0.1, sparsity=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(samples, dimension))
    truth = np.zeros(dimension)
    truth[:sparsity] = 1 / np.sqrt(sparsity)
    return X, X @ truth + noise * rng.normal(size=samples), truth


REGULARIZERS = {
    "Q2": lambda d: Q(2, alpha=0.05),
    "Q2 shape": lambda d: Q(2, alpha=0.05, shape=np.linspace(0.5, 2, d) * (-1.0) ** np.arange(d)),
    "Q3": lambda d: Q(3, alpha=0.1),
    "Q5 shape": lambda d: Q(5, alpha=0.4, shape=np.linspace(0.8, 1.4, d)),
    "Q10": lambda d: Q(10, mu=1e-6),
    "R": lambda d: R(alpha=0.1),
    "R shape": lambda d: R(alpha=0.1, shape=np.linspace(0.5, 2, d)),
    "L1": lambda d: L1(),
    "L2": lambda d: L2(),
    "L2 weights": lambda d: L2(np.linspace(0.1, 3, d)),
    "Lp 1.3": lambda d: Lp(1.3),
    "Lp 4": lambda d: Lp(4.0),
}
any_regularizer = pytest.mark.parametrize("make", REGULARIZERS.values(), ids=REGULARIZERS.keys())


@any_regularizer
@given(seed=st.integers(0, 10**6), samples=st.integers(1, 8), extra=st.integers(1, 12))
@settings(max_examples=15)
def test_no_other_fit_is_better(make, seed, samples, extra):
    """Optimality as such: every move within the null space of X raises the value."""
    X, y, _ = problem(seed, samples, samples + extra)
    regularizer = make(X.shape[1])
    solution = interpolate(X, y, regularizer)
    assert solution.residual < 1e-10
    assert solution.kkt < 1e-8
    null = np.linalg.svd(X)[2][samples:]
    rng = np.random.default_rng(seed)
    for size in (1e-3, 1e-1, 10.0):
        move = size * np.abs(solution.beta).max() * rng.normal(size=len(null)) @ null
        assert regularizer(solution.beta + move) >= solution.value * (1 - 1e-12)
    # and the control: a fit that is not the minimiser can be improved
    worse = solution.beta + move
    assert regularizer(0.5 * (worse + solution.beta)) < regularizer(worse)


@pytest.mark.parametrize("seed", range(12))
def test_l1_agrees_with_highs(seed):
    X, y, _ = problem(seed, samples=5 + 3 * seed, dimension=40 + 10 * seed, noise=0.1 * (seed % 3))
    solution = interpolate(X, y, L1())
    reference = least_l1(X, y)
    assert solution.value == pytest.approx(np.abs(reference).sum(), rel=1e-9)
    np.testing.assert_allclose(solution.beta, reference, atol=1e-8)
    assert np.abs(solution.dual @ X).max() <= 1 + 1e-9


@pytest.mark.parametrize("seed", range(8))  # two of them need pivots, others on other machines
def test_tiny_noise_spreads_the_sizes_over_decades(seed):
    X, y, _ = problem(seed, samples=20, dimension=60, noise=1e-7)
    solution = interpolate(X, y, L1())
    assert solution.residual < 1e-12
    assert np.count_nonzero(solution.beta) == 20  # HiGHS drops those below its tolerance
    assert np.abs(solution.dual @ X).max() <= 1 + 1e-9
    assert solution.value == pytest.approx(y @ solution.dual, rel=1e-12)  # no duality gap
    deep = interpolate(X, y, Q(10, log_alpha=-8.0))
    assert deep.residual < 1e-10
    assert deep.kkt < 1e-10


def test_a_face_of_l1_minimisers_is_recognised_and_its_entropic_point_returned():
    X = np.array([[1.0, 1.0, 1.0, 0.2]])
    solution = interpolate(X, [3.0], L1())
    assert solution.outcome.kind is Kind.NOT_UNIQUE
    assert "dimension 2" in solution.outcome.sentence
    np.testing.assert_allclose(solution.beta, [1, 1, 1, 0], atol=1e-9)
    # the limit that depth 2 really tends to, by another solver
    rich = interpolate(X, [3.0], Q(2, log_alpha=-2000.0))
    np.testing.assert_allclose(rich.beta, solution.beta, atol=1e-9)
    unequal = interpolate(np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]]), [1.0, 1.0], L1())
    assert unequal.outcome.kind is Kind.SOLVED


@pytest.mark.parametrize("depth", [2, 3, 10])
def test_the_two_limits(depth):
    X, y, _ = problem(5)
    large = interpolate(X, y, Q(depth, log_alpha=690.0))
    np.testing.assert_allclose(large.beta, np.linalg.pinv(X) @ y, atol=1e-12)
    small = interpolate(X, y, Q(depth, log_alpha=-4605.0))
    assert np.abs(small.beta - least_l1(X, y)).max() < 2e-3
    # the middle is neither
    middle = interpolate(X, y, Q(depth, mu=0.1)).beta
    assert np.abs(middle - large.beta).max() > 1e-2
    assert np.abs(middle - small.beta).max() > 1e-2


def test_the_acceptance_line_of_the_first_issue():
    rng = np.random.default_rng(1)
    X, b = rng.normal(size=(40, 200)), np.zeros(200)
    b[:4] = 1
    s = penchant.interpolate(X, X @ b, penchant.Q(depth=2, log_alpha=-2000.0))
    assert max(s.residual, s.kkt, np.abs(s.beta - b).max()) < 1e-6


def test_a_path_with_measure_keeps_only_the_measure():
    X, y, truth = problem(7)
    log_alphas = [1.0, -3.0, -8.0]
    errors = interpolate_path(
        X, y, log_alphas=log_alphas, measure=lambda s: float(np.sum((s.beta - truth) ** 2))
    )
    path = interpolate_path(X, y, log_alphas=log_alphas)
    assert errors == pytest.approx(np.sum((path.beta - truth) ** 2, axis=1))


@given(seed=st.integers(0, 10**6), scale=st.floats(-100, 100), rows=st.floats(-100, 100))
@settings(max_examples=25)
def test_units_do_not_matter(seed, scale, rows):
    """beta scales with y when mu does, and not at all when rows of (X, y) are scaled."""
    X, y, _ = problem(seed, samples=5, dimension=14)
    plain = interpolate(X, y, Q(2, log_alpha=-3.0)).beta
    scaled = interpolate(X, y * 10**scale, Q(2, log_alpha=-3.0 + scale * np.log(10) / 2)).beta
    np.testing.assert_allclose(scaled / 10**scale, plain, rtol=1e-7, atol=1e-10)
    factors = 10.0 ** np.linspace(-rows, rows, 5)
    reweighted = interpolate(factors[:, None] * X, factors * y, Q(2, log_alpha=-3.0)).beta
    np.testing.assert_allclose(reweighted, plain, rtol=1e-7, atol=1e-10)


def test_wide_shapes_at_depth_10():
    """Weights over 36 decades: only a basis of the heavy coordinates keeps the digits."""
    X, y, _ = problem(11, samples=8, dimension=30)
    shape = 10 ** np.random.default_rng(1).uniform(-1, 1, 30)
    for log_alpha in (30.0, 0.5, -8.0):
        solution = interpolate(X, y, Q(10, log_alpha=log_alpha, shape=shape))
        assert solution.residual < 1e-9
        assert solution.kkt < 1e-9
