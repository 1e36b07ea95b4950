"""The population error before the data: closed forms, other integrators, draws, inverses."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq, fsolve
from scipy.stats import norm

import penchant
from penchant import L1, L2, Q
from penchant.forecasts import best_alpha, fewest_samples, largest_alpha, population_error
from penchant.regularizers import Lp, R

CORRELATED = np.fromfunction(lambda i, j: 0.9 ** abs(i - j), (300, 300))
SPARSE = {"samples": 60, "dimension": 300, "truth": [0.5] * 4, "noise": 0.1}


def test_least_l2_norm_has_the_error_of_a_random_projection():
    for noise in (0.0, 0.1, 3.0):
        setting = {**SPARSE, "noise": noise}
        known = (1 - 60 / 300) * 1.0 + noise**2 * 60 / (300 - 60)
        assert population_error(L2(), **setting).error == pytest.approx(known, rel=1e-9)


def test_the_interval_of_least_l2_norm_is_that_of_a_random_projection():
    setting = {**SPARSE, "noise": 0.0}
    prediction = population_error(L2(), **setting)
    share, d = 60 / 300, 300  # |P b*|^2 has the law Beta(N/2, (d - N)/2)
    deviation = math.sqrt(2 * share * (1 - share) / (d + 2)) / (1 - share)
    measured = math.log(prediction.high / prediction.error) / 1.645
    assert measured == pytest.approx(deviation, rel=0.02)


def test_unequal_features_under_least_l2_norm():
    # sum c^2/(c^2 + kappa) = N, and the known error of the interpolant (Hastie et al. 2022)
    c = np.geomspace(0.1, 3, 300)
    kappa = brentq(lambda k: (c**2 / (c**2 + k)).sum() - 60, 1e-6, 1e3)
    truth = np.zeros(300)
    truth[[5, 100, 250]] = 1.0, -2.0, 0.3
    shares = c**2 / (c**2 + kappa)
    bias = (truth**2 * c**2 * (1 - shares) ** 2).sum()
    known = (bias + 0.01) / (1 - (shares**2).sum() / 60) - 0.01
    prediction = population_error(
        L2(), samples=60, dimension=300, truth=truth, noise=0.1, covariance=c**2
    )
    assert prediction.error == pytest.approx(known, rel=1e-8)


def test_a_full_covariance_under_least_l2_norm():
    rng = np.random.default_rng(0)
    truth, weights = rng.normal(size=300) / 10, rng.uniform(0.5, 2, size=300)
    setting = {"samples": 60, "dimension": 300, "noise": 0.1}
    prediction = population_error(L2(weights), truth=truth, covariance=CORRELATED, **setting)
    root = np.linalg.cholesky(CORRELATED)
    logs = []
    for _ in range(12):
        X = rng.normal(size=(60, 300)) @ root.T
        y = X @ truth + 0.1 * rng.normal(size=60)
        miss = root.T @ (penchant.interpolate(X, y, L2(weights)).beta - truth)
        logs.append(math.log(miss @ miss / prediction.error))
    deviation = math.log(prediction.high / prediction.error) / 1.645
    assert abs(np.mean(logs)) < 3.3 * deviation / math.sqrt(12) + deviation**2
    plain = population_error(L2(weights), truth=truth, **setting)
    assert abs(math.log(plain.error / prediction.error)) > 5 * deviation
    same = population_error(L2(weights), truth=truth, covariance=np.eye(300), **setting)
    assert same.error == pytest.approx(plain.error, rel=1e-12)


def test_least_l1_norm_by_the_moments_of_soft_thresholding():
    spikes, size, noise, N, d = 4, 0.5, 0.1, 60, 300

    def defects(logs):
        tau, k = np.exp(logs)
        t = k / tau
        at_zero = 2 * ((1 + t**2) * norm.sf(t) - t * norm.pdf(t))  # E soft(Z, t)^2
        a, b = (k - size) / tau, (-k - size) / tau  # a spike is cut between b and a
        inside = size**2 * (norm.cdf(a) - norm.cdf(b))
        above = tau**2 * ((1 + t**2) * norm.sf(a) + (a - 2 * t) * norm.pdf(a))
        below = tau**2 * ((1 + t**2) * norm.cdf(b) - (b + 2 * t) * norm.pdf(b))
        error = (d - spikes) * tau**2 * at_zero + spikes * (inside + above + below)
        active = (d - spikes) * 2 * norm.sf(t) + spikes * (norm.sf(a) + norm.cdf(b))
        return [math.log((noise**2 + error) / (N * tau**2)), math.log(active / N)]

    tau, _ = np.exp(fsolve(defects, np.log([0.05, 0.05]), xtol=1e-13))
    known = N * tau**2 - noise**2
    assert population_error(L1(), **SPARSE).error == pytest.approx(known, rel=1e-8)


def test_depth_two_by_adaptive_integration_of_every_prox():
    mu = 1e-4

    def prox(v, k):
        if v == 0:
            return 0.0
        top = math.asinh(abs(v) / (2 * mu))
        s = brentq(lambda s: 2 * mu * math.sinh(s) + k * s - abs(v), 0, top, xtol=1e-15)
        return math.copysign(abs(v) - k * s, v)

    prediction = population_error(Q(2, mu=mu), **SPARSE)
    tau, k = prediction.noise_level, prediction.strength

    def mean(f):
        edges = [-9, -4, -2, 0, 2, 4, 9]
        pieces = itertools.pairwise(edges)
        return sum(quad(lambda z: f(z) * norm.pdf(z), *p, epsabs=1e-10)[0] for p in pieces)

    error = 296 * mean(lambda z: prox(tau * z, k) ** 2)
    error += 4 * mean(lambda z: (prox(0.5 + tau * z, k) - 0.5) ** 2)
    overlap = 296 * mean(lambda z: z * prox(tau * z, k))
    overlap += 4 * mean(lambda z: z * prox(0.5 + tau * z, k))
    assert error == pytest.approx(prediction.error, rel=1e-6)
    assert error + 0.01 == pytest.approx(60 * tau**2, rel=1e-6)
    assert overlap == pytest.approx(60 * tau, rel=1e-6)


@pytest.mark.parametrize("law", [Q(2, alpha=0.03), Q(4, alpha=0.3), R(alpha=0.1), Lp(1.3), L1()])
def test_draws_have_the_predicted_error(law):
    prediction = population_error(law, **SPARSE)
    truth = np.zeros(300)
    truth[:4] = 0.5
    logs = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(60, 300))
        y = X @ truth + 0.1 * rng.normal(size=60)
        miss = penchant.interpolate(X, y, law).beta - truth
        logs.append(math.log(miss @ miss / prediction.error))
    deviation = math.log(prediction.high / prediction.error) / 1.645
    assert abs(np.mean(logs)) < 3.3 * deviation / math.sqrt(12) + deviation**2
    assert np.std(logs) < 2 * deviation


def test_scales_end_at_the_norms():
    small = population_error(L1(), **SPARSE).error
    large = population_error(L2(), **SPARSE).error
    for law in (Q(2, log_alpha=-1e6), Q(3, log_alpha=-1000), Q(30, log_alpha=-1e4)):
        assert population_error(law, **SPARSE).error == pytest.approx(small, rel=1e-3)
    for law in (Q(2, log_alpha=690), Q(5, log_alpha=1e5)):
        assert population_error(law, **SPARSE).error == pytest.approx(large, rel=1e-9)


def test_intervals_end_at_that_of_least_l1_norm():
    # the slope of a prox below its bend is lost where the prox is rounding of v - k s
    sparse = population_error(L1(), **SPARSE)
    for law in (Q(3, log_alpha=-1000), Q(30, log_alpha=-1e4), R(log_alpha=-1e3)):
        rich = population_error(law, **SPARSE)
        assert (rich.error, rich.low, rich.high) == pytest.approx(
            (sparse.error, sparse.low, sparse.high), rel=1e-6
        )


def test_weights_of_a_start_are_features_of_another_size():
    # at a large scale the l2 norm of beta/w0, that is features of the size w0
    shape = np.geomspace(0.3, 3, 300)
    truth = np.zeros(300)
    truth[[3, 200]] = 1.0, -0.5
    law = Q(2, log_alpha=30, shape=shape)
    setting = {"samples": 60, "dimension": 300, "noise": 0.2}
    scaled = population_error(L2(), truth=truth / shape, covariance=shape**2, **setting)
    assert population_error(law, truth=truth, **setting).error == pytest.approx(scaled.error)


def test_without_noise_enough_samples_recover_the_truth():
    assert population_error(L1(), **{**SPARSE, "noise": 0.0}).error == 0
    assert population_error(L1(), **{**SPARSE, "noise": 0.0, "samples": 8}).error > 0.5


@settings(max_examples=8, deadline=None)
@given(st.floats(-100, 100), st.floats(-8, 2), st.integers(10, 290))
def test_units_do_not_matter(log_unit, log_alpha, samples):
    unit = math.exp(log_unit)
    setting = {**SPARSE, "samples": samples}
    plain = population_error(Q(2, log_alpha=log_alpha), **setting)
    other = {**setting, "truth": [0.5 * unit] * 4, "noise": 0.1 * unit}
    scaled = population_error(Q(2, log_alpha=log_alpha + log_unit / 2), **other)
    assert scaled.error / unit**2 == pytest.approx(plain.error, rel=1e-6)
    assert plain.low < plain.error < plain.high


def test_the_largest_scale_and_the_fewest_samples_are_inverses():
    setting = {"dimension": 300, "truth": [0.5] * 4, "noise": 0.1}
    log_alpha = largest_alpha(0.05, depth=3, samples=60, **setting)
    law = Q(3, log_alpha=log_alpha)
    assert population_error(law, samples=60, **setting).error == pytest.approx(0.05, rel=1e-6)
    assert fewest_samples(0.05, Q(3, log_alpha=log_alpha + 1e-6), **setting) == 61
    assert largest_alpha(2.0, samples=60, **setting) == math.inf


@pytest.mark.parametrize(("depth", "noise"), [(2, 1.0), (3, 0.7)])
def test_the_best_scale_is_the_least_of_a_scan(depth, noise):
    setting = {**SPARSE, "noise": noise}
    best = best_alpha(depth=depth, **setting)
    scan = best + np.linspace(-6, 6, 25) / depth
    errors = [population_error(Q(depth, log_alpha=one), **setting).error for one in scan]
    least = population_error(Q(depth, log_alpha=best), **setting).error
    assert least <= min(errors) * (1 + 1e-4)
    ends = population_error(L1(), **setting).error, population_error(L2(), **setting).error
    assert least < min(ends)


def test_the_best_scale_may_have_no_end():
    assert best_alpha(**SPARSE) == -math.inf
    assert best_alpha(**{**SPARSE, "noise": 0.0}) == -math.inf
    dense = {"samples": 60, "dimension": 300, "truth": np.ones(300), "noise": 0.1}
    assert best_alpha(**dense) == math.inf
    unit = 1e30
    noisy = {**SPARSE, "noise": 1.0}
    large = {**noisy, "truth": [0.5 * unit] * 4, "noise": unit}
    shift = best_alpha(**large) - best_alpha(**noisy)
    assert shift == pytest.approx(math.log(unit) / 2, abs=0.05)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"samples": 300}, "samples must be below the dimension"),
        ({"samples": 0}, "samples must be at least 1"),
        ({"truth": np.ones(301)}, "more than the 300 dimensions"),
        ({"truth": [math.nan]}, "truth must be finite"),
        ({"noise": -1}, "noise must be >= 0"),
        ({"truth": [0.0], "noise": 0.0}, "must not both be zero"),
        ({"truth": [1e-200], "noise": 0.0}, "their squares must be numbers"),
        ({"covariance": [1.0]}, "covariance must be 300 numbers above zero"),
        ({"covariance": np.eye(299)}, "must have the shape"),
        ({"covariance": CORRELATED}, "is no sum over the eigenvectors"),
        ({"covariance": np.triu(CORRELATED)}, "must be a symmetric matrix"),
        ({"covariance": np.ones((300, 300)), "regularizer": L2()}, "must be positive definite"),
        ({"regularizer": Lp(0.5)}, "is not convex"),
        ({"regularizer": penchant.regularizers.Nuclear()}, "must be one of vectors"),
        ({"regularizer": Q(2, alpha=1, shape=[1.0, 2.0])}, "has 2 entries, not 300"),
    ],
)
def test_what_cannot_be_predicted_is_refused(change, words):
    with pytest.raises(ValueError, match=words):
        population_error(**{"regularizer": L1(), **SPARSE, **change})


def test_an_error_below_every_prediction_is_refused():
    setting = {"dimension": 300, "truth": [0.5] * 4, "noise": 0.1}
    with pytest.raises(ValueError, match="no scale has a population error of"):
        largest_alpha(1e-6, samples=60, **setting)
    with pytest.raises(ValueError, match="fewer than 300 samples do not reach"):
        fewest_samples(1e-6, L1(), **setting)
    with pytest.raises(ValueError, match="error must be"):
        largest_alpha(0.0, samples=60, **setting)
