"""Bounds on scales: the published formulas, and what they promise, by arithmetic of many digits."""

import math

import mpmath as mp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import penchant
from penchant import bounds


def q(z):
    """q of the depth-2 net by quadrature of its derivative."""
    return mp.quad(lambda u: mp.asinh(u / 2), [0, abs(z) / 1000, abs(z) / 10, abs(z)])


def value(beta, log_alpha):
    mu = mp.exp(2 * mp.mpf(log_alpha))
    return mu * sum(q(mp.mpf(b) / mu) for b in beta)


@pytest.mark.parametrize("seed", range(6))
def test_q_is_the_norm_up_to_epsilon_at_both_edges(seed):
    rng = np.random.default_rng(seed)
    beta = rng.normal(size=int(rng.integers(2, 6))) * 10 ** rng.uniform(-1, 1)
    epsilon = rng.uniform(0.3, 0.9)
    l1, l2 = float(np.abs(beta).sum()), float(np.linalg.norm(beta))
    edge = bounds.l1_norm_edge(epsilon, l1, len(beta))
    printed = min(
        1,
        mp.sqrt(l1),
        mp.mpf(2 * l1) ** (-1 / (2 * epsilon)),
        mp.exp(-len(beta) / (2 * epsilon * l1)),
    )
    assert abs(mp.log(printed) - edge) < 1e-12 * max(1, abs(edge))
    assert abs(value(beta, edge) / (-2 * edge) / l1 - 1) <= epsilon * (1 + 1e-9)
    large = bounds.l2_norm_edge(epsilon, l2)
    assert math.isclose(math.exp(large), math.sqrt(l2) * (1 + epsilon**-0.25), rel_tol=1e-12)
    assert abs(4 * mp.exp(2 * large) * value(beta, large) / l2**2 - 1) <= epsilon


@pytest.mark.parametrize("seed", range(4))
def test_training_ends_within_epsilon_of_the_least_norm(seed):
    problem = penchant.problems.sparse_regression(3, 6, sparsity=2, seed=seed)
    least = penchant.interpolate(problem, penchant.L1()).value
    norm = float(np.linalg.norm(penchant.interpolate(problem, penchant.L2()).beta))
    small, large = bounds.l1_solution_edge(2.0, least, 6), bounds.l2_solution_edge(0.1, norm)
    assert math.isclose(
        math.exp(small),
        min((2 * 3 * least) ** (-4 / 4), math.exp(-6 / (2 * least))),
        rel_tol=1e-12,
    )
    assert math.isclose(math.exp(large) ** 2, 2 * 1.1 * 21 * norm, rel_tol=1e-12)
    flow = penchant.ParameterFlow()
    ends = [
        penchant.train(penchant.DiagonalNet(2, log_alpha=edge), problem, flow).predictor
        for edge in (small, large)
    ]
    assert np.abs(ends[0]).sum() <= 3.0 * least
    assert ends[1] @ ends[1] <= 1.1 * norm**2


@pytest.mark.parametrize(("epsilon", "dimension"), [(0.05, 3), (0.3, 20), (1.0, 3e4), (2.0, 1e9)])
def test_q_is_not_the_l1_norm_above_the_edge(epsilon, dimension):
    edge = bounds.not_l1_edge(epsilon, dimension)
    assert math.isclose(math.exp(edge), dimension ** (-1 / 4 - 1 / (8 * epsilon)), rel_tol=1e-9)
    for more in (0.0, 1.0, 5.0):
        mu = mp.exp(2 * mp.mpf(edge + more))
        root = mp.sqrt(dimension)
        ratio = root * mu * q(1 / mu) / (mu * dimension * q(1 / (mu * root)))
        assert ratio >= 1 + epsilon


def test_below_its_least_dimension_the_edge_is_refused():
    with pytest.raises(ValueError, match=r"dimension must be at least .* = 144"):
        bounds.not_l1_edge(0.5, 143)
    with pytest.raises(ValueError, match="epsilon must be below the dimension 3"):
        bounds.l1_solution_edge(3.0, 1.0, 3)


@pytest.mark.parametrize(("depth", "alpha"), [(3, 0.05), (4, 0.15), (6, 0.3)])
def test_the_dual_of_a_deep_net_comes_close_to_its_edge_and_stays_within(depth, alpha):
    x, y = np.array([1.0, -0.5]), 1.3

    def velocity(_, state):
        plus, minus = state[:2], state[2:4]
        r = x @ (plus**depth - minus**depth) - y
        slope = 2 * depth * r * x
        return [*(-slope * plus ** (depth - 1)), *(slope * minus ** (depth - 1)), r]

    start = [alpha] * 4 + [0.0]
    run = solve_ivp(velocity, (0, 1e5), start, method="LSODA", rtol=1e-10, atol=1e-12)
    farthest = np.abs(np.outer(run.y[4], x)).max()
    edge = math.exp(bounds.dual_edge(depth, alpha=alpha))
    assert 0.9 * edge < farthest <= edge
    assert bounds.dual_edge(depth, log_alpha=math.log(alpha)) == pytest.approx(math.log(edge))
