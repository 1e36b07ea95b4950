"""The jumps between saddles: against a hand count, a crude simulation, training and the lasso."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear
from sklearn.linear_model import Lasso

import penchant
from penchant.lab import Kind


def random_data(seed: int, samples: int, dimension: int):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((samples, dimension)), rng.standard_normal(samples)


def simulated(X, y, steps=4000, end=1.0):
    """s by small steps of time, the saddle by a general bounded solver at each."""
    s, times, points = np.zeros(X.shape[1]), [], []
    for k in range(steps):
        at = np.abs(s) >= 1
        beta = np.zeros(len(s))
        if at.any():
            signed = X[:, at] * np.sign(s[at])
            beta[at] = np.sign(s[at]) * lsq_linear(signed, y, (0, np.inf)).x
        times.append(k * end / steps)
        points.append(beta)
        s = np.clip(s + end / steps * 4 * X.T @ (y - X @ beta), -1, 1)
    return np.array(times), np.array(points)


def test_orthogonal_features_jump_when_their_own_slope_says_so():
    found = penchant.solvers.saddles(np.diag([1.0, 2.0, 0.5]), [1.0, -1.0, 3.0])
    slopes = 4 * np.array([1.0, 2.0, 1.5])
    np.testing.assert_allclose(np.sort(1 / slopes), found.tau[1:], rtol=1e-14)
    np.testing.assert_allclose(found.end, [1.0, -0.5, 6.0], rtol=1e-14)
    assert found.monotone
    assert found.outcome.kind is Kind.SOLVED


@pytest.mark.parametrize("seed", range(3))
def test_the_list_is_what_small_steps_of_time_give(seed):
    X, y = random_data(seed, 3, 6)
    found = penchant.solvers.saddles(X, y)
    end = 1.1 * found.tau[min(4, len(found.tau) - 1)]
    times, points = simulated(X, y, end=end)
    apart = np.abs(points - found.at(times)).max(axis=1) > 1e-6
    assert apart.mean() < 0.01  # some steps at each jump
    later = penchant.solvers.saddles(2 * X, y)  # twice as early: a control
    assert (np.abs(points - 2 * later.at(times)).max(axis=1) > 1e-6).mean() > 0.1


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 8), st.integers(1, 14))
def test_the_end_is_the_least_l1_norm_and_every_stay_obeys_the_rules(seed, samples, dimension):
    X, y = random_data(seed, samples, dimension)
    found = penchant.solvers.saddles(X, y)
    if dimension > samples:
        np.testing.assert_allclose(
            found.end, penchant.interpolate(X, y, penchant.L1()).beta, atol=1e-7
        )
    else:
        np.testing.assert_allclose(found.end, np.linalg.lstsq(X, y)[0], atol=1e-7)
    loss = ((found.points @ X.T - y) ** 2).sum(axis=1)
    assert (np.diff(loss) <= 1e-12 * loss[0]).all()
    assert (np.diff(found.tau) > 0).all()
    assert (np.abs(found.dual) <= 1).all()
    there = found.points != 0
    np.testing.assert_array_equal(np.sign(found.points[there]), found.dual[there])
    slopes = 4 * (y - found.points[:-1] @ X.T) @ X
    moved = np.clip(found.dual[:-1] + np.diff(found.tau)[:, None] * slopes, -1, 1)
    np.testing.assert_allclose(moved, found.dual[1:], atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_the_mean_of_a_monotone_list_is_the_lasso(seed):
    X, y = random_data(seed, 12, 4)
    found = penchant.solvers.saddles(X, y)
    assert found.monotone
    for tau in (1.5 * found.tau[1], found.tau[2], 3 * found.tau[-1]):
        lasso = Lasso(1 / (4 * tau * len(y)), fit_intercept=False, tol=1e-12, max_iter=100_000)
        np.testing.assert_allclose(found.average(tau), lasso.fit(X, y).coef_, atol=1e-8)
        assert np.abs(found.at(tau) - lasso.coef_).max() > 1e-3  # the predictor itself is not


@pytest.mark.parametrize(("depth", "log_alpha"), [(2, -300.0), (3, -7.0), (4, -4.0)])
def test_training_jumps_at_these_times(depth, log_alpha):
    X, y = np.array([[1.0, 0.5, -0.3], [0.2, -1.0, 0.4]]), np.array([1.0, 0.7])
    found = penchant.solvers.saddles(X, y, depth=depth)
    unit = np.exp(found.log_unit(log_alpha=log_alpha))
    rests = (found.tau[1:-1] + found.tau[2:]) / 2
    net = penchant.DiagonalNet(depth, log_alpha=log_alpha)
    stop, record = penchant.Time(2 * found.tau[-1] * unit), penchant.record.At(times=rests * unit)
    path = penchant.train(
        net, penchant.Regression(X, y), penchant.DualFlow(), stop=stop, record=record
    )
    trained = path.dataset.predictor.values
    np.testing.assert_allclose(trained[1:-1], found.at(rests), atol=0.02)
    np.testing.assert_allclose(trained[-1], found.end, atol=0.02)
    assert np.abs(trained[1] - found.at(0.5 * found.tau[1])).max() > 0.1


def test_half_of_the_squares_takes_twice_the_time():
    X, y = random_data(0, 3, 5)
    half = penchant.solvers.saddles(penchant.Regression(X, y, loss="half squares"))
    np.testing.assert_allclose(half.tau, 2 * penchant.solvers.saddles(X, y).tau, rtol=1e-12)


def test_equal_and_opposite_columns_share_their_weight():
    X, y = random_data(1, 3, 4)
    found, once = (
        penchant.solvers.saddles(np.hstack([X, -X[:, :1]]), y),
        penchant.solvers.saddles(X, y),
    )
    np.testing.assert_allclose(found.tau, once.tau, rtol=1e-9)
    np.testing.assert_allclose(found.points[:, 0], -found.points[:, 4], atol=0)
    np.testing.assert_allclose(found.points[:, 0] * 2, once.points[:, 0], atol=1e-12)


def test_dependent_columns_that_leave_a_choice_are_reported():
    found = penchant.solvers.saddles([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]], [1.0, 1.0])
    assert found.outcome.kind is Kind.SOLVED  # the third column alone fits, and it is first
    tie = penchant.solvers.saddles([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5]], [1.0, 1.0])
    assert tie.outcome.kind is Kind.NOT_UNIQUE
    np.testing.assert_allclose([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5]] @ tie.end, 1.0)


def test_labels_of_zero_leave_training_at_rest():
    found = penchant.solvers.saddles(np.eye(2), np.zeros(2))
    assert found.tau.tolist() == [0.0]
    assert not found.at([0.0, 5.0]).any()
    assert not found.average(5.0).any()


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda f: penchant.solvers.saddles([[np.nan, 1.0]], [1.0]), "X must be finite"),
        (lambda f: penchant.solvers.saddles([[1.0]], [1.0, 2.0]), "X has 1 rows but y has 2"),
        (lambda f: penchant.solvers.saddles([[1.0]], [1.0], depth=1), "depth must be at least 2"),
        (
            lambda f: penchant.solvers.saddles(penchant.Regression([[1.0]], [1.0]), [1.0]),
            "leave y out",
        ),
        (lambda f: f.log_unit(alpha=2.0), "from starts with alpha < 1"),
        (lambda f: f.at(-1.0), "tau must not be negative"),
    ],
)
def test_wrong_input_is_named(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call(penchant.solvers.saddles([[1.0]], [1.0]))
