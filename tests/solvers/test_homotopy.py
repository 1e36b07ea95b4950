"""The generic dual Newton solver: certificates, second routes, and sentences for every failure."""

import cvxpy
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penchant import L2, Q, interpolate
from penchant.lab import Kind
from penchant.regularizers import Lp, Regularizer
from penchant.solvers import homotopy
from penchant.solvers.homotopy import margin


class Entropy(Regularizer):
    """sum b log b - b: predictors must be positive."""

    def terms(self, beta):
        return beta * np.log(beta) - beta

    def dual_of(self, beta):
        return np.log(beta)

    def primal_of(self, s):
        return np.exp(s)

    def slope(self, s):
        return np.exp(s)


class Bounded(Regularizer):
    """The gradient of b = tanh(s): predictors stay inside (-1, 1)."""

    def terms(self, beta):
        return beta * np.arctanh(beta) + np.log1p(-(beta**2)) / 2

    def dual_of(self, beta):
        return np.arctanh(beta)

    def primal_of(self, s):
        return np.tanh(s)

    def slope(self, s):
        return 1 / np.cosh(s) ** 2


class Boxed(Regularizer):
    """b = s/(1 - s^2) inside the box (-1, 1), and not a number outside."""

    def terms(self, beta):
        return beta * self.dual_of(beta) + np.log1p(-(self.dual_of(beta) ** 2)) / 2

    def dual_of(self, beta):
        return 2 * beta / (1 + np.sqrt(1 + 4 * beta**2))

    def primal_of(self, s):
        return np.where(np.abs(s) < 1, s / (1 - s**2), np.nan)

    def slope(self, s):
        return np.where(np.abs(s) < 1, (1 + s**2) / (1 - s**2) ** 2, np.nan)


REGULARIZERS = [
    Boxed(),
    Q(depth=2, alpha=0.05),
    Q(depth=3, alpha=0.3),
    Q(depth=2, alpha=2.0),
    L2(),
]


def problem(samples, features, seed, size=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(samples, features)) / np.sqrt(features)
    return X, size * rng.normal(size=samples)


def certificate(regularizer, X, y):
    """(residual, distance of the dual from the gradient, both relative, and the outcome)."""
    beta, nu, _, outcome = homotopy.solve(regularizer, X, y)
    residual = np.abs(X @ beta - y).max() / np.abs(y).max()
    gap = np.abs(regularizer.dual_of(beta) - nu @ X).max() / np.abs(nu @ X).max()
    return residual, gap, outcome


@pytest.mark.parametrize("regularizer", REGULARIZERS, ids=lambda r: str(r).split(" object")[0])
@settings(deadline=None, derandomize=True, max_examples=12)
@given(
    seed=st.integers(0, 10**6),
    samples=st.integers(1, 6),
    extra=st.integers(0, 8),
    log_size=st.floats(-3, 3),
)
def test_the_solution_satisfies_its_optimality_conditions(
    regularizer, seed, samples, extra, log_size
):
    X, y = problem(samples, samples + extra, seed, 10**log_size)
    residual, gap, outcome = certificate(regularizer, X, y)
    assert outcome.kind is Kind.SOLVED
    assert residual < 1e-9
    assert gap < 1e-9


def test_l2_is_least_squares_and_the_wrong_weights_miss_it():
    X, y = problem(5, 20, seed=1)
    weights = np.linspace(0.5, 3, 20)
    beta, *_ = homotopy.solve(L2(weights), X, y)
    root = 1 / np.sqrt(weights)
    expected = root * np.linalg.lstsq(X * root, y, rcond=None)[0]
    np.testing.assert_allclose(beta, expected, atol=1e-12)
    wrong, *_ = homotopy.solve(L2(weights[::-1]), X, y)
    assert np.abs(wrong - expected).max() > 1e-2


def test_entropy_agrees_with_a_conic_solver():
    X, _ = problem(5, 15, seed=2)
    y = X @ np.random.default_rng(0).uniform(0.1, 3, size=15)
    beta, _, _, outcome = homotopy.solve(Entropy(), X, y)
    unknown = cvxpy.Variable(15)
    goal = cvxpy.Minimize(cvxpy.sum(-cvxpy.entr(unknown) - unknown))
    tight = {"tol_gap_abs": 1e-13, "tol_gap_rel": 1e-13, "tol_feas": 1e-13}
    cvxpy.Problem(goal, [X @ unknown == y]).solve(solver=cvxpy.CLARABEL, **tight)
    assert outcome.kind is Kind.SOLVED
    np.testing.assert_allclose(beta, unknown.value, atol=1e-6)
    least_norm = np.linalg.lstsq(X, y, rcond=None)[0]
    assert np.abs(beta - least_norm).max() > 1e-2  # the comparison can tell regularizers apart


@pytest.mark.parametrize(("depth", "alpha"), [(2, 1e-4), (2, 1e-2), (3, 0.01), (4, 0.1), (6, 1.0)])
def test_it_agrees_with_the_solver_made_for_q(depth, alpha):
    X, y = problem(8, 40, seed=depth)
    q = Q(depth=depth, alpha=alpha)
    beta, *_ = homotopy.solve(q, X, y)
    np.testing.assert_allclose(beta, interpolate(X, y, q).beta, atol=1e-9)


def test_sparse_noise_free_data_with_a_nearly_singular_hessian():
    X, _ = problem(10, 40, seed=3)
    truth = np.zeros(40)
    truth[:3] = 1.0
    q = Q(depth=2, alpha=1e-5)
    residual, gap, outcome = certificate(q, X, X @ truth)
    assert outcome.ok
    assert max(residual, gap) < 1e-9


@pytest.mark.parametrize("p", [1.3, 1.5, 3.0])
def test_slopes_that_vanish_or_diverge_at_zero_are_stepped_around(p):
    X, y = problem(4, 12, seed=4)
    residual, gap, outcome = certificate(Lp(p), X, y)
    assert outcome.kind is Kind.SOLVED
    assert max(residual, gap) < 1e-9


def test_zero_targets_are_solved_by_the_start():
    X, _ = problem(3, 9, seed=5)
    beta, nu, steps, outcome = homotopy.solve(Boxed(), X, np.zeros(3))
    assert outcome.kind is Kind.SOLVED
    assert steps == 0
    assert not beta.any()
    assert not nu.any()


def test_zero_targets_away_from_the_start():
    X = np.array([[1.0, -2.0, 1.0, 0.5], [0.3, 1.0, -1.0, -0.2]])
    beta, nu, _, outcome = homotopy.solve(Entropy(), X, np.zeros(2))
    assert outcome.kind is Kind.SOLVED
    assert np.abs(X @ beta).max() < 1e-12
    np.testing.assert_allclose(np.log(beta), nu @ X, atol=1e-12)


@pytest.mark.parametrize("regularizer", [Bounded(), Entropy()], ids=["bounded", "positive"])
def test_unreachable_targets_end_with_a_sentence(regularizer):
    X = np.random.default_rng(6).uniform(0.5, 1.5, size=(3, 8))
    y = X @ np.full(8, -1.2)  # below the range of both
    _, _, _, outcome = homotopy.solve(regularizer, X, y)
    assert outcome.kind is Kind.INFEASIBLE
    assert "no predictor inside the range" in outcome.sentence
    assert margin(regularizer, X, y) <= 0


def test_targets_just_inside_the_range_are_reached():
    X = np.random.default_rng(6).uniform(0.5, 1.5, size=(3, 8))
    y = X @ np.full(8, -0.999)
    residual, gap, outcome = certificate(Bounded(), X, y)
    assert outcome.kind is Kind.SOLVED
    assert max(residual, gap) < 1e-7
    assert 0 < margin(Bounded(), X, y) < 0.01


def test_the_budget_is_obeyed_and_named(monkeypatch):
    monkeypatch.setattr(homotopy, "NEWTON_STEPS", 5)
    X, y = problem(5, 20, seed=7)
    _, _, steps, outcome = homotopy.solve(Q(depth=3, alpha=1e-3), X, y)
    assert outcome.kind is Kind.BUDGET_SPENT
    assert steps <= 5 + homotopy.CORRECTIONS
    assert f"{steps} Newton steps were not enough" in outcome.sentence


def test_a_dual_beyond_double_precision_is_a_failure_with_a_sentence():
    X, y = problem(4, 12, seed=8)
    _, _, _, outcome = homotopy.solve(Q(depth=5, alpha=1e-6), X, y)
    assert outcome.kind is Kind.STALLED
    assert "of the way to the targets" in outcome.sentence


@pytest.mark.parametrize("spread", [3, 12, 40])
def test_newton_steps_survive_graded_slopes(spread):
    rng = np.random.default_rng(9)
    X = rng.normal(size=(4, 9))
    slope = 10.0 ** rng.uniform(-spread, 0, size=9)
    slope[:3] = 10.0 ** np.array([0, 1, 2])  # fewer large ones than rows
    right = rng.normal(size=4)
    step = homotopy.Graded(X, slope).solve(right)
    with mpmath.workdps(120):
        A = mpmath.matrix(X.tolist())
        H = A * mpmath.diag([mpmath.mpf(float(x)) for x in slope]) * A.T
        exact = mpmath.lu_solve(H, mpmath.matrix(right.tolist()))
        expected = np.array([float(x) for x in exact])
    np.testing.assert_allclose(step, expected, rtol=1e-8)
