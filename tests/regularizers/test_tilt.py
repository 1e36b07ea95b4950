"""Q with a tilt: biased starts, and general solvers as the second route."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize, minimize_scalar

import penchant
from penchant.forecasts import tilted_q
from penchant.solvers import homotopy


def data(seed, samples=3, dimension=6):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((samples, dimension)), rng.standard_normal(samples)


@pytest.mark.parametrize("depth", [2, 3])
def test_the_tilted_minimiser_is_that_of_a_general_solver(depth):
    X, y = data(0)
    q = penchant.Q(depth, alpha=0.7, tilt=np.array([0.2, -0.1, 0.3, 0.0, -0.25, 0.1]))
    found = penchant.interpolate(X, y, q)
    constraint = {"type": "eq", "fun": lambda b: X @ b - y, "jac": lambda b: X}
    start = penchant.interpolate(X, y, penchant.L2()).beta
    other = minimize(
        q, start, jac=q.gradient, constraints=constraint, options={"ftol": 1e-15, "maxiter": 500}
    )
    np.testing.assert_allclose(found.beta, other.x, atol=1e-6)
    assert found.kkt < 1e-12
    upright = penchant.interpolate(X, y, penchant.Q(depth, alpha=0.7)).beta
    assert np.abs(upright - found.beta).max() > 1e-2


def test_the_tilted_margin_is_that_of_a_general_solver():
    X, _ = data(1)
    y = np.sign(X @ np.arange(1.0, 7.0))
    q = penchant.Q(alpha=0.7, tilt=np.linspace(-0.3, 0.3, 6))
    found = penchant.max_margin(X, y, q)
    rows = X * y[:, None]
    constraint = {"type": "ineq", "fun": lambda b: rows @ b - 1, "jac": lambda b: rows}
    start = penchant.max_margin(X, y, penchant.L2()).beta
    other = minimize(
        q, start, jac=q.gradient, constraints=constraint, options={"ftol": 1e-15, "maxiter": 500}
    )
    np.testing.assert_allclose(found.beta, other.x, atol=1e-6)


@pytest.mark.parametrize("log_alpha", [-3.0, -500.0, -4000.0])
def test_the_tilted_minimiser_is_that_of_mpmath_at_any_scale(log_alpha):
    """Newton's method in 60 digits on X 2 alpha^2 sinh(X^T nu + tilt) = y, from our dual."""
    X, y = data(4, samples=2, dimension=4)
    tilt = np.array([0.7, -1.1, 0.4, 2.0])
    found = penchant.interpolate(X, y, penchant.Q(2, log_alpha=log_alpha, tilt=tilt))
    with mpmath.workdps(60):
        A, nu = mpmath.matrix(X), mpmath.matrix(found.dual)
        scale = 2 * mpmath.exp(2 * mpmath.mpf(log_alpha))
        for _ in range(8):
            s = A.T * nu + mpmath.matrix(tilt)
            left = A * mpmath.matrix([scale * mpmath.sinh(x) for x in s]) - mpmath.matrix(y)
            slopes = mpmath.diag([scale * mpmath.cosh(x) for x in s])
            nu = nu - mpmath.lu_solve(A * slopes * A.T, left)
        s = A.T * nu + mpmath.matrix(tilt)
        exact = [float(scale * mpmath.sinh(x)) for x in s]
        assert float(mpmath.norm(left)) < 1e-40
    np.testing.assert_allclose(found.beta, exact, rtol=1e-9, atol=1e-15)
    upright = penchant.interpolate(X, y, penchant.Q(2, log_alpha=log_alpha)).beta
    if log_alpha == -3:
        assert np.abs(upright - found.beta).max() > 1e-2


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([2, 3, 4]), st.floats(0.0, 3.0))
def test_a_path_has_the_minimisers_of_the_general_solver(seed, depth, size):
    X, y = data(seed, samples=4, dimension=9)
    tilt = size * np.random.default_rng(seed).uniform(-0.3, 0.3, 9)
    scales = [1.0, -0.5, -2.0]
    path = penchant.solvers.interpolate_path(X, y, depth, log_alphas=scales, tilt=tilt)
    assert path.kkt.max() < 1e-10
    assert path.residual.max() < 1e-9
    for log_alpha, beta in zip(scales, path.beta, strict=True):
        q = penchant.Q(depth, log_alpha=log_alpha, tilt=tilt)
        other, _, _, outcome = homotopy.solve(q, X, y)
        assert outcome.ok
        np.testing.assert_allclose(beta, other, rtol=1e-6, atol=1e-7)


def test_a_path_of_margins_has_the_tilted_margins_of_each_scale():
    X, _ = data(1, samples=5, dimension=8)
    y, tilt, mus = np.sign(X @ np.arange(1.0, 9.0)), np.linspace(-0.6, 0.6, 8), [1.0, 0.1, 1e-3]
    path = penchant.solvers.max_margin_path(X, y, mus=mus, tilt=tilt)
    assert path.kkt.max() < 1e-10
    rows = X * y[:, None]
    for mu, beta in zip(mus, path.beta, strict=True):
        q = penchant.Q(2, mu=mu, tilt=tilt)
        np.testing.assert_allclose(beta, penchant.max_margin(X, y, q).beta, atol=1e-9)
        constraint = {"type": "ineq", "fun": lambda b: rows @ b - 1, "jac": lambda b: rows}
        other = minimize(
            q,
            penchant.max_margin(X, y, penchant.L2()).beta,
            jac=q.gradient,
            constraints=constraint,
            options={"ftol": 1e-14, "maxiter": 500},
        )
        np.testing.assert_allclose(beta, other.x, atol=1e-6)
        upright = penchant.max_margin(X, y, penchant.Q(2, mu=mu)).beta
        assert np.abs(upright - beta).max() > 1e-3


def test_a_tilt_that_has_the_margins_by_itself_leaves_the_rows_alone():
    X, y, tilt = np.array([[1.0, 0.2], [0.3, 1.0]]), [1, 1], [3.0, 3.0]
    q = penchant.Q(2, alpha=1.0, tilt=tilt)
    found = penchant.max_margin(X, y, q)
    np.testing.assert_allclose(found.beta, 2 * np.sinh(3.0))
    assert not found.dual.any()
    with pytest.raises(penchant.NumericalError, match="the tilt alone has all margins >= 1"):
        penchant.solvers.max_margin_path(X, y, mus=[1.0], tilt=tilt)
    assert penchant.solvers.max_margin_path(X, y, mus=[0.01], tilt=tilt).support.any()


def test_zero_labels_have_a_minimiser_away_from_zero():
    X, _ = data(5)
    tilt = np.linspace(-0.4, 0.5, 6)
    path = penchant.solvers.interpolate_path(X, np.zeros(3), log_alphas=[0.0], tilt=tilt)
    (beta,), (dual,) = path.beta, path.dual
    assert np.abs(X @ beta).max() < 1e-12
    np.testing.assert_allclose(2 * np.sinh(dual @ X + tilt), beta, atol=1e-12)
    assert np.abs(beta).max() > 0.1


@pytest.mark.parametrize("depth", [3, 4])
def test_deep_nets_of_small_scale_have_the_tilted_l1_solution(depth):
    """Large predictors cost |beta| - tilt beta, which is a linear program."""
    X, y = data(11, samples=4, dimension=9)
    tilt = np.random.default_rng(11).uniform(-0.5, 0.5, 9)
    found = penchant.interpolate(X, y, penchant.Q(depth, log_alpha=-60.0, tilt=tilt))
    assert found.kkt < 1e-12
    program = linprog(np.concatenate([1 - tilt, 1 + tilt]), A_eq=np.hstack([X, -X]), b_eq=y)
    plus, minus = np.split(program.x, 2)
    np.testing.assert_allclose(found.beta, plus - minus, atol=1e-9)
    upright = penchant.interpolate(X, y, penchant.L1()).beta
    assert np.abs(upright - found.beta).max() > 1e-2


def test_a_tilt_beyond_the_domain_of_a_deep_net_is_named():
    with pytest.raises(penchant.NumericalError, match="of the tilt could be added"):
        penchant.interpolate([[1.0, 1.0]], [1.0], penchant.Q(3, alpha=1.0, tilt=[4.0, -4.0]))


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_a_biased_start_is_a_tilt(depth):
    X, y = data(2)
    rng = np.random.default_rng(0)
    plus, minus = np.exp(rng.standard_normal((2, 6)) / 2 - 1)
    q = tilted_q(depth, plus, minus)
    if depth == 2:
        np.testing.assert_allclose([q.shape, q.tilt], [np.sqrt(plus * minus), np.log(plus / minus)])
    net, stop = penchant.DiagonalNet(depth, start=(plus, minus)), penchant.stop.Loss(1e-22)
    path = penchant.train(net, penchant.Regression(X, y), penchant.ParameterFlow(), stop=stop)
    np.testing.assert_allclose(path.predictor, penchant.interpolate(X, y, q).beta, atol=1e-7)
    untilted = penchant.Q(depth, alpha=1.0, shape=q.shape)
    assert np.abs(path.predictor - penchant.interpolate(X, y, untilted).beta).max() > 1e-2


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.floats(-4.0, 3.0), st.floats(-2.0, 2.0))
def test_gradient_inverse_slope_and_units(seed, log_alpha, size):
    rng = np.random.default_rng(seed)
    q = penchant.Q(2, log_alpha=log_alpha, tilt=size * rng.standard_normal(5))
    beta = rng.standard_normal(5)
    s = q.gradient(beta)
    np.testing.assert_allclose(q.inverse_gradient(s), beta, rtol=1e-9, atol=1e-12)
    move = 1e-6
    numeric = (q.inverse_gradient(s + move) - q.inverse_gradient(s - move)) / (2 * move)
    np.testing.assert_allclose(q.slope(s), numeric, rtol=1e-5)
    scaled = q.in_units(np.log(3.0))
    assert q(3 * beta) == pytest.approx(3 * scaled(beta), rel=1e-9, abs=1e-9)


def test_the_proximal_map_is_the_least_of_its_definition():
    q = penchant.Q(2, alpha=0.5, tilt=np.array([0.8]))
    for theta in (-1.0, 0.1, 2.0):

        def objective(z, theta=theta):
            return (z - theta) ** 2 / 2 + 0.3 * q([z])

        best = minimize_scalar(objective, options={"xtol": 1e-12}).x
        assert q.prox_of(np.array([theta]), 0.3)[0] == pytest.approx(best, abs=1e-7)


def test_sizes_that_do_not_agree_are_named():
    with pytest.raises(ValueError, match="shape and tilt must have equally many entries"):
        penchant.Q(2, alpha=1.0, shape=[1.0, 2.0], tilt=[0.1])
    with pytest.raises(ValueError, match="tilt must be finite"):
        penchant.Q(2, alpha=1.0, tilt=[np.nan])
    with pytest.raises(ValueError, match="has 5 coordinates, but X has 2 columns"):
        penchant.interpolate([[1.0, 2.0]], [1.0], penchant.Q(2, alpha=1.0, tilt=np.zeros(5)))
