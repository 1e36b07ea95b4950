"""Q with a tilt: biased starts, and general solvers as the second route."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar

import tacit


def data(seed, samples=3, dimension=6):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((samples, dimension)), rng.standard_normal(samples)


@pytest.mark.parametrize("depth", [2, 3])
def test_the_tilted_minimiser_is_that_of_a_general_solver(depth):
    X, y = data(0)
    q = tacit.Q(depth, alpha=0.7, tilt=np.array([0.2, -0.1, 0.3, 0.0, -0.25, 0.1]))
    found = tacit.interpolate(X, y, q)
    constraint = {"type": "eq", "fun": lambda b: X @ b - y, "jac": lambda b: X}
    start = tacit.interpolate(X, y, tacit.L2()).beta
    other = minimize(
        q, start, jac=q.gradient, constraints=constraint, options={"ftol": 1e-15, "maxiter": 500}
    )
    np.testing.assert_allclose(found.beta, other.x, atol=1e-6)
    assert found.kkt < 1e-12
    upright = tacit.interpolate(X, y, tacit.Q(depth, alpha=0.7)).beta
    assert np.abs(upright - found.beta).max() > 1e-2


def test_the_tilted_margin_is_that_of_a_general_solver():
    X, _ = data(1)
    y = np.sign(X @ np.arange(1.0, 7.0))
    q = tacit.Q(alpha=0.7, tilt=np.linspace(-0.3, 0.3, 6))
    found = tacit.max_margin(X, y, q)
    rows = X * y[:, None]
    constraint = {"type": "ineq", "fun": lambda b: rows @ b - 1, "jac": lambda b: rows}
    start = tacit.max_margin(X, y, tacit.L2()).beta
    other = minimize(
        q, start, jac=q.gradient, constraints=constraint, options={"ftol": 1e-15, "maxiter": 500}
    )
    np.testing.assert_allclose(found.beta, other.x, atol=1e-6)


def test_a_biased_start_is_a_tilt():
    X, y = data(2)
    rng = np.random.default_rng(0)
    plus, minus = np.exp(rng.standard_normal((2, 6)) - 1)
    q = tacit.Q(2, alpha=1.0, shape=np.sqrt(plus * minus), tilt=np.log(plus / minus))
    net, stop = tacit.DiagonalNet(2, start=(plus, minus)), tacit.Loss(1e-22)
    path = tacit.train(net, tacit.Regression(X, y), tacit.ParameterFlow(), stop=stop)
    np.testing.assert_allclose(path.predictor, tacit.interpolate(X, y, q).beta, atol=1e-7)
    untilted = tacit.Q(2, alpha=1.0, shape=np.sqrt(plus * minus))
    assert np.abs(path.predictor - tacit.interpolate(X, y, untilted).beta).max() > 1e-2


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.floats(-4.0, 3.0), st.floats(-2.0, 2.0))
def test_gradient_inverse_slope_and_units(seed, log_alpha, size):
    rng = np.random.default_rng(seed)
    q = tacit.Q(2, log_alpha=log_alpha, tilt=size * rng.standard_normal(5))
    beta = rng.standard_normal(5)
    s = q.gradient(beta)
    np.testing.assert_allclose(q.inverse_gradient(s), beta, rtol=1e-9, atol=1e-12)
    move = 1e-6
    numeric = (q.inverse_gradient(s + move) - q.inverse_gradient(s - move)) / (2 * move)
    np.testing.assert_allclose(q.slope(s), numeric, rtol=1e-5)
    scaled = q.in_units(np.log(3.0))
    assert q(3 * beta) == pytest.approx(3 * scaled(beta), rel=1e-9, abs=1e-9)


def test_the_proximal_map_is_the_least_of_its_definition():
    q = tacit.Q(2, alpha=0.5, tilt=np.array([0.8]))
    for theta in (-1.0, 0.1, 2.0):

        def objective(z, theta=theta):
            return (z - theta) ** 2 / 2 + 0.3 * q([z])

        best = minimize_scalar(objective, options={"xtol": 1e-12}).x
        assert q.prox_of(np.array([theta]), 0.3)[0] == pytest.approx(best, abs=1e-7)


def test_sizes_that_do_not_agree_are_named():
    with pytest.raises(ValueError, match="shape and tilt must have equally many entries"):
        tacit.Q(2, alpha=1.0, shape=[1.0, 2.0], tilt=[0.1])
    with pytest.raises(ValueError, match="tilt must be finite"):
        tacit.Q(2, alpha=1.0, tilt=[np.nan])
    with pytest.raises(ValueError, match="has 5 coordinates, but X has 2 columns"):
        tacit.interpolate([[1.0, 2.0]], [1.0], tacit.Q(2, alpha=1.0, tilt=np.zeros(5)))
