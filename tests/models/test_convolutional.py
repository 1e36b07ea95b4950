"""Linear convolutional nets: their predictor, and the diagonal net that they are on even inputs."""

import numpy as np
import pytest

import penchant
from penchant.models import convolutional_net, filters_predictor, frequency_net


def even(rng, samples, dimension):
    X = rng.normal(size=(samples, dimension))
    return (X + np.roll(X[:, ::-1], 1, axis=1)) / 2


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_the_predictor_is_the_convolution_of_the_filters(depth):
    rng = np.random.default_rng(depth)
    filters, X = rng.normal(size=(depth, 5)), rng.normal(size=(3, 5))
    beta = np.eye(5)[0]
    for w in filters:  # by the sum itself
        beta = np.array([sum(beta[j] * w[(k - j) % 5] for j in range(5)) for k in range(5)])
    np.testing.assert_allclose(filters_predictor(filters.ravel(), depth), beta, atol=1e-12)
    net = convolutional_net(depth, alpha=1.0)
    np.testing.assert_allclose(net.predict(filters.ravel(), X), X @ beta, atol=1e-12)
    assert net.homogeneity == depth


@pytest.mark.parametrize(("depth", "dimension"), [(2, 7), (3, 8)])
def test_on_even_inputs_it_ends_at_the_regularizer_of_the_diagonal_net(depth, dimension):
    rng = np.random.default_rng(0)
    X = even(rng, 3, dimension)
    problem = penchant.Regression(
        X, X @ np.fft.irfft(3 * rng.random(dimension // 2 + 1), dimension)
    )
    net = convolutional_net(depth, alpha=0.3, start="impulse")
    path = penchant.train(net, problem, penchant.ParameterFlow(rtol=1e-9))
    end = filters_predictor(path.parameters, depth)
    seen = frequency_net(problem, depth, alpha=0.3)
    start = seen.net.start(dimension // 2 + 1)
    law = penchant.derive(lambda w: w**depth, start, signed=False)
    predicted = penchant.interpolate(seen.problem, law)
    np.testing.assert_allclose(seen.predictor(predicted.beta), end, atol=1e-7)
    flat = penchant.derive(lambda w: w**depth, np.full_like(start, start[1]), signed=False)
    wrong = penchant.interpolate(seen.problem, flat)
    assert np.abs(seen.predictor(wrong.beta) - end).max() > 1e-3


def test_the_flows_are_the_same_at_all_times():
    rng = np.random.default_rng(1)
    X = even(rng, 2, 9)
    problem = penchant.Regression(X, X @ np.fft.irfft(rng.random(5), 9))
    seen = frequency_net(problem, 3, alpha=0.4)
    for time in (0.1, 1.0, 5.0):
        stop = penchant.Time(time)
        net = convolutional_net(3, alpha=0.4, start="impulse")
        path = penchant.train(net, problem, penchant.ParameterFlow(rtol=1e-9), stop=stop)
        twin = penchant.train(seen.net, seen.problem, penchant.ParameterFlow(), stop=stop)
        beta = filters_predictor(path.parameters, 3)
        np.testing.assert_allclose(seen.predictor(twin.predictor), beta, atol=1e-7)


def test_margins_are_those_of_frequencies():
    rng = np.random.default_rng(2)
    X = even(rng, 4, 7)
    labels = np.sign(X @ np.fft.irfft(rng.random(4) + 0.5, 7))
    seen = frequency_net(penchant.Classification(X, labels), 2, alpha=0.1)
    weights = rng.random(4)
    np.testing.assert_allclose(seen.problem.X @ weights, X @ seen.predictor(weights), atol=1e-12)
    assert seen.problem.loss == "exp"


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: frequency_net(penchant.Regression([[1.0, 2.0, 3.0]], [1.0]), alpha=1.0), "even"),
        (lambda: frequency_net(None, alpha=1.0), "Regression or a Classification"),
        (lambda: convolutional_net(0, alpha=1.0), "depth"),
        (lambda: convolutional_net(2, alpha=1.0, start="zero"), "start"),
        (lambda: filters_predictor([[1.0]], 1), "parameters"),
        (lambda: filters_predictor([1.0, 2.0, 3.0], 2), "whole number of entries"),
    ],
)
def test_refusals(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
