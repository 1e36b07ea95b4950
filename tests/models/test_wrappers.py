"""Functions as models, differences and unbiased models: against hand work, JAX and each other."""

import json
import pickle
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from penchant import (
    DiagonalNet,
    FunctionModel,
    GradientDescent,
    ParameterFlow,
    Regression,
    Steps,
    train,
)
from penchant.description import describe
from penchant.lab import double_precision
from penchant.measures import tangent_kernel
from penchant.models import Difference, ProductNet, Reparametrized, Separable, Unbiased, two_layer
from penchant.models.two_layer_nets import ACTIVATIONS
from penchant.problems import sparse_regression
from refusals import refusals

D = 4
rng = np.random.default_rng(0)
X, residual = rng.standard_normal((6, D)), rng.standard_normal(6)
SHAPE = np.array([0.7, -1.2, 1.5, 0.9])
U, V = rng.standard_normal((2, D))


def cube(w, x):
    return x @ (w[:D] ** 3 - w[D:] ** 3)


def sinh_map(w):
    return jnp.sinh(w)


MODELS = {
    "function": FunctionModel(cube, np.tile(SHAPE, 2), homogeneity=3),
    "relu": two_layer(5, alpha=1.3),
    "softplus with biases": two_layer(5, alpha=0.4, activation="softplus", seed=2, bias=True),
    "difference": Difference(two_layer(5, alpha=1.3, activation="quadratic")),
    "difference of nets": Difference(DiagonalNet(3, alpha=0.8, shape=SHAPE)),
    "difference of products": Difference(ProductNet(U, V)),
    "difference of maps": Difference(Reparametrized(sinh_map, 0.3)),
    "difference of unbiased": Difference(Unbiased(ProductNet(U, V))),
    "unbiased": Unbiased(two_layer(5, alpha=1.3, activation="tanh")),
    "unbiased net": Unbiased(DiagonalNet(3, alpha=0.8, signed=False)),
    "unbiased product": Unbiased(ProductNet(U, V)),
    "unbiased map": Unbiased(Reparametrized(sinh_map, 0.3, signed=False)),
}


@pytest.fixture(params=list(MODELS))
def model(request):
    return MODELS[request.param]


def somewhere(model, seed=1):
    start = model.start(D)
    return start + 0.3 * np.random.default_rng(seed).standard_normal(len(start))


def test_jacobians_are_those_of_central_differences(model):
    w, h = somewhere(model), 1e-5
    steps = h * np.eye(len(w))
    slopes = [(model.predict(w + s, X) - model.predict(w - s, X)) / (2 * h) for s in steps]
    np.testing.assert_allclose(model.jacobian(w, X), np.array(slopes).T, atol=1e-7)
    other = model.jacobian(somewhere(model, 2), X)  # control: elsewhere they differ
    assert np.abs(other - np.array(slopes).T).max() > 1e-3


def test_pullbacks_are_jacobians_transposed(model):
    w = somewhere(model)
    pulled = model.pullback(w, X, residual)
    np.testing.assert_allclose(pulled, residual @ model.jacobian(w, X), rtol=1e-12, atol=1e-13)
    assert pulled.dtype == np.float64
    assert np.abs(pulled - model.jacobian(w, X).sum(axis=0)).max() > 1e-2


def test_models_can_be_traced_by_jax(model):
    w = somewhere(model)
    with double_precision():
        value, gradient = jax.jit(jax.value_and_grad(lambda p: residual @ model.predict(p, X)))(w)
    np.testing.assert_allclose(gradient, model.pullback(w, X, residual), rtol=1e-10, atol=1e-12)
    assert float(value) == pytest.approx(float(residual @ model.predict(w, X)), rel=1e-10)
    assert float(value) != pytest.approx(float(residual @ model.predict(1.1 * w, X)), rel=1e-3)


def test_double_precision_does_not_leak_into_the_user_s_program():
    model = MODELS["unbiased"]
    model.predict(model.start(D), X)
    gradient = jax.jit(jax.grad(lambda p: model.predict(p, X).sum()))(model.start(D))
    assert gradient.dtype == jnp.float32


@pytest.mark.parametrize("name", [n for n, m in MODELS.items() if isinstance(m, Separable)])
def test_separable_wrappers_know_their_second_derivatives(name):
    model = MODELS[name]
    w = somewhere(model)
    with double_precision():
        hessian = jax.jit(jax.hessian(lambda p: residual @ model.predict(p, X)))(w)
    found = model.curvature(w, X, residual)
    np.testing.assert_allclose(found, hessian, rtol=1e-9, atol=1e-10)
    assert np.abs(found).max() > 1e-2
    moved = model.change(model.start(D), w - model.start(D))
    plain = model.predictor(w) - model.predictor(model.start(D))
    np.testing.assert_allclose(moved, plain, rtol=1e-10, atol=1e-12)


def by_hand(w, x, width, sigma, slope, bias):
    """A two-layer net and its Jacobian, written out."""
    inner = w[: width * D].reshape(width, D)
    outer, rest = w[width * D : width * (D + 1)], w[width * (D + 1) :]
    z = x @ inner.T + (rest[:width] if bias else 0.0)
    active = outer * slope(z)
    blocks = [(active[:, :, None] * x[:, None, :]).reshape(len(x), -1), sigma(z)]
    blocks += [active, np.ones((len(x), 1))] if bias else []
    return sigma(z) @ outer + (rest[-1] if bias else 0.0), np.concatenate(blocks, axis=1)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    ("activation", "sigma", "slope"),
    [
        ("relu", lambda z: np.maximum(z, 0), lambda z: (z > 0).astype(float)),
        ("quadratic", np.square, lambda z: 2 * z),
        ("softplus", lambda z: np.logaddexp(0, z), lambda z: 1 / (1 + np.exp(-z))),
    ],
)
def test_two_layer_nets_are_what_they_say(activation, sigma, slope, bias):
    net = two_layer(5, alpha=2.0, activation=activation, bias=bias)
    w = somewhere(net)
    f, J = by_hand(w, X, 5, sigma, slope, bias)
    np.testing.assert_allclose(net.predict(w, X), f, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(net.jacobian(w, X), J, rtol=1e-13, atol=1e-14)
    wrong = by_hand(w, X, 5, np.tanh, slope, bias)[0]
    assert np.abs(wrong - f).max() > 0.1


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
def test_two_layer_degrees(activation):
    net, c = two_layer(5, alpha=1.0, activation=activation), 1.7
    w = somewhere(net)
    scaled, f = net.predict(c * w, X), net.predict(w, X)
    if net.homogeneity is not None:
        np.testing.assert_allclose(scaled, c**net.homogeneity * f, rtol=1e-12)
        assert np.abs(scaled - c ** (net.homogeneity + 1) * f).max() > 0.1
    else:
        assert all(np.abs(scaled - c**k * f).max() > 1e-2 for k in range(6))
    assert two_layer(5, alpha=1.0, activation=activation, bias=True).homogeneity is None


def test_the_start_of_a_net_scales_with_alpha():
    small, large = (two_layer(3, alpha=a, seed=7).start(D) for a in (1.0, 5.0))
    np.testing.assert_allclose(large, 5 * small)
    np.testing.assert_allclose(two_layer(3, log_alpha=np.log(5.0), seed=7).start(D), large)
    assert np.abs(two_layer(3, alpha=1.0, seed=8).start(D) - small).max() > 0.1
    wide = two_layer(20_000, alpha=1.0).start(D)
    assert wide[: 20_000 * D].var() == pytest.approx(1 / D, rel=0.02)
    assert wide[20_000 * D :].var() == pytest.approx(1 / 20_000, rel=0.05)


@pytest.mark.parametrize("depth", [2, 3])
def test_the_unbiased_model_of_w_is_a_difference(depth):
    net = DiagonalNet(depth, alpha=0.3, shape=SHAPE)  # W eq. (3) and (10)
    pair = Difference(DiagonalNet(depth, alpha=0.3, shape=SHAPE, signed=False))
    assert isinstance(pair, Separable)
    w = somewhere(net)
    for read in ("predictor", "slopes", "bends"):
        assert (getattr(pair, read)(w) == getattr(net, read)(w)).all()
    problem = sparse_regression(3, D, sparsity=1)
    ends = [train(m, problem, ParameterFlow()).predictor for m in (pair, net)]
    np.testing.assert_allclose(*ends, rtol=1e-12, atol=1e-14)
    method, stop = GradientDescent(0.01), Steps(200)
    descents = [train(m, problem, method, stop=stop).predictor for m in (pair, net)]
    np.testing.assert_allclose(*descents, rtol=1e-12, atol=1e-14)
    wider = train(Difference(net), problem, ParameterFlow()).predictor  # control: four copies
    assert np.abs(wider - ends[1]).max() > 1e-3


@pytest.mark.parametrize("inner", [two_layer(5, alpha=3.0), ProductNet(U, V)])
def test_a_difference_starts_at_zero_with_twice_the_kernel(inner):
    pair = Difference(inner)
    start = pair.start(D)
    assert (pair.predict(start, X) == 0).all()
    assert pair.homogeneity == inner.homogeneity == 2
    K = tangent_kernel(inner, inner.start(D), X)
    np.testing.assert_allclose(tangent_kernel(pair, start, X), 2 * K, rtol=1e-12, atol=1e-14)
    assert np.abs(inner.predict(inner.start(D), X)).max() > 0.1  # control


@pytest.mark.parametrize("inner", [two_layer(5, alpha=3.0), ProductNet(U, V)])
def test_an_unbiased_model_starts_at_zero_with_the_same_kernel(inner):
    model = Unbiased(inner)
    start = model.start(D)
    assert (model.predict(start, X) == 0).all()
    assert model.homogeneity is None
    K = tangent_kernel(inner, start, X)
    np.testing.assert_allclose(tangent_kernel(model, start, X), K, rtol=1e-13)
    gap = model.predict(2 * start, X) - 4 * model.predict(start, X)
    np.testing.assert_allclose(gap, 3 * inner.predict(start, X), rtol=1e-12)  # 4 f - f


def test_training_unbiased_is_training_towards_shifted_targets():
    inner = ProductNet(U, V)
    problem = sparse_regression(3, D, sparsity=1)
    shift = problem.X @ (U * V)
    found = train(Unbiased(inner), problem, ParameterFlow())
    other = train(inner, Regression(problem.X, problem.y + shift), ParameterFlow())
    np.testing.assert_allclose(found.predictor, other.predictor - U * V, atol=1e-9)
    control = train(inner, problem, ParameterFlow())
    assert np.abs(found.predictor - control.predictor).max() > 1e-2


def test_an_unbiased_predictor_does_not_cancel():
    u, v = np.array([1e8]), np.array([3e7])
    step = np.array([2.0**-20, 2.0**-21])
    found = float(Unbiased(ProductNet(u, v)).predictor(np.array([1e8, 3e7]) + step)[0])
    a, b, p, q = (Fraction(float(z)) for z in (*u, *v, *step))
    exact = float(a * q + b * p + p * q)
    assert found == pytest.approx(exact, rel=1e-14)
    plain = (u + step[0]) * (v + step[1]) - u * v
    assert abs(plain[0] - exact) > 1e-3 * exact  # control: the plain difference is noise


def test_descriptions_are_json_and_survive_pickling(model):
    described = json.loads(json.dumps(describe(model)))
    if "map" not in str(described):
        again = pickle.loads(pickle.dumps(model))
        assert type(again) is type(model)
        assert describe(again) == described
        w = somewhere(model)
        assert (again.predict(w, X) == model.predict(w, X)).all()
    assert type(model).__name__ in str(model)


def test_descriptions_of_different_starts_differ():
    long = [describe(FunctionModel(cube, np.full(5000, c)), {}) for c in (1.0, 2.0, 1.0)]
    assert long[0] != long[1]
    assert long[0] == long[2]
    assert describe(MODELS["function"])["start"] == np.tile(SHAPE, 2).tolist()
    assert two_layer(3, alpha=1.0, seed=4).recipe["seed"] == 4


test_bad_input_is_refused_in_one_sentence = refusals(
    (lambda: FunctionModel("f", [1.0]), "function must be a JAX function .* got str"),
    (lambda: FunctionModel(cube, [np.nan]), "start must be finite"),
    (lambda: FunctionModel(cube, [1.0], homogeneity="2"), "homogeneity must be a finite"),
    (lambda: FunctionModel(cube, lambda d: [np.inf]).start(3), r"start\(3\) must be finite"),
    (lambda: FunctionModel(cube, [[1.0]]), "start must have 1 dimension"),
    (
        lambda: FunctionModel(cube, {"a": np.ones(2), "b": np.ones(2, int)}),
        "must be arrays of floating-point numbers, got int64",
    ),
    (
        lambda: FunctionModel(lambda w, x: x * w, np.ones(D)).predict(np.ones(D), X),
        r"one number per row of X, got shape \(6, 4\) for 6 rows",
    ),
    (
        lambda: FunctionModel(lambda w, x: x @ np.asarray(w), np.ones(D)).jacobian(SHAPE, X),
        "must be written with jax.numpy",
    ),
    (lambda: two_layer(0, alpha=1.0), "width must be at least 1, got 0"),
    (lambda: two_layer(3), "exactly one of alpha"),
    (lambda: two_layer(3, alpha=1.0, activation="rlu"), "unknown activation 'rlu'; did you"),
    (lambda: Difference(cube), "Difference: expected a Model, got function"),
    (lambda: Unbiased(None), "Unbiased: expected a Model, got NoneType"),
)
