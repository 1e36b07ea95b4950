"""Splines, least bends and least weights on a line, against other solvers and random nets."""

import numpy as np
import pytest
from scipy.optimize import linprog

from penchant import Regression
from penchant.measures import mean_kernel, tangent_kernel
from penchant.models import univariate_relu
from penchant.problems import plateau, steep_end, zigzag
from penchant.solvers import cubic_spline, least_bend, least_weights, linear_spline


def points(seed, count=5):
    rng = np.random.default_rng(seed)
    x = np.cumsum(rng.uniform(0.2, 0.6, count)) - 1
    order = rng.permutation(count)
    return Regression(x[order, None], rng.normal(size=count))


@pytest.mark.parametrize("seed", range(3))
def test_the_cubic_spline_solves_the_equations_of_its_moments(seed):
    problem = points(seed)
    order = np.argsort(problem.X[:, 0])
    x, y = problem.X[order, 0], problem.y[order]
    h, s = np.diff(x), np.diff(y) / np.diff(x)
    A = np.diag(2 * (h[1:] + h[:-1])) + np.diag(h[1:-1], 1) + np.diag(h[1:-1], -1)
    m = np.concatenate([[0], np.linalg.solve(A, 6 * np.diff(s)), [0]])
    t = np.linspace(x[0], x[-1], 101)
    k = np.clip(np.searchsorted(x, t) - 1, 0, len(h) - 1)
    u, v, w = x[k + 1] - t, t - x[k], h[k]
    value = (m[k] * u**3 + m[k + 1] * v**3) / (6 * w)
    value += (y[k] / w - m[k] * w / 6) * u + (y[k + 1] / w - m[k + 1] * w / 6) * v
    np.testing.assert_allclose(cubic_spline(problem)(t), value, atol=1e-12)
    np.testing.assert_allclose(linear_spline(problem)(x), y)
    middle = linear_spline(problem)((x[1:] + x[:-1]) / 2)
    np.testing.assert_allclose(middle, (y[1:] + y[:-1]) / 2)


@pytest.mark.parametrize("seed", range(3))
def test_no_piecewise_linear_interpolant_bends_less(seed):
    """A linear program over all values on a grid that contains the data."""
    problem = points(seed)
    grid = np.union1d(np.linspace(-1, 2.2, 81), problem.X[:, 0])
    h = np.diff(grid)
    bends = np.zeros((len(grid) - 2, len(grid)))
    for j in range(len(bends)):
        bends[j, j : j + 3] = 1 / h[j], -1 / h[j] - 1 / h[j + 1], 1 / h[j + 1]
    n, k = len(grid), len(bends)
    where = np.searchsorted(grid, problem.X[:, 0])
    least = linprog(
        np.concatenate([np.zeros(n), np.ones(k)]),
        A_ub=np.block([[bends, -np.eye(k)], [-bends, -np.eye(k)]]),
        b_ub=np.zeros(2 * k),
        A_eq=np.hstack([np.eye(n)[where], np.zeros((len(where), k))]),
        b_eq=problem.y,
        bounds=[(None, None)] * n + [(0, None)] * k,
    )
    np.testing.assert_allclose(least_bend(problem), least.fun, rtol=1e-7)


@pytest.mark.parametrize("problem", [zigzag(), plateau(), steep_end()])
def test_no_random_net_that_interpolates_has_less_weights(problem):
    """Units with random knots and the outer weights of least sum of squares; and known numbers."""
    rng = np.random.default_rng(0)
    every = np.union1d(np.linspace(-2, 2, 401), problem.X[:, 0])
    least = least_weights(problem, every)
    for _ in range(20):
        w, b = rng.normal(size=(2, 40))
        units = np.maximum(problem.X * w + b, 0)
        v = np.linalg.lstsq(units, problem.y, rcond=None)[0]
        assert np.abs(units @ v - problem.y).max() < 1e-8
        assert np.hypot(w, b) @ np.abs(v) >= least * (1 - 1e-3)
    assert least_weights(problem, problem.X[:, 0]) >= least - 1e-9


def test_units_that_cannot_interpolate_have_no_least_weights():
    assert least_weights(zigzag(), [5.0]) == np.inf
    assert least_weights(steep_end(), steep_end().X[:, 0]) == pytest.approx(4.7869, rel=1e-4)


def test_the_mean_kernel_is_the_mean_over_the_starts():
    x, width = np.array([-1.0, 0.2, 0.9]), 60
    nets = [univariate_relu(width, alpha=0.7, scaling=0.6, seed=s) for s in range(150)]
    kernels = np.array([tangent_kernel(net, net.start(1), x[:, None]) for net in nets])
    exact = mean_kernel(x, x, width, alpha=0.7, scaling=0.6)
    error = kernels.std(axis=0) / np.sqrt(len(nets))
    assert (np.abs(kernels.mean(axis=0) - exact) < 4.5 * error).all()
    wrong = mean_kernel(x, x, width, alpha=0.7, scaling=0.7)
    assert (np.abs(kernels.mean(axis=0) - wrong) > 4.5 * error).any()
    np.testing.assert_allclose(mean_kernel(x, x, width, log_alpha=np.log(0.7), scaling=0.6), exact)


def test_points_at_one_place_are_refused():
    with pytest.raises(ValueError, match="linear_spline: problem must have two points or more"):
        linear_spline(Regression([[1.0], [1.0]], [0.0, 1.0]))
