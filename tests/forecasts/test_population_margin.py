"""Max margins before the data: one-dimensional theories, closed forms, adaptive sums, draws."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq, fsolve, minimize_scalar
from scipy.special import ndtr

import penchant
from penchant import L1, L2, Q
from penchant.forecasts import population_margin, separable_samples
from penchant.regularizers import Lp, R

SPARSE = {"samples": 60, "dimension": 200, "truth": [0.5] * 4}


def bell(x):
    return np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)


def share_of(flips=0.0, slope=math.inf):
    """The density of V, label times output of the truth, over 2 phi."""
    right = (
        (lambda v: float(v > 0)) if slope == math.inf else (lambda v: 1 / (1 + np.exp(-slope * v)))
    )
    return lambda v: flips + (1 - 2 * flips) * right(v)


def excess(one, a, r, share):
    """The mean of (one - aV - rG)_+^2 by adaptive integration."""

    def inner(v):
        x = (one - a * v) / r
        return ((x**2 + 1) * ndtr(x) + x * bell(x)) * 2 * bell(v) * share(v)

    pieces = itertools.pairwise([-9, -2, 0, 2, 9])
    return r**2 * sum(quad(inner, *piece, epsabs=1e-13)[0] for piece in pieces)


@pytest.mark.parametrize("flips", [0.0, 0.1])
def test_least_l2_norm_by_the_largest_margin_of_every_angle(flips):
    # Montanari et al. 2019: the margin kappa is the root of a minimum over angles
    share = share_of(flips)

    def gap(angle, kappa):
        width = math.sin(angle)
        missing = math.sqrt(60 * excess(kappa, math.cos(angle), width, share))
        return missing - math.sqrt(199) * width

    def least(kappa):
        return minimize_scalar(
            lambda angle: gap(angle, kappa),
            bounds=(0.1, 1.57),
            method="bounded",
            options={"xatol": 1e-9},
        )

    kappa = brentq(lambda kappa: least(kappa).fun, 0.1, 5, xtol=1e-10)
    prediction = population_margin(L2(), flips=flips, **SPARSE)
    assert prediction.length == pytest.approx(1 / kappa, rel=1e-6)
    assert prediction.cosine == pytest.approx(math.cos(least(kappa).x), rel=1e-5)
    angle = math.acos(prediction.cosine) / math.pi
    assert prediction.error == pytest.approx(flips + (1 - 2 * flips) * angle, rel=1e-9)


def soft(centre, spread, k):
    """E b, E b^2 and E of the slope of a soft threshold b at centre + spread Z."""
    high, low = (centre - k) / spread, (-centre - k) / spread
    parts = [(ndtr(x), x * ndtr(x) + bell(x)) for x in (high, low)]
    square = [(x**2 + 1) * ndtr(x) + x * bell(x) for x in (high, low)]
    mean = spread * (parts[0][1] - parts[1][1])
    return mean, spread**2 * sum(square), parts[0][0] + parts[1][0]


def test_least_l1_norm_by_the_moments_of_soft_thresholding():
    share, N, d, spikes = share_of(slope=1.0), 60, 200, 4
    theta, rest = 0.5, math.sqrt(0.75)

    def defects(logs):
        a, r, k = np.exp(logs)
        step = 1e-4
        f = math.sqrt(excess(1, a, r, share))
        f_a = (excess(1, a + step, r, share) - excess(1, a - step, r, share)) / (4 * step * f)
        f_r = (excess(1, a, r + step, share) - excess(1, a, r - step, share)) / (4 * step * f)
        tau, m = r / (math.sqrt(N) * f_r), a - r * f_a / f_r
        mean, square, slope = soft(m * theta, tau * rest, k)
        _, square_off, slope_off = soft(0.0, tau, k)
        overlap = tau * (spikes * 0.75 * slope + (d - spikes) * slope_off)
        return [
            math.log(spikes * theta * mean / a),
            math.log((spikes * square + (d - spikes) * square_off) / (a**2 + r**2)),
            math.log(overlap / (math.sqrt(N) * f)),
        ]

    a, r, _ = np.exp(fsolve(defects, np.log([0.3, 0.5, 0.2]), xtol=1e-10))
    prediction = population_margin(L1(), labels="logistic", **SPARSE)
    assert prediction.length == pytest.approx(math.hypot(a, r), rel=1e-5)
    assert prediction.cosine == pytest.approx(a / math.hypot(a, r), rel=1e-5)


def test_depth_two_by_adaptive_integration_of_every_prox():
    mu, share = 1e-3, share_of(0.1)
    prediction = population_margin(Q(2, mu=mu), flips=0.1, **SPARSE)
    a = prediction.length * prediction.cosine
    r = math.sqrt(prediction.length**2 - a**2)
    pieces = list(itertools.pairwise([-9, -2, 0, 2, 9]))

    def over_v(f):
        return sum(quad(lambda v: f(v) * 2 * bell(v) * share(v), *p)[0] for p in pieces)

    support = over_v(lambda v: ndtr((1 - a * v) / r))
    assert 60 * support == pytest.approx(prediction.support, rel=1e-7)
    x = lambda v: (1 - a * v) / r  # noqa: E731
    lever = over_v(lambda v: v * r * (x(v) * ndtr(x(v)) + bell(x(v))))
    f = math.sqrt(excess(1, a, r, share))
    m, tau = a + lever / support, f / (math.sqrt(60) * support)

    def prox(v, k):
        top = math.asinh(abs(v) / (2 * mu))
        s = brentq(lambda s: 2 * mu * math.sinh(s) + k * s - abs(v), 0, top, xtol=1e-15)
        return math.copysign(abs(v) - k * s, v)

    z = np.linspace(-8, 8, 1201)
    weights = bell(z) * (z[1] - z[0])

    def sums(k):
        spread = tau * math.sqrt(0.75)
        spike = np.array([prox(m / 2 + spread * one, k) for one in z])
        off = np.array([prox(tau * one, k) for one in z])
        first = 4 * 0.5 * weights @ spike
        second = 4 * weights @ spike**2 + 196 * weights @ off**2
        third = 4 * math.sqrt(0.75) * weights @ (z * spike) + 196 * weights @ (z * off)
        return first, second, third

    k = brentq(lambda k: sums(k)[2] - math.sqrt(60) * f, 1e-3, 1.0, xtol=1e-7)
    first, second, _ = sums(k)
    assert first == pytest.approx(a, rel=1e-4)
    assert second == pytest.approx(a**2 + r**2, rel=1e-4)


@pytest.mark.parametrize(
    ("law", "more"),
    [
        (L1(), {}),
        (Q(2, alpha=0.1), {"flips": 0.1}),
        (R(alpha=0.3), {"labels": "logistic", "truth": [1.5] * 4}),
        (Q(3, alpha=0.2), {"covariance": np.geomspace(0.2, 2, 200)}),
    ],
)
def test_draws_have_the_predicted_direction(law, more):
    setting = {**SPARSE, **more}
    prediction = population_margin(law, **setting)
    truth = np.zeros(200)
    truth[:4] = setting["truth"]
    c = np.sqrt(setting.get("covariance", np.ones(200)))
    logs, support = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(60, 200)) * c
        y = np.sign(X @ truth)
        if "labels" in more:
            y = np.where(rng.random(60) < 1 / (1 + np.exp(-X @ truth)), 1.0, -1.0)
        y *= np.where(rng.random(60) < more.get("flips", 0.0), -1.0, 1.0)
        solution = penchant.max_margin(X, y, law)
        beta = c * solution.beta
        cosine = beta @ (c * truth) / np.linalg.norm(beta) / np.linalg.norm(c * truth)
        flips, angle = more.get("flips", 0.0), math.acos(cosine) / math.pi
        if "labels" in more:
            v = np.linspace(-8, 8, 2001)
            wrong = 2 * bell(v) / (1 + np.exp(-np.linalg.norm(truth) * v))
            angle = np.trapezoid(wrong * ndtr(-v * cosine / math.sqrt(1 - cosine**2)), v)
        logs.append(math.log((flips + (1 - 2 * flips) * angle) / prediction.error))
        support.append((solution.dual > 1e-8 * solution.dual.max()).sum())
    deviation = math.log(prediction.high / prediction.error) / 1.645
    assert abs(np.mean(logs)) < 3.3 * deviation / math.sqrt(12) + deviation**2
    assert np.std(logs) < 2 * deviation
    assert np.mean(support) == pytest.approx(prediction.support, rel=0.06)


def test_scales_end_at_the_norms():
    for law, end in (
        (Q(2, log_alpha=-1e6), L1()),
        (Q(5, log_alpha=-1000), L1()),
        (Q(2, log_alpha=690), L2()),
        (Q(3, log_alpha=1e5), L2()),
    ):
        one, other = (population_margin(r, flips=0.05, **SPARSE) for r in (law, end))
        for name in ("error", "high", "length", "support"):
            assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-4)


@settings(max_examples=8, deadline=None)
@given(st.floats(-60, 60), st.floats(-6, 1), st.integers(3, 400))
def test_units_do_not_matter(log_unit, log_alpha, samples):
    unit = math.exp(log_unit)
    setting = {"samples": samples, "dimension": 200, "truth": [0.5, 1.0]}
    plain = population_margin(Q(2, log_alpha=log_alpha), **setting)
    variances = np.full(200, unit**2)
    law = Q(2, log_alpha=log_alpha - log_unit / 2)
    scaled = population_margin(law, covariance=variances, **setting)
    assert scaled.error == pytest.approx(plain.error, rel=1e-6)
    assert plain.low < plain.error < plain.high
    assert 0 < plain.cosine < 1
    assert plain.support < samples


def test_a_full_covariance_is_rotated_for_least_l2_norm():
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.normal(size=(50, 50)))[0]
    variances = np.geomspace(0.1, 3, 50)
    truth = rng.normal(size=50)
    setting = {"samples": 30, "dimension": 50}
    plain = population_margin(L2(), truth=truth, covariance=variances, **setting)
    matrix = turn @ np.diag(variances) @ turn.T
    turned = population_margin(L2(), truth=turn @ truth, covariance=matrix, **setting)
    assert turned.error == pytest.approx(plain.error, rel=1e-9)
    with pytest.raises(ValueError, match="is no sum over the eigenvectors"):
        population_margin(L1(), truth=truth, covariance=matrix, **setting)


def test_the_edge_of_separability():
    # without a signal Cover's 2 (d - 1); with flips by the least mean over ratios
    faint = separable_samples(dimension=200, truth=[1e-4], labels="logistic")
    assert faint == pytest.approx(2 * 199, rel=1e-4)
    share = share_of(0.1)
    least = minimize_scalar(lambda t: excess(0, t, 1, share), bounds=(0.01, 10), method="bounded")
    known = 199 / least.fun
    assert separable_samples(dimension=200, truth=[1.0], flips=0.1) == pytest.approx(
        known, rel=1e-6
    )
    assert separable_samples(dimension=200, truth=[1.0]) == math.inf
    near = population_margin(L2(), samples=int(known) - 1, flips=0.1, dimension=200, truth=[1.0])
    assert near.length > 20
    with pytest.raises(ValueError, match="are not separable, so that no predictor"):
        population_margin(L2(), samples=int(known) + 1, flips=0.1, dimension=200, truth=[1.0])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"truth": [0.0]}, "truth must not be zero"),
        ({"truth": np.ones(201)}, "more than the 200 dimensions"),
        ({"flips": 0.5}, "flips must be below 1/2"),
        ({"flips": -0.1}, "flips must be in"),
        ({"labels": "probit"}, "unknown labels"),
        ({"samples": 0}, "samples must be at least 1"),
        ({"covariance": [1.0]}, "covariance must be 200 numbers"),
        ({"regularizer": Lp(0.5)}, "is not convex"),
        ({"regularizer": penchant.regularizers.Nuclear()}, "must be one of vectors"),
    ],
)
def test_what_cannot_be_predicted_is_refused(change, words):
    with pytest.raises(ValueError, match=words):
        population_margin(**{"regularizer": L1(), **SPARSE, **change})
