"""Ties, huge and tiny numbers, columns over many decades: solved, or one clear sentence."""

import mpmath as mp
import numpy as np
import pytest

import judge
import oracle
from odd_problems import Problem
from penchant import L1, L2, NumericalError, Q, derive, interpolate, max_margin
from penchant.lab import Kind
from penchant.regularizers import Frobenius, Lp, Nuclear, R, Schatten
from penchant.solvers import interpolate_path

TIED = np.array([[1.0, 0, 1, 1], [1, 1, 1, 0]])
CUBE = np.array([[0.0, 0, 0, 1, 1, 1], [0, 1, 1, 1, 1, 0]])


def assert_right(verb: str, X, y, regularizer, solution) -> None:
    """The optimality conditions hold in extended precision."""
    given = Problem(0, verb, np.asarray(X), np.asarray(y, float), regularizer, "", True)
    assert solution.outcome.ok
    assert judge.wrong(given, solution) == ""


@pytest.mark.parametrize("log_alpha", [-30.0, -60.0, -200.0])
@pytest.mark.parametrize("depth", [3, 4, 8])
def test_tied_columns_are_interpolated(depth, log_alpha):
    q, y = Q(depth, log_alpha=log_alpha), [2.0, 2.0]
    solution = interpolate(TIED, y, q)
    assert_right("interpolate", TIED, y, q, solution)
    # equal columns share their sum, which the two rows fix
    assert solution.beta == pytest.approx([1, 0, 1, 0], abs=1e-12)


def test_a_tied_design_agrees_with_mpmath():
    reference = oracle.solve(TIED, [2.0, 2.0], 4, -30.0)
    solution = interpolate(TIED, [2.0, 2.0], Q(4, log_alpha=-30.0))
    assert np.abs(solution.beta - reference.beta).max() < 1e-12


@pytest.mark.parametrize("log_alpha", [-5.0, -20.0, -100.0])
def test_a_design_of_zeros_and_ones_at_depth_30(log_alpha):
    q, y = Q(30, log_alpha=log_alpha), [1.0, 1.0]
    assert_right("interpolate", CUBE, y, q, interpolate(CUBE, y, q))


@pytest.mark.parametrize("depth", [3, 5, 8])
@pytest.mark.parametrize("rows", [CUBE, TIED], ids=["cube", "tied"])
def test_margins_of_tied_rows(rows, depth):
    q, y = Q(depth, log_alpha=-30.0), [1.0, 1.0]
    assert_right("max_margin", rows, y, q, max_margin(rows, y, q))


EVERY = [L1(), L2(), Lp(1.5), Lp(4.0), Q(2, alpha=0.1), Q(5, alpha=0.1), R(alpha=0.1)]
SCALES = [(1e-310, 1e-305), (1e300, 1.0), (1.0, 1e150), (1.0, 1e-200), (1e-150, 1e100)]


@pytest.mark.parametrize("regularizer", EVERY, ids=str)
@pytest.mark.parametrize(("rows", "targets"), SCALES)
def test_data_of_any_size_are_solved(regularizer, rows, targets):
    X, y = rows * np.array([[1.0, 2.0, 3.0], [0.0, 1.0, -1.0]]), targets * np.array([1.0, 2.0])
    assert_right("interpolate", X, y, regularizer, interpolate(X, y, regularizer))


@pytest.mark.parametrize("regularizer", [*EVERY, Q(3, alpha=0.1, shape=[1.0, 2.0])], ids=str)
@pytest.mark.parametrize(("rows", "targets"), [(1e-310, 1.0), (1e-10, 1e300)])
def test_a_predictor_beyond_float64_is_reported(regularizer, rows, targets):
    X, y = rows * np.array([[1.0, 2.0]]), [targets]
    with pytest.raises(NumericalError, match=r"out of range: .* 1e\+310.* rescale X or y"):
        interpolate(X, y, regularizer)
    solution = interpolate(X, y, regularizer, throw=False)
    assert solution.outcome.kind is Kind.OUT_OF_RANGE


@pytest.mark.parametrize("p", [50.0, 1000.0, 1e4])
def test_lp_of_large_exponents(p):
    """The limit p -> infinity of one row is beta = sign(x) y / |x|_1, by Hoelder's inequality."""
    X, y = np.array([[1.0, -2.0, 4.0]]), np.array([7.0])
    solution = interpolate(X, y, Lp(p))
    assert_right("interpolate", X, y, Lp(p), solution)
    assert solution.beta == pytest.approx([1, -1, 1], abs=2 / p)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3, 8)), rng.normal(size=3)
    assert_right("interpolate", X, y, Lp(p), interpolate(X, y, Lp(p)))


def test_values_and_duals_beyond_float64_are_given_as_logarithms():
    X, y = np.array([[1.0, 2.0]]), np.array([1e150])
    solution, unit = interpolate(X, y, Lp(2.5)), interpolate(X, y / 1e150, Lp(2.5))
    assert solution.value == np.inf
    assert solution.log_value == pytest.approx(unit.log_value + 2.5 * 150 * np.log(10))
    assert "log_value" in str(solution)
    assert "log_value" not in str(unit)
    fourth = interpolate(X, y, Lp(4.0))
    assert np.isfinite(fourth.dual).all()
    gradient = fourth.dual @ X / np.abs(fourth.dual @ X).max()
    expected = (fourth.beta / fourth.beta.max()) ** 3
    assert gradient == pytest.approx(expected, rel=1e-12)
    whole = float(mp.log(mp.mpf(float(fourth.beta.max())) ** 3))
    assert np.log(np.abs(fourth.dual @ X).max()) + fourth.log_dual_unit == pytest.approx(whole)


@pytest.mark.parametrize(("depth", "log_alpha"), [(2, 355.0), (3, 240.0), (5, 161.0), (30, 24.0)])
def test_schatten_far_in_the_kernel_regime_is_frobenius(depth, log_alpha):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(4, 3, 3)), rng.normal(size=4)
    reg = Schatten(Q(depth, log_alpha=log_alpha))
    solution, limit = interpolate(X, y, reg), interpolate(X, y, Frobenius())
    assert_right("interpolate", X, y, reg, solution)
    assert np.abs(solution.matrix - limit.matrix).max() < 1e-13 * np.abs(limit.matrix).max()


@pytest.mark.parametrize("reg", [Nuclear(), Frobenius(), Schatten(Q(3, alpha=0.1))], ids=str)
@pytest.mark.parametrize(("rows", "targets"), SCALES)
def test_matrices_of_any_size(reg, rows, targets):
    rng = np.random.default_rng(1)
    X, y = rows * rng.normal(size=(3, 2, 2)), targets * rng.normal(size=3)
    assert_right("interpolate", X, y, reg, interpolate(X, y, reg))


def test_derive_without_any_constraint_stays_at_its_start():
    reg = derive(lambda w: w**2, start=0.5, signed=False)
    assert interpolate(np.zeros((1, 3)), [0.0], reg).beta == pytest.approx([0.25] * 3)
    with pytest.raises(NumericalError, match=r"has a unit of its own; rescale X or y"):
        interpolate([[1e-310, 2e-310]], [1.0], reg)


def test_margins_of_subnormal_rows():
    rows, y = 1e-310 * np.array([[1.0, 2.0], [3.0, 1.0]]), [1.0, 1.0]
    for regularizer in (L1(), L2(), Q(3, alpha=0.1)):
        with pytest.raises(NumericalError, match="out of range"):
            max_margin(rows, y, regularizer)
    small = 1e-300 * np.array([[1.0, 2.0], [3.0, 1.0]])
    for regularizer in (*EVERY, Q(3, alpha=0.1)):
        assert_right("max_margin", small, y, regularizer, max_margin(small, y, regularizer))


def test_a_path_over_huge_data_is_that_of_the_scaled_problem():
    rng = np.random.default_rng(5)
    X, y, logs = rng.normal(size=(3, 6)), rng.normal(size=3), np.array([0.0, -2.0, -9.0])
    plain = interpolate_path(X, y, 3, log_alphas=logs)
    shift = np.log(2.0**600) / 3  # mu in units of beta
    huge = interpolate_path(np.ldexp(X, 300), np.ldexp(y, 900), 3, log_alphas=logs + shift)
    assert all(outcome.ok for outcome in huge.outcomes)
    assert np.ldexp(huge.beta, -600) == pytest.approx(plain.beta, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("regularizer", [L2(), Q(2, alpha=0.1), Q(3, alpha=0.01)], ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_columns_over_thirteen_decades(regularizer, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(10, 12)) * np.logspace(-6.5, 6.5, 12)[rng.permutation(12)]
    plane = rng.normal(size=12) / np.abs(X).max(axis=0)
    y, labels = X @ plane, np.sign(X @ plane)
    assert_right("interpolate", X, y, regularizer, interpolate(X, y, regularizer))
    assert_right("max_margin", X, labels, regularizer, max_margin(X, labels, regularizer))


@pytest.mark.parametrize("seed", range(4))
def test_columns_over_32_decades_do_not_contradict_each_other(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(8, 8)) * np.logspace(-16, 16, 8)[rng.permutation(8)]
    y = X @ (rng.normal(size=8) / np.abs(X).max(axis=0))
    assert_right("interpolate", X, y, L2(), interpolate(X, y, L2()))
