"""The mpmath reference itself, checked by routes that share nothing with it."""

import mpmath as mp
import numpy as np
import pytest
from mpmath import mpf
from scipy.integrate import solve_ivp
from scipy.linalg import null_space
from scipy.optimize import linprog

import oracle
import oracle_q


def random_problem(seed: int, samples: int, dimension: int, spread: float = 0.4):
    """(X, y, shape): Gaussian data and a lognormal shape."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(samples, dimension))
    return X, rng.normal(size=samples), np.exp(spread * rng.normal(size=dimension))


def flow_limit(X, y, depth: int, alpha: float, shape) -> np.ndarray:
    """Where gradient flow in the parameters of beta = w+^D - w-^D ends: W eq. (3), integrated."""
    d = X.shape[1]
    metric = np.linalg.inv(X @ X.T)

    def velocity(_, w):
        back = X.T @ (metric @ (y - X @ (w[:d] ** depth - w[d:] ** depth)))
        return depth * w ** (depth - 1) * np.concatenate([back, -back])

    start = alpha * np.concatenate([shape, shape])
    run = solve_ivp(velocity, (0, 4000), start, method="LSODA", rtol=1e-11, atol=1e-13)
    return run.y[:d, -1] ** depth - run.y[d:, -1] ** depth


@pytest.mark.parametrize(("depth", "alpha"), [(2, 1.3), (2, 0.1), (3, 0.6), (5, 0.8), (8, 0.9)])
def test_the_reference_is_where_gradient_flow_ends(depth, alpha):
    X, y, shape = random_problem(depth, samples=2, dimension=4)
    reference = oracle.solve(X, y, depth, np.log(alpha), shape)
    reached = flow_limit(X, y, depth, alpha, shape)
    assert np.abs(X @ reached - y).max() < 1e-9, "premise: the flow has interpolated"
    assert np.abs(reached - reference.beta).max() < 1e-7
    wrong = oracle.solve(X, y, depth + 1, np.log(alpha), shape)  # control: another depth
    assert np.abs(reached - wrong.beta).max() > 1e-3


@pytest.mark.parametrize("depth", [2, 3, 6])
def test_large_scale_gives_the_weighted_least_norm(depth):
    X, y, shape = random_problem(10 + depth, samples=3, dimension=7)
    spread = shape ** (2 * depth - 2)  # W eq. (6) and its form for any depth
    least = spread * (X.T @ np.linalg.solve((X * spread) @ X.T, y))
    assert np.abs(oracle.solve(X, y, depth, 690.0, shape).beta - least).max() < 1e-12
    assert np.abs(oracle.solve(X, y, depth, -2.0, shape).beta - least).max() > 1e-3  # control


@pytest.mark.parametrize("depth", [3, 4, 10])
def test_small_scale_gives_the_weighted_l1_vertex(depth):
    X, y, shape = random_problem(20 + depth, samples=3, dimension=7)
    cost = 1 / shape ** (depth - 2)
    vertex = linprog(np.tile(cost, 2), A_eq=np.hstack([X, -X]), b_eq=y).x
    vertex = vertex[:7] - vertex[7:]
    assert np.abs(oracle.solve(X, y, depth, -400.0, shape).beta - vertex).max() < 1e-10
    assert np.abs(oracle.solve(X, y, depth, 0.0, shape).beta - vertex).max() > 1e-3  # control


def test_depth_two_approaches_l1_only_like_one_over_the_logarithm():
    """On a flat face depth 2 picks the largest entropy, which at d equal columns is the mean."""
    beta = oracle.solve(np.ones((1, 5)), np.ones(1), 2, -1000.0).beta
    assert np.allclose(beta, 0.2, rtol=1e-14)


@pytest.mark.parametrize("depth", [2, 3, 7])
@pytest.mark.parametrize("log_alpha", [-1000.0, -2.0, 5.0])
def test_no_feasible_neighbour_has_a_smaller_value(depth, log_alpha):
    X, y, shape = random_problem(30 + depth, samples=2, dimension=5)
    reference = oracle.solve(X, y, depth, log_alpha, shape)
    least = oracle_q.value(reference.beta, depth, log_alpha, shape)
    size = np.abs(reference.beta).max()
    for direction in null_space(X).T:
        for move in (-1e-3 * size, 1e-3 * size):
            assert (
                oracle_q.value(reference.beta + move * direction, depth, log_alpha, shape) > least
            )


@pytest.mark.parametrize(("depth", "log_alpha"), [(2, -1000.0), (2, 5.0), (3, -50.0), (9, -200.0)])
def test_a_wrong_dual_vector_is_not_certified(depth, log_alpha):
    X, y, shape = random_problem(50, samples=3, dimension=6)
    reference = oracle.solve(X, y, depth, log_alpha, shape)
    assert reference.error < 1e-30
    rows = [[mpf(float(v)) for v in row] for row in X]
    scale = oracle_q.Scale(depth, log_alpha, tuple(map(float, shape)))
    target = [mpf(float(v)) for v in y]
    with mp.workdps(reference.digits):
        wrong = [v * (1 - mpf(10) ** -20) for v in reference.dual]
    with pytest.raises(oracle.OracleError, match="residual"):
        oracle.certify(rows, target, scale, wrong, 1, reference.digits)
    with pytest.raises(oracle.OracleError):
        oracle.certify(rows, target, scale, [2 * v for v in reference.dual], 1, reference.digits)


def test_logarithms_reach_below_the_range_of_floats():
    X, y, _ = random_problem(60, samples=2, dimension=6)
    reference = oracle.solve(X, y, 4, -1000.0)
    tiny = reference.beta == 0
    assert tiny.any()
    assert (reference.log_abs_beta[tiny] < -3000).all()
    assert np.allclose(np.exp(reference.log_abs_beta[~tiny]), np.abs(reference.beta[~tiny]))


@pytest.mark.parametrize("depth", [2, 3, 4, 9])
@pytest.mark.parametrize("beta", [3e-4, 0.7, -40.0])
def test_value_is_the_integral_of_the_gradient(depth, beta):
    with mp.workdps(25):
        integral = oracle_q.value_by_quadrature(beta, depth, -0.5)
        assert abs(oracle_q.value([beta], depth, -0.5) / integral - 1) < 1e-15
        assert abs(oracle_q.value([beta], depth, -0.4) / integral - 1) > 1e-3  # control


@pytest.mark.parametrize("depth", [2, 3, 10])
@pytest.mark.parametrize("log_alpha", [-5000.0, -3.0, 300.0])
def test_gradient_and_inverse_gradient_are_inverse(depth, log_alpha):
    shape = [0.5, 2.0, 1.25]
    beta = [1e-200, -2.0, 1e90]
    s = oracle_q.gradient(beta, depth, log_alpha, shape)
    scale = oracle_q.Scale(depth, log_alpha, tuple(shape))
    with mp.workdps(oracle_q.digits_for([mpf(b) for b in beta], scale)):
        back = oracle_q.inverse_gradient(s, depth, log_alpha, shape)
        assert max(abs(b / mpf(a) - 1) for a, b in zip(beta, back, strict=True)) < mpf(10) ** -35
