"""ReLU nets of any depth and the data on the circle, against loops, integrals and known values."""

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from penchant.lab import double_precision
from penchant.models import Difference, relu_net
from penchant.models.relu_nets import ReluFunction
from penchant.problems import circle_teacher
from penchant.problems.circle import mean_square
from refusals import refusals

X = np.random.default_rng(1).standard_normal((4, 3))


def by_loops(parameters, X, depth, width):
    """The same net, one unit after another."""
    found = []
    for x in X:
        hidden, weights = list(x), iter(parameters)
        for layer in range(depth):
            rows = width if layer < depth - 1 else 1
            sums = [sum(next(weights) * h for h in hidden) for _ in range(rows)]
            hidden = sums if layer == depth - 1 else [max(s, 0.0) for s in sums]
        found.append(hidden[0])
    return np.array(found)


@pytest.mark.parametrize("depth", [1, 2, 3, 5])
def test_outputs_against_loops(depth):
    model = relu_net(depth, 4, alpha=1.3, seed=2)
    w = model.start(3)
    assert len(w) == (3 if depth == 1 else 4 * 3 + 16 * (depth - 2) + 4)
    np.testing.assert_allclose(model.predict(w, X), by_loops(w, X, depth, 4), atol=1e-13)


@settings(deadline=None, derandomize=True, max_examples=6)
@given(st.integers(1, 4), st.integers(0, 99), st.booleans())
def test_factors_hold_the_jacobian(depth, seed, unbiased):
    model = relu_net(depth, 3, alpha=1.0, seed=seed, unbiased=unbiased)
    w = model.start(3) + 0.3 * np.random.default_rng(seed).standard_normal(len(model.start(3)))
    with double_precision():
        pairs = [tuple(map(np.asarray, pair)) for pair in model.function.factors(w, X)]
    rows = [np.einsum("cno,cni->ncoi", b, a) for a, b in pairs]
    copies = rows[0].shape[1]
    flat = np.concatenate([r.reshape(len(X), copies, -1) for r in rows], axis=2)
    np.testing.assert_allclose(flat.reshape(len(X), -1), model.jacobian(w, X), atol=1e-12)


def test_the_unbiased_net_is_the_difference_of_two():
    single, double = relu_net(3, 4, alpha=0.7), relu_net(3, 4, alpha=0.7, unbiased=True)
    pair = Difference(single)
    np.testing.assert_array_equal(double.start(3), pair.start(3))
    np.testing.assert_array_equal(double.predict(double.start(3), X), 0)
    w = np.random.default_rng(0).standard_normal(len(double.start(3)))
    np.testing.assert_allclose(double.predict(w, X), pair.predict(w, X), atol=1e-13)
    assert np.abs(single.predict(single.start(3), X)).max() > 0.01


@pytest.mark.parametrize("unbiased", [False, True])
def test_its_homogeneity_is_its_depth(unbiased):
    model = relu_net(3, 4, alpha=1.0, unbiased=unbiased)
    assert model.homogeneity == 3
    w = np.random.default_rng(0).standard_normal(len(model.start(3)))
    np.testing.assert_allclose(model.predict(2 * w, X), 8 * model.predict(w, X), rtol=1e-12)
    assert not np.allclose(model.predict(2 * w, X), 4 * model.predict(w, X))


@pytest.mark.parametrize("kind", ["he_uniform", "gaussian"])
def test_starts_have_variance_two_over_inputs(kind):
    w = relu_net(3, 300, alpha=2.0, start=kind).start(50)
    first, middle = w[: 300 * 50], w[300 * 50 : 300 * 350]
    for part, inputs in ((first, 50), (middle, 300)):
        assert np.var(part) == pytest.approx(4 * 2 / inputs, rel=0.05)
    bounded = np.abs(first).max() <= 2 * np.sqrt(6 / 50)
    assert bounded == (kind == "he_uniform")


def test_relative_layers_of_product_one_keep_the_output():
    plain, scaled = relu_net(3, 5, alpha=1.0), relu_net(3, 5, alpha=1.0, layers=(4.0, 0.5, 0.5))
    outputs = [model.predict(model.start(3), X) for model in (plain, scaled)]
    np.testing.assert_allclose(*outputs, rtol=1e-12)
    kernels = [J @ J.T for J in (m.jacobian(m.start(3), X) for m in (plain, scaled))]
    assert not np.allclose(*kernels, rtol=0.1)


def test_alpha_as_a_logarithm_equality_and_pickles():
    a, b = relu_net(2, 3, alpha=0.5), relu_net(2, 3, log_alpha=np.log(0.5))
    np.testing.assert_allclose(a.start(2), b.start(2), rtol=1e-15)
    assert a.function == relu_net(2, 3, alpha=9.0, seed=5).function == ReluFunction(2, 3, False)
    assert a.function != relu_net(2, 3, alpha=0.5, unbiased=True).function
    again = pickle.loads(pickle.dumps(a))
    np.testing.assert_array_equal(again.predict(a.start(3), X), a.predict(a.start(3), X))
    assert again == a
    assert again.recipe["depth"] == 2


test_wrong_arguments_are_refused = refusals(
    (lambda: relu_net(0, 3, alpha=1.0), "relu_net: depth must be at least 1, got 0"),
    (lambda: relu_net(2, 2.5, alpha=1.0), "relu_net: width must be an integer"),
    (lambda: relu_net(2, 3, alpha=1.0, start="xavier"), "relu_net: unknown start"),
    (lambda: relu_net(2, 3, alpha=1.0, layers=(1, 2, 3)), r"one factor per layer \(2\), got 3"),
    (lambda: relu_net(2, 3, alpha=1.0, layers=(1, -2)), "relu_net: layers must be > 0"),
    (lambda: relu_net(2, 3, alpha=1.0, log_alpha=0.0), "relu_net: give exactly one of"),
)


@settings(deadline=None, derandomize=True, max_examples=8)
@given(st.integers(0, 10**6), st.integers(1, 5))
def test_the_mean_square_of_a_teacher_is_the_integral(seed, units):
    rng = np.random.default_rng(seed)
    A, b = rng.standard_normal((units, 2)), rng.standard_normal(units)

    def square(angle):
        x = np.array([np.cos(angle), np.sin(angle)])
        return float(np.maximum(A @ x, 0) @ b) ** 2 / (2 * np.pi)

    kinks = np.mod(np.arctan2(A[:, 1], A[:, 0])[:, None] + np.array([0.5, 1.5]) * np.pi, 2 * np.pi)
    ends = np.sort([0, 2 * np.pi, *kinks.ravel()])
    whole = sum(quad(square, *pair)[0] for pair in itertools.pairwise(ends))
    assert mean_square(A, b) == pytest.approx(whole, rel=1e-9)


def test_circle_data():
    data = circle_teacher(seed=4)
    assert data.training.samples == 10
    assert data.A.shape == (3, 2)
    np.testing.assert_allclose(np.linalg.norm(data.training.X, axis=1), 1)
    np.testing.assert_allclose(data.outputs_at(data.training.X), data.training.y)
    assert data.test_error(np.zeros(1000)) == pytest.approx(1, abs=1e-4)  # its mean square
    assert data.test_error(data.test.y) == 0
    assert data.test_error(data.test.y + 0.1) == pytest.approx(0.01)
    assert not np.array_equal(circle_teacher(seed=5).training.y, data.training.y)


test_circle_refuses = refusals(
    (lambda: circle_teacher(0), "circle_teacher: samples must be at least 1, got 0"),
    (lambda: circle_teacher().test_error([1.0] * 3), r"one number per point .* \(1000\), got 3"),
)
