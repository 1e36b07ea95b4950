"""Tangent kernels by two routes, their distance and predictors; alignment and ranks of kernels."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penchant import DiagonalNet, ParameterFlow, train
from penchant.measures import (
    effective_rank,
    kernel_alignment,
    kernel_distance,
    kernel_machine,
    participation_ratio,
    tangent_kernel,
)
from penchant.models import ProductNet
from penchant.problems import sparse_regression
from refusals import refusals

rng = np.random.default_rng(0)
X, X2 = rng.standard_normal((6, 4)), rng.standard_normal((3, 4))
SHAPE = np.array([0.7, -1.2, 1.5, 0.9])
ONE = settings(deadline=None, derandomize=True, max_examples=40)
SIZES = st.tuples(st.integers(1, 6), st.integers(1, 6))


def relu(params, x):
    """A two-layer ReLU net with a pytree of parameters."""
    return jnp.maximum(x @ params["inner"], 0) @ params["outer"]


def relu_params(seed, scale=1.0):
    local = np.random.default_rng(seed)
    return {
        "inner": scale * local.standard_normal((4, 5)),
        "outer": scale * local.standard_normal(5),
    }


def relu_kernel(params, x, x2):
    """The tangent kernel of `relu` by hand."""
    h, h2 = np.maximum(x @ params["inner"], 0), np.maximum(x2 @ params["inner"], 0)
    on, on2 = (h > 0) * params["outer"], (h2 > 0) * params["outer"]
    return h @ h2.T + (on @ on2.T) * (x @ x2.T)


def test_depth_two_has_eight_alpha_squared():
    net = DiagonalNet(2, alpha=0.3)
    K = tangent_kernel(net, net.start(4), X, X2)
    np.testing.assert_allclose(K, 8 * 0.3**2 * X @ X2.T, rtol=1e-13)  # W section 4
    assert np.abs(K - 4 * 0.3**2 * X @ X2.T).max() > 0.1


@pytest.mark.parametrize(
    "net", [DiagonalNet(3, alpha=0.8, shape=SHAPE), ProductNet(SHAPE, SHAPE[::-1])]
)
def test_a_model_and_its_function_have_one_kernel(net):
    params = net.start(4) + 0.1
    function = tangent_kernel(net.predict, params, X, X2)
    np.testing.assert_allclose(tangent_kernel(net, params, X, X2), function, rtol=1e-12)
    assert np.abs(tangent_kernel(net, 1.1 * params, X, X2) - function).max() > 1e-2


def test_a_pytree_of_parameters_is_differentiated_in_double_precision():
    params = relu_params(1)
    K = tangent_kernel(relu, params, X, X2)
    assert K.dtype == np.float64
    np.testing.assert_allclose(K, relu_kernel(params, X, X2), rtol=1e-12)
    inner_only = (
        relu_kernel(params, X, X2)
        - np.maximum(X @ params["inner"], 0) @ np.maximum(X2 @ params["inner"], 0).T
    )
    assert np.abs(K - inner_only).max() > 0.1


@pytest.mark.parametrize("depth", [2, 3, 5])
def test_kernels_scale_with_the_start(depth):
    alpha = 1.7
    K0, K = (
        tangent_kernel(net, net.start(4), X)
        for net in (DiagonalNet(depth, alpha=a, shape=SHAPE) for a in (1.0, alpha))
    )
    np.testing.assert_allclose(K, alpha ** (2 * (depth - 1)) * K0, rtol=1e-12)  # W section 3
    assert np.abs(K - alpha ** (2 * depth) * K0).max() > 0.1
    relu_scaled = tangent_kernel(relu, relu_params(2, alpha), X)
    np.testing.assert_allclose(relu_scaled, alpha**2 * tangent_kernel(relu, relu_params(2), X))


@ONE
@given(seed=st.integers(0, 10**6), size=SIZES, depth=st.integers(2, 6), scale=st.floats(0.1, 10))
def test_kernels_are_symmetric_and_positive(seed, size, depth, scale):
    local = np.random.default_rng(seed)
    x = local.standard_normal(size)
    net = DiagonalNet(depth, alpha=scale)
    params = scale * local.standard_normal(2 * size[1])
    K = tangent_kernel(net, params, x)
    np.testing.assert_allclose(K, K.T, rtol=1e-12, atol=1e-12 * np.abs(K).max())
    assert np.linalg.eigvalsh(K).min() >= -1e-12 * np.abs(K).max()
    lopsided = tangent_kernel(net, params, x, x + 1)  # control: two different sets
    assert size[0] == 1 or np.abs(lopsided - lopsided.T).max() > 0


@ONE
@given(
    seed=st.integers(0, 10**6),
    size=SIZES,
    powers=st.tuples(st.integers(-150, 150), st.integers(-150, 150)),
)
def test_kernel_distance_is_one_minus_the_cosine_at_every_scale(seed, size, powers):
    local = np.random.default_rng(seed)
    A, B = local.standard_normal(size), local.standard_normal(size)
    cosine = np.sum(A * B) / np.sqrt(np.sum(A**2) * np.sum(B**2))
    distance = kernel_distance(A * 10.0 ** powers[0], B * 10.0 ** powers[1])
    assert 0 <= distance <= 2
    assert distance == pytest.approx(1 - cosine, abs=1e-12)
    assert kernel_distance(A * 10.0 ** powers[0], A * 10.0 ** powers[0]) == 0
    assert kernel_distance(A, 10.0 ** powers[1] * A) < 1e-30
    assert kernel_distance(A, -A) == pytest.approx(2)


def test_the_kernel_distance_of_close_kernels_keeps_its_digits():
    A, B = np.array([[1.0, 0.0]]), np.array([[1.0, 1e-9]])
    assert kernel_distance(A, B) == pytest.approx(0.5e-18, rel=1e-6)
    assert 1 - 1 / np.sqrt(1 + 1e-18) == 0  # control: the plain formula has lost them


def test_kernel_distance_at_the_ends_of_float64():
    K = np.array([[2.0, 1.0], [1.0, 3.0]])
    assert kernel_distance(1e307 * K, 1e-307 * K) < 1e-30
    assert kernel_distance(5e-324 * np.eye(2), np.eye(2)) < 1e-30


def test_the_kernel_predictor_is_the_nearest_in_the_parameters():
    problem = sparse_regression(3, 4, sparsity=1)
    net = DiagonalNet(3, start=(SHAPE, 0.5 * SHAPE[::-1]))
    start = net.start(4)
    J = net.jacobian(start, problem.X)
    move = np.linalg.pinv(J) @ (problem.y - net.predict(start, problem.X))
    slopes = net.slopes(start)
    expected = net.predictor(start) + (slopes * move.reshape(2, 4)).sum(axis=0)
    found = kernel_machine(net, problem).predictor
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    np.testing.assert_allclose(problem.X @ found, problem.y, rtol=1e-10)
    plain = np.linalg.pinv(problem.X) @ problem.y  # control: without the bias and the weights
    assert np.abs(found - plain).max() > 1e-2


def test_training_from_a_large_start_ends_at_the_kernel_predictor():
    problem = sparse_regression(3, 8, sparsity=2, seed=4)
    shape = rng.uniform(0.5, 2, 8)
    gaps = []
    for alpha in (10.0, 20.0):
        net = DiagonalNet(2, alpha=alpha, shape=shape)
        end = train(net, problem, ParameterFlow()).predictor
        gaps.append(np.abs(end - kernel_machine(net, problem).predictor).max())
    assert gaps[0] < 1e-3
    assert gaps[0] / gaps[1] == pytest.approx(16, rel=0.1)  # W eq. 6: the next order is alpha^-4


test_bad_input_is_refused_in_one_sentence = refusals(
    (lambda: kernel_distance(np.eye(2), np.eye(3)), "one shape, got"),
    (lambda: kernel_distance(np.zeros((2, 2)), np.eye(2)), "K0 must not be zero"),
    (lambda: kernel_distance(np.ones(3), np.ones(3)), "K0 must have 2 dimension"),
    (lambda: tangent_kernel("net", [1.0], X), "a Model, a JAX function .* got str"),
    (lambda: tangent_kernel(lambda p, x: x * p, 2.0, X), "one number per row of x"),
    (lambda: tangent_kernel(relu, relu_params(1), [[np.inf] * 4]), "x must be finite"),
    (lambda: tangent_kernel(relu, relu_params(1), 3.0), "one sample per row"),
    (lambda: tangent_kernel(DiagonalNet(2, alpha=1), "w", X), "parameters must"),
    (lambda: kernel_machine(DiagonalNet(2, alpha=1), X), "a matrix problem, got ndarray"),
)


SEEDS = st.integers(0, 10**6)
TRIPLES = st.tuples(st.integers(2, 8), st.integers(1, 10), st.integers(1, 3))


def features(seed, samples, width):
    return np.random.default_rng(seed).standard_normal((samples, width))


@ONE
@given(seed=SEEDS, sizes=TRIPLES, power=st.sampled_from([-300, -20, 0, 20, 300]))
def test_alignment_is_the_cosine_with_the_kernel_of_the_labels(seed, sizes, power):
    samples, width, outputs = sizes
    F, Y = features(seed, samples, width), features(seed + 1, samples, outputs)
    K, L = F @ F.T, Y @ Y.T
    expected = np.trace(K @ L) / np.sqrt(np.trace(K @ K) * np.trace(L @ L))
    assert kernel_alignment(10.0**power * K, Y) == pytest.approx(expected, rel=1e-10)
    assert kernel_alignment(L, 10.0**power * Y) == pytest.approx(1)
    wrong = np.trace(K @ L) / (np.trace(K) * np.trace(L))  # control: not the Frobenius norms
    assert min(width, outputs) == 1 or abs(kernel_alignment(K, Y) - wrong) > 1e-6


@ONE
@given(seed=SEEDS, sizes=TRIPLES, shift=st.floats(-5, 5))
def test_centred_alignment_is_that_of_centred_features(seed, sizes, shift):
    samples, width, outputs = sizes
    F, Y = features(seed, samples, width), features(seed + 1, samples, outputs)
    F0, Y0 = F - F.mean(axis=0), Y - Y.mean(axis=0)
    expected = kernel_alignment(F0 @ F0.T, Y0)
    assert kernel_alignment((F + shift) @ (F + shift).T, Y + shift, centred=True) == (
        pytest.approx(expected, rel=1e-6, abs=1e-9)
    )


def test_one_vector_of_labels_is_a_column():
    F, y = features(1, 5, 4), features(2, 5, 1)
    assert kernel_alignment(F @ F.T, y[:, 0]) == kernel_alignment(F @ F.T, y)


@ONE
@given(seed=SEEDS, sizes=TRIPLES, power=st.sampled_from([-300, 0, 300]))
def test_ranks_are_read_off_the_singular_values_of_the_features(seed, sizes, power):
    F = features(seed, *sizes[:2])
    K, squares = F @ F.T, np.linalg.svd(F, compute_uv=False) ** 2
    shares = squares / squares.sum()
    entropy = -(shares * np.log(shares)).sum()
    assert effective_rank(10.0**power * K) == pytest.approx(np.exp(entropy), rel=1e-8)
    assert participation_ratio(10.0**power * K) == pytest.approx(1 / (shares**2).sum(), rel=1e-8)
    assert participation_ratio(K) <= effective_rank(K) * (1 + 1e-10)
    assert effective_rank(K) <= min(F.shape) * (1 + 1e-8)


def test_ranks_of_known_spectra():
    for measure in (effective_rank, participation_ratio):
        assert measure(np.eye(7)) == pytest.approx(7)
        assert measure(np.ones((5, 5))) == pytest.approx(1)
        assert measure(np.diag([1.0, 1.0, 0.0, 0.0])) == pytest.approx(2)
    spread = np.diag([3.0, 1.0])  # 16/10, and exp of the entropy of (3/4, 1/4) = 4 / 3^(3/4)
    assert participation_ratio(spread) == pytest.approx(1.6)
    assert effective_rank(spread) == pytest.approx(4 / 3**0.75)


def test_rounding_of_float32_kernels_is_no_error():
    F = features(3, 30, 8).astype(np.float32)
    K = F @ F.T
    K[0, 1] += 1e-6
    exact = F.astype(float) @ F.astype(float).T
    assert effective_rank(K) == pytest.approx(effective_rank(exact), rel=1e-4)


test_wrong_input_is_told = refusals(
    (lambda: kernel_alignment(np.eye(3), np.ones(2)), "K has 3 samples but y has 2"),
    (lambda: kernel_alignment(np.eye(3), np.zeros(3)), "y must not be zero"),
    (lambda: kernel_alignment(np.eye(3), np.ones(3), centred=True), "y must not be constant"),
    (lambda: kernel_alignment(np.ones((2, 2)), [1, -1], centred=True), "K must not be const"),
    (lambda: kernel_alignment(np.ones((2, 3)), [1, -1]), r"square, got shape \(2, 3\)"),
    (lambda: effective_rank(np.zeros((2, 2))), "K must not be zero"),
    (lambda: effective_rank(np.diag([1.0, -0.5])), "semidefinite, got the eigenvalue -0.5"),
    (lambda: participation_ratio([[1, 2], [0, 1]]), "K must be symmetric"),
)
