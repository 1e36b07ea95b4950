"""The predicted error of regression with a kernel: closed forms, leave-one-out, and refusals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penchant
from penchant.forecasts import kernel_error
from penchant.measures import InfiniteKernel


def linear(X, Z):
    return X @ Z.T


def whitened(rows, columns, seed=0):
    """A pool whose second moments are exactly the identity."""
    X = np.random.default_rng(seed).normal(size=(rows, columns))
    return np.linalg.qr(X)[0] * np.sqrt(rows)


@pytest.mark.parametrize("noise", [0.0, 0.7])
@pytest.mark.parametrize("samples", [1, 10, 29])
def test_it_is_that_of_least_norm_regression_on_isotropic_inputs(samples, noise):
    """(1 - N/d) |b|^2 + s^2 N/(d - N), which population_error solves by other equations."""
    dimension, b = 30, np.random.default_rng(1).normal(size=30)
    X = whitened(200, dimension)
    predicted = kernel_error(linear, X, X @ b, samples=samples, noise=noise)
    share = samples / dimension
    expected = (1 - share) * b @ b + noise**2 * samples / (dimension - samples)
    assert predicted.error == pytest.approx(expected, rel=1e-9)
    other = penchant.forecasts.population_error(
        penchant.L2(), samples=samples, dimension=dimension, truth=b, noise=noise
    )
    assert predicted.error == pytest.approx(other.error, rel=1e-6)
    assert predicted.learned == pytest.approx(samples)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), samples=st.integers(1, 20), power=st.floats(-8, 8))
def test_units_change_nothing_and_more_samples_learn_more(seed, samples, power):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 3))
    y, kernel, unit = X[:, 0] + X[:, 1] ** 2, InfiniteKernel("relu", (1,)), 10.0**power
    first = kernel_error(kernel, X, y, samples=samples, ridge=0.1)
    scaled = kernel_error(lambda A, B: unit * kernel(A, B), X, y, samples, ridge=0.1 * unit)
    assert scaled.error == pytest.approx(first.error, rel=1e-6)
    assert 0 < first.learned < samples
    assert first.inflation > 1
    k = first.effective_ridge
    values = np.linalg.eigvalsh(kernel(X)) / 60
    assert (values / (values + k)).sum() + 0.1 / k == pytest.approx(samples, rel=1e-6)


def test_a_large_ridge_learns_nothing():
    X = np.random.default_rng(0).normal(size=(40, 3))
    y = X[:, 0]
    assert kernel_error(linear, X, y, 5, ridge=1e12).error == pytest.approx(np.mean(y**2))


@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_from_training_data_alone_it_is_generalised_cross_validation(ridge):
    X = np.random.default_rng(0).normal(size=(15, 3))
    y, kernel = np.sin(X[:, 0]), InfiniteKernel("relu", (1,), biases=0.2)
    small = ridge or 1e-9
    smoother = kernel(X) @ np.linalg.inv(kernel(X) + small * np.eye(15))
    left = np.eye(15) - smoother
    expected = 15 * np.sum((left @ y) ** 2) / np.trace(left) ** 2
    assert kernel_error(kernel, X, y, ridge=ridge).error == pytest.approx(expected, rel=1e-4)


X = np.random.default_rng(0).normal(size=(20, 3))


@pytest.mark.parametrize(
    ("arguments", "more", "sentence"),
    [
        ((None, X, X[:, 0], 5), {}, "kernel must be a function"),
        ((linear, X, X[:3, 0], 5), {}, "one number per row"),
        ((linear, X, X[:, 0], 15), {}, "at least 2 times the samples"),
        ((linear, X, X[:, 0], 5), {}, "3 modes"),
        ((linear, X, X[:, 0]), {}, "rank 3 of 20"),
        ((linear, X, X[:, 0]), {"ridge": 1.0, "noise": 1.0}, "leave noise out"),
        ((linear, X, X[:, 0], 5), {"ridge": -1.0}, "must not be negative"),
        ((lambda A, B: np.nan * A @ B.T, X, X[:, 0], 5), {}, "finite numbers"),
    ],
)
def test_refusals(arguments, more, sentence):
    with pytest.raises(ValueError, match=sentence):
        kernel_error(*arguments, **more)
