"""Models: derivatives against JAX, homogeneity, starts, and what is refused."""

import math
from fractions import Fraction

import jax
import numpy as np
import pytest

from penchant import (
    DiagonalNet,
    Factorization,
    FunctionModel,
    GradientDescent,
    ParameterFlow,
    Steps,
    train,
)
from penchant.lab import double_precision
from penchant.models import (
    DeepFactorization,
    DiagonalLayers,
    ProductNet,
    Reparametrized,
    SymmetricFactorization,
    linearize,
    two_layer,
)
from penchant.problems import sparse_regression
from refusals import refusals

D = 5
rng = np.random.default_rng(0)
SHAPE = rng.uniform(0.5, 2, D) * rng.choice([-1, 1], D)

# a new model joins every test below by joining this list
OF_THE_SOURCES = {
    "depth 2": DiagonalNet(2, alpha=0.7),
    "depth 3 with shape": DiagonalNet(3, alpha=0.7, shape=SHAPE),
    "depth 5": DiagonalNet(5, mu=0.3),
    "depth 4 unsigned": DiagonalNet(4, log_alpha=-0.2, signed=False),
    "biased": DiagonalNet(3, start=(SHAPE, 2 * SHAPE[::-1])),
    "unsigned biased": DiagonalNet(2, start=SHAPE, signed=False),
    "product": ProductNet(SHAPE, SHAPE[::-1]),
    "two layers": DiagonalLayers([SHAPE, SHAPE[::-1]]),
    "four layers": DiagonalLayers(
        rng.uniform(0.5, 2, (4, D)), negative=rng.uniform(-2, -0.5, (4, D))
    ),
}
MODELS = OF_THE_SOURCES | {
    "linearized": linearize(DiagonalNet(3, alpha=0.7, shape=SHAPE)),
    "reparametrized": Reparametrized(lambda w: w + w**3, SHAPE),
    "reparametrized, two arguments": Reparametrized(lambda u, v: u * v**2, (SHAPE, SHAPE[::-1])),
}


@pytest.fixture(params=MODELS)
def model(request):
    return MODELS[request.param]


@pytest.fixture(params=OF_THE_SOURCES)
def homogeneous(request):
    return OF_THE_SOURCES[request.param]


@pytest.fixture
def point(model):
    """Parameters in general position, samples and residuals."""
    local = np.random.default_rng(1)
    parameters = model.start(D) + 0.3 * local.standard_normal(model.start(D).shape)
    return parameters, local.standard_normal((4, D)), local.standard_normal(4)


def test_pullback_is_the_vector_jacobian_product(model, point):
    parameters, X, residual = point
    with double_precision():
        slope = jax.jit(jax.grad(lambda w: model.predict(w, X) @ residual))
        expected = np.asarray(slope(parameters))
    np.testing.assert_allclose(model.pullback(parameters, X, residual), expected, rtol=1e-12)
    wrong = model.pullback(parameters, X, -residual)
    assert np.abs(wrong - expected).max() > 1e-3


def test_jacobian_and_curvature_are_the_derivatives(model, point):
    parameters, X, residual = point
    with double_precision():
        jacobian = jax.jit(jax.jacrev(lambda w: model.predict(w, X)))(parameters)
        hessian = jax.jit(jax.hessian(lambda w: model.predict(w, X) @ residual))(parameters)
    np.testing.assert_allclose(model.jacobian(parameters, X), jacobian, rtol=1e-12, atol=1e-14)
    curvature = model.curvature(parameters, X, residual)
    np.testing.assert_allclose(curvature, hessian, rtol=1e-12, atol=1e-13)
    assert (np.abs(curvature).max() > 1e-3) != (model is MODELS["linearized"])


def test_predictions_are_homogeneous(homogeneous):
    model, local = homogeneous, np.random.default_rng(1)
    parameters = model.start(D) + 0.3 * local.standard_normal(model.start(D).shape)
    X = local.standard_normal((4, D))
    scaled = model.predict(1.7 * parameters, X)
    np.testing.assert_allclose(
        scaled, 1.7**model.homogeneity * model.predict(parameters, X), rtol=1e-12
    )
    wrong = 1.7 ** (model.homogeneity + 1) * model.predict(parameters, X)
    assert np.abs(scaled - wrong).max() > 1e-3


def exact_predictor(model, parameters):
    """The predictor in rational arithmetic, for the models of the list."""
    table = [[Fraction(w) for w in row] for row in parameters.reshape(model.copies, -1)]
    if isinstance(model, DiagonalLayers):
        up, down = table[: model.depth], table[model.depth :]
        return [
            math.prod(p) - math.prod(m)
            for p, m in zip(zip(*up, strict=True), zip(*down, strict=True), strict=True)
        ]
    if isinstance(model, ProductNet):
        return [u * v for u, v in zip(*table, strict=True)]
    powers = [[w**model.depth for w in row] for row in table]
    if not model.signed:
        return powers[0]
    return [p - m for p, m in zip(*powers, strict=True)]


def test_change_does_not_cancel_far_from_zero(homogeneous):
    model = homogeneous
    start = 1e6 * model.start(D)
    displacement = np.random.default_rng(2).standard_normal(start.shape) * 2.0**-10
    after = [Fraction(a) + Fraction(b) for a, b in zip(start, displacement, strict=True)]
    before = exact_predictor(model, start)
    exact = exact_predictor(model, np.array(after, dtype=object))
    exact = np.array([float(b - a) for a, b in zip(before, exact, strict=True)])
    close = np.abs(model.change(start, displacement) - exact).max() / np.abs(exact).max()
    plain = model.predictor(start + displacement) - model.predictor(start)
    control = np.abs(plain - exact).max() / np.abs(exact).max()
    assert close < 1e-13
    assert control > 100 * close


def test_a_reparametrized_model_does_not_cancel_either():
    model = Reparametrized(lambda w: w + w**3, 1e5 * SHAPE, signed=False)
    start, step = model.start(D), 2.0**-10 * SHAPE
    exact = [float(Fraction(b) * (1 + 3 * Fraction(a) ** 2 + 3 * Fraction(a) * Fraction(b)
             + Fraction(b) ** 2)) for a, b in zip(start, step, strict=True)]  # fmt: skip
    np.testing.assert_allclose(model.change(start, step), exact, rtol=1e-13)
    plain = model.predictor(start + step) - model.predictor(start)
    assert np.abs(plain / exact - 1).max() > 1e-11


def test_a_reparametrized_model_is_the_net_it_spells_out():
    problem = sparse_regression(samples=3, dimension=D, sparsity=2, seed=0)
    net, spelled = DiagonalNet(2, alpha=0.3), Reparametrized(lambda w: w**2, 0.3)
    for flow, stop in ((ParameterFlow(), None), (GradientDescent(1e-3), Steps(50))):
        one, other = (train(m, problem, flow, stop=stop).predictor for m in (net, spelled))
        np.testing.assert_allclose(one, other, atol=1e-9)
    cubic = train(Reparametrized(lambda w: w**3, 0.3), problem, flow, stop=stop)
    assert np.abs(cubic.predictor - other).max() > 1e-3


def test_the_signed_net_starts_at_the_zero_predictor():
    net = DiagonalNet(3, alpha=0.2, shape=SHAPE)
    assert (net.predictor(net.start(D)) == 0).all()
    unsigned = DiagonalNet(3, alpha=0.2, shape=SHAPE, signed=False)
    np.testing.assert_allclose(unsigned.predictor(unsigned.start(D)), (0.2 * SHAPE) ** 3)


def test_three_ways_to_give_the_scale():
    nets = [DiagonalNet(4, alpha=0.3), DiagonalNet(4, log_alpha=np.log(0.3))]
    nets.append(DiagonalNet(4, mu=0.3**4))
    for net in nets:
        np.testing.assert_allclose(net.start(2), 0.3, rtol=1e-15)
    assert nets[0].start(2)[0] == 0.3  # the given number itself, not exp(log)


def test_any_log_alpha_can_be_held_but_not_started_from():
    for log_alpha in (-4605.0, 690.0):
        net = DiagonalNet(2, log_alpha=log_alpha)
        assert net.log_alpha == log_alpha
        with pytest.raises(ValueError, match="DualFlow"):
            net.start(3)


test_bad_input_is_refused_in_one_sentence = refusals(
    (lambda: DiagonalNet(), "exactly one of alpha, log_alpha and mu, got none"),
    (lambda: DiagonalNet(2, alpha=0.1, mu=0.1), "exactly one .* got alpha and mu"),
    (lambda: DiagonalNet(2, alpha=0), "alpha must be > 0, got 0"),
    (lambda: DiagonalNet(2, alpha=-1.0), "alpha must be > 0, got -1"),
    (lambda: DiagonalNet(2, alpha=np.nan), "alpha must be a finite number"),
    (lambda: DiagonalNet(2, alpha="1"), "alpha must be a finite number"),
    (lambda: DiagonalNet(2, log_alpha=np.inf), "log_alpha must be a finite number"),
    (lambda: DiagonalNet(2, mu=-3), "mu must be > 0"),
    (lambda: DiagonalNet(1, alpha=1), "depth must be at least 2, got 1"),
    (lambda: DiagonalNet(2.5, alpha=1), "depth must be an integer >= 2, got 2.5"),
    (lambda: DiagonalNet(2, alpha=1, shape=[1, 0, 2]), "shape must have no zero"),
    (lambda: DiagonalNet(2, alpha=1, shape=[[1.0]]), "shape must have 1 dimension"),
    (lambda: DiagonalNet(2, alpha=1, shape=[1, np.nan]), "shape must be finite"),
    (lambda: DiagonalNet(2, alpha=1, shape=[1, 2]).start(3), "2 entries but .* 3 features"),
    (lambda: DiagonalNet(2, alpha=1, signed="no"), "signed must be True or False"),
    (lambda: DiagonalNet(2, alpha=1, start=([1], [2])), "start= already sets the scale"),
    (lambda: DiagonalNet(2, start=([1], [2]), shape=[1]), "start= already .* shape"),
    (lambda: DiagonalNet(2, start=[[1, 2]]), "start must be .*got 1 vectors"),
    (lambda: DiagonalNet(2, start=([1, 0], [1, 0])), "zeros at index 1"),
    (lambda: DiagonalNet(2, start=([1], [2])).start(2), "1 entries per copy .* 2 features"),
    (lambda: ProductNet([1, 2], [1]), "u has 2 entries but v has 1"),
    (lambda: ProductNet([1, 0], [1, 0]), "zeros at index 1"),
    (lambda: ProductNet([1, np.inf], [1, 0]), "u must be finite"),
    (lambda: ProductNet([1, 2], [1, 2]).start(3), "2 entries but the data have 3"),
)


def test_nets_that_differ_in_their_start_are_compiled_once():
    nets = [two_layer(3, alpha=alpha, seed=seed) for alpha, seed in ((1.0, 0), (2.0, 1))]
    assert nets[0].code == nets[1].code != two_layer(4, alpha=1.0).code
    assert nets[0]._compiled is nets[1]._compiled

    class Listed(list):  # a function without a hash
        def __call__(self, w, X):
            return self[0] * (X @ w)

    X, w = np.eye(2), np.ones(2)
    models = [FunctionModel(Listed([factor]), w) for factor in (2.0, 3.0)]
    assert [model.predict(w, X).tolist() for model in models] == [[2, 2], [3, 3]]


ALIKE = {
    "product": (
        ProductNet(np.ones(8), np.ones(8)),
        ProductNet(np.full(8, 2.0), np.ones(8)),
        DiagonalNet(2, alpha=0.7),
    ),
    "layers": (
        DiagonalLayers(np.ones((2, 4))),
        DiagonalLayers(np.full((2, 4), 2.0)),
        DiagonalLayers(np.ones((4, 2))),
    ),
    "diagonal": (DiagonalNet(3, alpha=0.7), DiagonalNet(3, mu=2.0), DiagonalNet(2, alpha=0.7)),
    "unsigned": (
        DiagonalNet(2, alpha=0.7, signed=False),
        DiagonalNet(2, start=np.full(16, 2.0), signed=False),
        DiagonalNet(2, alpha=0.7),
    ),
    "factors": (
        Factorization(2, alpha=1.0),
        Factorization(2, alpha=2.0, seed=1),
        Factorization(2, alpha=1.0, shape=(2, 6)),
    ),
    "symmetric": (
        SymmetricFactorization(2, alpha=1.0),
        SymmetricFactorization(2, alpha=2.0, seed=1),
        SymmetricFactorization(4, alpha=1.0),
    ),
    "deep": (
        DeepFactorization(4, 2, alpha=1.0),
        DeepFactorization(4, 2, alpha=2.0, seed=1),
        DeepFactorization(3, 2, alpha=1.0, shape=(3, 3)),
    ),
}


@pytest.mark.parametrize("name", ALIKE)
def test_models_with_equal_code_compute_the_same_function(name):
    # what is compiled for one of them serves the others
    first, second, other = ALIKE[name]
    assert first.code == second.code != other.code
    w = np.random.default_rng(2).standard_normal(16)
    ends = [getattr(model, "matrix", getattr(model, "predictor", None))(w) for model in ALIKE[name]]
    assert np.array_equal(ends[0], ends[1])
    assert ends[0].shape != ends[2].shape or not np.array_equal(ends[0], ends[2])

    class Own(type(first)):  # may compute what it likes
        pass

    own = Own.__new__(Own)
    vars(own).update(vars(first))
    assert own.code is own
