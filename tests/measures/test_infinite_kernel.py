"""Kernels of infinite width: closed forms by integrals, wide nets, and what they are used for."""

import itertools
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import nnls
from scipy.special import erf

import penchant
from penchant.measures import (
    InfiniteKernel,
    infinite_kernel,
    kernel_regression,
    tangent_kernel,
)

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(5, 4))
ACTIVATIONS = {
    "relu": (lambda z: np.maximum(z, 0), lambda z: (z > 0) * 1.0),
    "erf": (erf, lambda z: 2 / np.sqrt(np.pi) * np.exp(-(z**2))),
    "linear": (lambda z: z, np.ones_like),
    "quadratic": (lambda z: z**2, lambda z: 2 * z),
}


def expectation(function, S):
    """E function(p) function(q) for Gaussians of covariance S: around the circle and by radius."""
    root = np.linalg.cholesky(S)
    radii, weights = np.polynomial.laguerre.laggauss(60)  # u = r^2 / 2 is exponential

    def around(angle):
        p, q = root @ np.array([np.cos(angle), np.sin(angle)])
        r = np.sqrt(2 * radii)
        return weights @ (function(r * p) * function(r * q)) / (2 * np.pi)

    p, q = root  # where either changes its sign
    kinks = [np.arctan2(-row[0], row[1]) % np.pi for row in (p, q)]
    ends = sorted({0.0, *kinks, *(k + np.pi for k in kinks), 2 * np.pi})
    return sum(quad(around, a, b, epsabs=1e-12)[0] for a, b in itertools.pairwise(ends))


def regular(S):
    """S with a hair on its diagonal, for rows that are equal."""
    return S + 1e-13 * np.trace(S) * np.eye(2)


def by_integrals(kernel, X):
    """The recursion of one pair of rows after the other, with the expectations as integrals."""
    function, slope = ACTIVATIONS[kernel.activation]
    count = len(X)
    K = np.empty((count, count))
    biases = kernel.biases or (0.0,) * len(kernel.weights)
    for i in range(count):
        for j in range(count):
            pair = X[[i, j]]
            S = kernel.weights[0] * pair @ pair.T / X.shape[1] + biases[0]
            tangent = pair[0] @ pair[1] + (kernel.biases is not None)
            for w, b, n in zip(kernel.weights[1:], biases[1:], kernel.widths, strict=True):
                between, *own = (
                    expectation(function, regular(part))
                    for part in (S, *(np.full((2, 2), S[k, k]) for k in (0, 1)))
                )
                back = w * expectation(slope, regular(S))
                tangent = tangent * back + n * between + (kernel.biases is not None)
                S = w * np.array([[own[0], between], [between, own[1]]]) + b
            K[i, j] = tangent if kernel.kind == "tangent" else S[0, 1]
    return kernel.copies * K if kernel.kind == "tangent" else K


@pytest.mark.parametrize("kind", ["tangent", "output"])
@pytest.mark.parametrize(
    ("activation", "widths", "weights", "biases"),
    [
        ("relu", (7,), 2.0, None),
        ("relu", (7, 3), (1.0, 2.0, 0.5), 0.3),
        ("erf", (7, 3), 1.5, (0.1, 0.0, 0.2)),
        ("linear", (5,), 1.5, None),
        ("quadratic", (5,), 0.5, 0.1),
    ],
)
def test_the_recursion_by_integrals(activation, widths, weights, biases, kind):
    kernel = InfiniteKernel(activation, widths, weights=weights, biases=biases, kind=kind)
    X = ROWS[:2]
    expected = by_integrals(kernel, X)
    tolerance = 1e-9 if activation != "erf" else 1e-5  # of the quadrature over the radius
    np.testing.assert_allclose(kernel(X), expected, rtol=max(tolerance, 1e-6))


def test_known_values():
    """E relu(p) relu(q) = 1/2 on the diagonal and 1/(2 pi) for independent units (Cho and Saul)."""
    K = InfiniteKernel("relu", (1,), weights=(2.0, 1.0), kind="output")(np.eye(2))
    np.testing.assert_allclose(K, [[0.5, 1 / (2 * np.pi)], [1 / (2 * np.pi), 0.5]])
    arcsine = InfiniteKernel("erf", (1,), weights=(2.0, 1.0), kind="output")(np.eye(2))
    np.testing.assert_allclose(np.diag(arcsine), 2 / np.pi * np.arcsin(2 / 3))


MODELS = {
    "two layers": lambda seed: penchant.models.two_layer(3, alpha=1.3, seed=seed),
    "erf, biases": lambda seed: penchant.models.two_layer(
        3, alpha=1.3, activation="erf", bias=True, seed=seed
    ),
    "quadratic": lambda seed: penchant.models.two_layer(
        3, alpha=0.7, activation="quadratic", seed=seed
    ),
    "unbiased": lambda seed: penchant.models.relu_net(
        2, 3, alpha=1.1, start="gaussian", layers=[2.0, 0.5], unbiased=True, seed=seed
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_two_layers_have_this_kernel_in_the_mean_at_any_width(name):
    """Monte Carlo: with three units the mean over starts is the limit itself."""
    nets = [MODELS[name](seed) for seed in range(400)]
    kernels = np.array([tangent_kernel(net, net.start(4), ROWS[:3]) for net in nets])
    K, error = infinite_kernel(nets[0])(ROWS[:3]), kernels.std(axis=0) / np.sqrt(len(kernels))
    assert (np.abs(kernels.mean(axis=0) - K) < 5 * error).all()
    assert (np.abs(kernels.mean(axis=0) - 2 * K) > 5 * error).any()


def test_deep_nets_come_to_it_with_their_width():
    for width, least in ((8, 0.1), (512, 0.0)):
        nets = [
            penchant.models.relu_net(4, width, alpha=1.0, start="gaussian", seed=seed)
            for seed in range(6)
        ]
        kernel = infinite_kernel(nets[0])
        apart = [kernel.fluctuation(tangent_kernel(n, n.start(4), ROWS), ROWS) for n in nets]
        assert least < np.mean(apart) < 4 / np.sqrt(width)


def test_outputs_of_wide_nets_have_the_covariance_of_the_output_kernel():
    net = penchant.models.two_layer(400, alpha=1.5, activation="erf")
    starts = [
        penchant.models.two_layer(400, alpha=1.5, activation="erf", seed=seed)
        for seed in range(600)
    ]
    outputs = np.array([start.predict(start.start(4), ROWS) for start in starts])
    K = infinite_kernel(net, kind="output")(ROWS)
    products = outputs[:, :, None] * outputs[:, None]
    error = products.std(axis=0) / np.sqrt(len(outputs))
    assert (np.abs(products.mean(axis=0) - K) < 5 * error).all()


def test_nets_on_images_have_it_too():
    images = penchant.problems.load_images("digits", train=20, test=10)
    net = penchant.models.dense_net(widths=(30, 20), alpha=0.5)
    kernel = infinite_kernel(net)
    assert kernel.widths == (30, 20)
    np.testing.assert_allclose(kernel.weights, 0.5)
    K = kernel(images.train_images.reshape(20, -1))
    assert np.linalg.eigvalsh(K)[0] > 0


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    activation=st.sampled_from(["relu", "erf", "linear", "quadratic"]),
    layers=st.integers(1, 3),
    power=st.integers(-60, 30),
    biased=st.booleans(),
)
def test_it_is_a_kernel(seed, activation, layers, power, biased):
    rng = np.random.default_rng(seed)
    X = 2.0**power * rng.normal(size=(6, 3))
    X[1] = X[0]  # equal rows
    X[2] = 0.0
    kernel = InfiniteKernel(activation, (4,) * layers, biases=0.2 if biased else None)
    K = kernel(X)
    np.testing.assert_allclose(K, K.T, rtol=1e-12)
    np.testing.assert_allclose(kernel(X[:2], X), K[:2], rtol=1e-12, atol=1e-12 * np.abs(K).max())
    np.testing.assert_allclose(K[0], K[1], rtol=1e-12, atol=1e-300)
    assert K[0, 1] == pytest.approx(K[0, 0], rel=1e-12)
    # ReLU resolves no angle below 6e-8: six entries a row, each off by 1e-8 per layer
    lost = 6 * 1e-8 * layers if activation == "relu" else 1e-10
    assert np.linalg.eigvalsh(K)[0] > -lost * np.abs(K).max()
    if activation == "relu" and not biased:
        np.testing.assert_allclose(kernel(3 * X), 9 * K, rtol=1e-12)


def test_regression_and_machines_with_it():
    rng = np.random.default_rng(3)
    X, Z = rng.normal(size=(20, 3)), rng.normal(size=(7, 3))
    kernel, y = InfiniteKernel("relu", (50, 50), biases=0.1), X[:, 0] * X[:, 1]
    fit = kernel_regression(kernel, X, y)
    np.testing.assert_allclose(
        fit.predict(Z), kernel(Z, X) @ np.linalg.solve(kernel(X), y), rtol=1e-7
    )
    ridge = kernel_regression(kernel, X, y, ridge=0.5)
    dual = np.linalg.solve(kernel(X) + 0.5 * np.eye(20), y)
    np.testing.assert_allclose(ridge.predict(Z), kernel(Z, X) @ dual, rtol=1e-9)
    F, labels = kernel.features(X), np.where(y > 0, 1.0, -1.0)
    np.testing.assert_allclose(F @ F.T, kernel(X), rtol=1e-9, atol=1e-9 * np.abs(F @ F.T).max())
    machine = penchant.max_margin(penchant.Classification(F, labels), penchant.L2())
    # the shortest h with y F h >= 1 is a problem of non-negative least squares (Lawson, Hanson)
    stacked = np.vstack([(labels[:, None] * F).T, np.ones(20)])
    left = stacked @ nnls(stacked, np.eye(len(stacked))[-1])[0] - np.eye(len(stacked))[-1]
    np.testing.assert_allclose(machine.beta, -left[:-1] / left[-1], rtol=1e-5, atol=1e-7)


def test_two_thousand_rows_take_seconds():
    X = np.random.default_rng(0).normal(size=(2000, 10))
    begin = time.process_time()
    K = InfiniteKernel("relu", (100, 100, 100), biases=0.1)(X)
    assert time.process_time() - begin < 5
    assert K.shape == (2000, 2000)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: infinite_kernel(penchant.models.conv_net(alpha=1.0)), "for conv_net"),
        (lambda: infinite_kernel(penchant.DiagonalNet(alpha=1.0)), "for DiagonalNet"),
        (
            lambda: infinite_kernel(penchant.models.two_layer(3, alpha=1.0, activation="tanh")),
            "activation 'tanh'",
        ),
        (
            lambda: infinite_kernel(penchant.models.relu_net(3, 4, alpha=1.0)),
            "start='gaussian'",
        ),
        (
            lambda: infinite_kernel(penchant.models.relu_net(1, 4, alpha=1.0, start="gaussian")),
            "no hidden layer",
        ),
        (lambda: InfiniteKernel("relu", ()), "at least one hidden layer"),
        (lambda: InfiniteKernel("relu", (3,), weights=(1.0, 1.0, 1.0)), "one per layer"),
        (lambda: InfiniteKernel("relu", (3,), biases=-1.0), "must not be negative"),
        (lambda: InfiniteKernel("relu", (3,))(np.full((2, 2), 1e200)), "beyond float64"),
        (lambda: InfiniteKernel("relu", (3,))(ROWS, ROWS[:, :2]), "4 columns"),
        (lambda: InfiniteKernel("relu", (3,)).fluctuation(np.eye(2), ROWS), "shape"),
    ],
)
def test_refusals(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
