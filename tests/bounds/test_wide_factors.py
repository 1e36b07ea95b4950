"""Bounds on wide factors, by their own equations and by training."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq

from penchant.bounds import (
    kernel_regime,
    least_width,
    misfit_rate,
    wide_start_regime,
    wishart_deviation,
)
from penchant.models import wide_factorization
from penchant.problems import Sensing
from penchant.solvers import factor_twin

SETTINGS = [(1.0, 0.0, 1.0, 1.0), (2.0, 0.1, 0.5, 1.5), (0.03, 1e-4, 3.0, 40.0)]


@pytest.mark.parametrize(("mu", "gamma", "low", "high"), SETTINGS)
def test_the_largest_misfit_is_where_the_bound_meets_the_radius_of_the_rate(mu, gamma, low, high):
    """eqs. (78) to (81): the rate at that radius is 3 mu low, and the way that W goes fills it."""
    edges = {"mu": mu, "gamma": gamma, "low": low, "high": high}
    radius = brentq(
        lambda R: misfit_rate(radius=R, **edges) - 3 * mu * low, 0, np.sqrt(mu), xtol=1e-15
    )
    largest = kernel_regime(0, **edges).largest_misfit
    assert kernel_regime(largest, **edges).from_start == pytest.approx(radius, rel=1e-6)
    assert kernel_regime(largest, **edges).applies
    assert not kernel_regime(1.01 * largest, **edges).applies


@pytest.mark.parametrize(("mu", "gamma", "low", "high"), SETTINGS)
def test_the_bound_on_the_twin_is_the_integral_of_eq_87(mu, gamma, low, high):
    regime = kernel_regime(0.01, mu=mu, gamma=gamma, low=low, high=high)
    size = regime.from_start + 2 * np.sqrt(mu + gamma)
    fall = quad(lambda t: np.exp(-t), 0, np.inf)[0] / (mu * low)
    assert regime.from_twin == pytest.approx(np.sqrt(high) * size * 0.01 * fall)


@pytest.mark.parametrize("seed", range(3))
def test_training_stays_within_the_bounds_and_falls_as_fast_as_they_say(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((3, 2, 2))
    low, high = np.linalg.eigvalsh(X.reshape(3, 4) @ X.reshape(3, 4).T)[[0, -1]]
    model = wide_factorization(10**9, alpha=1e-1, shape=(2, 2), seed=seed)
    W = model.stack(model.start(4))
    mu, gamma = 1e7, np.linalg.norm(W @ W.T - 1e7 * np.eye(4), 2)
    assert gamma < 0.01 * wishart_deviation(4, 10**9)
    twin = factor_twin(model, Sensing(X, rng.standard_normal(3)))
    edges = {"mu": mu, "gamma": gamma, "low": low, "high": high}
    regime = kernel_regime(np.linalg.norm(twin.residual[0]), **edges)
    assert regime.applies
    assert twin.farthest < regime.from_start
    assert twin.apart < regime.from_twin
    rate = misfit_rate(radius=twin.farthest, **edges)
    sizes = np.linalg.norm(twin.residual, axis=1)
    within = sizes > 1e-6 * sizes[0]  # below it the accuracy of the flow shows
    assert (sizes <= sizes[0] * np.exp(-rate * twin.t) * (1 + 1e-6))[within].all()
    assert (sizes > sizes[0] * np.exp(-2 * rate * twin.t))[within][1:].any()  # no slack of a factor


@pytest.mark.parametrize("high", [1.0, 3.0])
@pytest.mark.parametrize("norm", [0.0, 1e6])
def test_from_the_least_width_on_the_regime_applies(norm, high):
    sizes = {"dimension": 3, "samples": 4, "low": 1.0, "high": high}
    width = int(least_width(norm, alpha=0.01, **sizes)) + 1
    for factor in 1, 10, 1000:
        assert wide_start_regime(factor * width, norm, alpha=0.01, **sizes).applies
    few = max(width // 10**4, 6)  # the proof is not sharp, but neither is it empty
    if 4 * high * 8 * np.sqrt(6 / few) > 1:
        with pytest.raises(ValueError, match="mu must be above"):
            wide_start_regime(few, norm, alpha=0.01, **sizes)
    else:
        assert not wide_start_regime(few, norm, alpha=0.01, **sizes).applies


def test_the_deviation_bounds_gaussian_factors():
    rng = np.random.default_rng(0)
    W = 0.5 * rng.standard_normal((200, 6, 30))
    off = np.linalg.norm(W @ W.transpose(0, 2, 1) - 0.25 * 30 * np.eye(6), 2, axis=(1, 2))
    bound = 0.25 * wishart_deviation(6, 30)
    assert off.max() < bound
    assert off.max() > bound / 8  # the control: without the factor 8 it is no bound


def test_a_start_that_is_no_multiple_of_the_identity_is_refused():
    with pytest.raises(ValueError, match=r"kernel_regime: mu must be above 4 high gamma / low = 2"):
        kernel_regime(1.0, mu=1.0, gamma=0.5, low=1.0, high=1.0)
    with pytest.raises(ValueError, match="least_width: low must be at most high"):
        least_width(1.0, alpha=1.0, dimension=2, samples=3, low=2.0, high=1.0)
