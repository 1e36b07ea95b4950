"""Probes: tangent kernels by two routes, kernel distance, kernel predictors."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit import (
    DiagonalNet,
    ParameterFlow,
    ProductNet,
    kernel_distance,
    kernel_predictor,
    sparse_regression,
    tangent_kernel,
    train,
)

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


# --- tangent kernels ------------------------------------------------------------------------


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


# --- distance of kernels --------------------------------------------------------------------


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


# --- where a frozen kernel leads ------------------------------------------------------------


def test_the_kernel_predictor_is_the_nearest_in_the_parameters():
    problem = sparse_regression(3, 4, sparsity=1)
    net = DiagonalNet(3, start=(SHAPE, 0.5 * SHAPE[::-1]))
    start = net.start(4)
    J = net.jacobian(start, problem.X)
    move = np.linalg.pinv(J) @ (problem.y - net.predict(start, problem.X))
    slopes = net.slopes(start)
    expected = net.predictor(start) + (slopes * move.reshape(2, 4)).sum(axis=0)
    found = kernel_predictor(net, problem.X, problem.y)
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
        gaps.append(np.abs(end - kernel_predictor(net, problem.X, problem.y)).max())
    assert gaps[0] < 1e-3
    assert gaps[0] / gaps[1] == pytest.approx(16, rel=0.1)  # W eq. 6: the next order is alpha^-4


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: kernel_distance(np.eye(2), np.eye(3)), "one shape, got"),
        (lambda: kernel_distance(np.zeros((2, 2)), np.eye(2)), "K0 must not be zero"),
        (lambda: kernel_distance(np.eye(2), [[np.nan]]), "K1 must be finite"),
        (lambda: kernel_distance(np.ones(3), np.ones(3)), "K0 must have 2 dimension"),
        (lambda: tangent_kernel("net", [1.0], X), "a Model, a JAX function .* got str"),
        (lambda: tangent_kernel(lambda p, x: x * p, 2.0, X), "one number per row of x"),
        (lambda: tangent_kernel(relu, relu_params(1), [[np.inf] * 4]), "x must be finite"),
        (lambda: tangent_kernel(relu, relu_params(1), 3.0), "one sample per row"),
        (lambda: tangent_kernel(DiagonalNet(2, alpha=1), "w", X), "parameters must"),
        (lambda: kernel_predictor(relu, X, np.ones(6)), "such as DiagonalNet, got function"),
        (lambda: kernel_predictor(DiagonalNet(2, alpha=1), X, np.ones(5)), "X has 6 rows"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence) as refused:
        make()
    assert "\n" not in str(refused.value)
