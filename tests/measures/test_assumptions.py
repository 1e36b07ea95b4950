"""The detectors of homogeneity, smoothness and zero output, on models that must pass and fail."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penchant import DiagonalNet, FunctionModel
from penchant.lab import door_as
from penchant.measures import assumptions
from penchant.measures.homogeneity import Line, require_theorem, roughness
from penchant.models import Difference, Model, ProductNet, Unbiased, linearize, two_layer
from refusals import refusals

D = 3
X = np.random.default_rng(0).standard_normal((9, D))
MANY = settings(deadline=None, derandomize=True, max_examples=16)
SEEDS = st.integers(0, 10**6)
SIZES = st.sampled_from([1e-3, 0.3, 1.0, 40.0, 1e4])


class Written(Model):
    """f(w, X) written in numpy, with central differences for a Jacobian."""

    homogeneity = None

    def __init__(self, function, parameters, size=1.0, seed=0):
        self.function, self.size = function, size
        self.begin = size * np.random.default_rng(seed).standard_normal(parameters)

    def start(self, dimension):
        return self.begin.copy()

    def predict(self, parameters, X):
        return self.function(parameters, X)

    def jacobian(self, parameters, X):
        steps = 1e-6 * self.size * np.eye(len(parameters))
        rise = [self.predict(parameters + s, X) - self.predict(parameters - s, X) for s in steps]
        return np.array(rise).T / (2e-6 * self.size)

    def pullback(self, parameters, X, residual):
        return residual @ self.jacobian(parameters, X)

    def describe(self):
        return {"model": "Written"}


def linear(w, x):
    return x @ w[:D]


def monomial(degree):
    return lambda w, x: x @ w[:D] ** degree


def deep(degree):
    """A chain of scalar weights behind a linear layer: the product of `degree` layers."""
    return lambda w, x: (x @ w[:D]) * np.prod(w[D : D + degree - 1])


def net(degree):
    """v . sigma(W x) with a homogeneous sigma of degree - 1; for degree 1 only sigma(<w, x>)."""
    if degree == 1:
        return lambda w, x: np.abs(x @ w[:D])

    def f(w, x):
        z = x @ w[: 4 * D].reshape(D, 4)
        return np.maximum(z, 0) ** (degree - 1) @ w[4 * D : 4 * D + 4]

    return f


KINDS = {"monomial": monomial, "deep": deep, "net": net}
KIND = st.sampled_from(list(KINDS))


@MANY
@given(degree=st.integers(1, 10), kind=KIND, size=SIZES, seed=SEEDS, twice=st.booleans())
def test_homogeneous_models_of_every_degree_pass(degree, kind, size, seed, twice):
    model = Written(KINDS[kind](degree), 16, size, seed)
    found = assumptions(Difference(model) if twice else model, X, seed)
    assert found.homogeneous
    assert found.degree == pytest.approx(degree, abs=1e-9)
    assert found.zero_output == twice


@MANY
@given(
    degree=st.integers(1, 10), kind=KIND, size=SIZES, seed=SEEDS, share=st.floats(1e-5, 1e3)
)  # fmt: skip
def test_an_offset_is_found(degree, kind, size, seed, share):
    f = KINDS[kind](degree)
    inner = Written(f, 16, size, seed)
    offset = share * np.abs(f(inner.start(D), X)).max()
    model = Written(lambda w, x: f(w, x) + offset, 16, size, seed)
    assert not assumptions(model, X, seed).homogeneous
    unbiased = assumptions(Unbiased(inner), X, seed)
    assert unbiased.zero_output
    assert not unbiased.homogeneous


@MANY
@given(
    degrees=st.tuples(st.integers(1, 10), st.integers(1, 10)).filter(lambda d: d[0] != d[1]),
    kind=KIND,
    seed=SEEDS,
)
def test_a_sum_of_two_degrees_is_found(degrees, kind, seed):
    first, second = (KINDS[kind](degree) for degree in degrees)
    model = Written(lambda w, x: first(w, x) + 1e-3 * second(w, x), 16, 1.0, seed)
    found = assumptions(model, X, seed)
    assert not found.homogeneous
    assert found.defect > 1e-6


@pytest.mark.parametrize(
    "function",
    [
        lambda w, x: np.logaddexp(0, x @ w[:D]),
        lambda w, x: np.tanh(x @ w[:D]),
        lambda w, x: np.sinh(x @ w[:D]),
        lambda w, x: np.maximum(x @ w[:D] + 1, 0) * w[D],  # a bias that does not scale
        # scales by 2 exactly and by nothing else: f(2 w) = 2 f(w)
        lambda w, x: (x @ w[:D]) * (2 + np.sin(2 * np.pi * np.log2(np.linalg.norm(w)))),
    ],
)
def test_models_without_a_degree_fail(function):
    assert not assumptions(Written(function, 4), X).homogeneous


def test_degrees_need_not_be_integers():
    found = assumptions(Written(lambda w, x: x @ np.abs(w) ** 2.7, D), X)
    assert found.homogeneous
    assert found.degree == pytest.approx(2.7, abs=1e-9)


def test_a_domain_of_positive_parameters_is_enough():
    model = Written(lambda w, x: x @ np.sqrt(w), D)
    model.begin = np.abs(model.begin)
    found = assumptions(model, X)
    assert found.homogeneous
    assert found.degree == pytest.approx(0.5, abs=1e-9)
    assert found.smooth


SMOOTH = {
    "linear": linear,
    "cubic": monomial(3),
    "tenth power": monomial(10),
    "deep": deep(6),
    "tanh": lambda w, x: np.tanh(x @ w[:D]),
    "steep tanh": lambda w, x: np.tanh(300 * (x @ w[:D])),  # a jump, seen from afar
    "softplus": lambda w, x: np.logaddexp(0, 50 * (x @ w[:D])),
    "third power of the modulus": lambda w, x: np.abs(x @ w[:D]) ** 3,
}
ROUGH = {
    "relu": (lambda z: np.maximum(z, 0), 2.0),
    "leaky": (lambda z: np.maximum(z, 0.9 * z), 2.0),
    "modulus": (np.abs, 2.0),
    "squared relu": (lambda z: np.maximum(z, 0) ** 2, 1.0),
    "z |z|": (lambda z: z * np.abs(z), 1.0),
}


@settings(MANY, max_examples=6)
@given(seed=SEEDS, size=st.sampled_from([0.3, 1.0, 40.0]))
@pytest.mark.parametrize("name", list(SMOOTH))
def test_smooth_models_are_smooth(name, seed, size):
    f = SMOOTH[name]
    model = Written(lambda w, x: f(w / size, x), 16, size, seed)
    assert assumptions(model, X, seed).smooth


@settings(MANY, max_examples=6)
@given(seed=SEEDS, size=st.sampled_from([0.3, 1.0, 40.0]), units=st.integers(1, 4))
@pytest.mark.parametrize("name", list(ROUGH))
def test_jumps_of_derivatives_are_found(name, seed, size, units):
    sigma, level = ROUGH[name]

    def f(w, x):
        return sigma(x @ w[: D * units].reshape(D, units)) @ w[12 : 12 + units]

    found = assumptions(Written(f, 16, size, seed), X, seed)
    assert not found.smooth
    assert found.roughness == pytest.approx(level, abs=0.5)
    assert found.homogeneous


@pytest.mark.parametrize("power", [1, 1.5, 2.25])
def test_roughness_is_the_order_of_the_singularity(power):
    # |s - a|^p has third differences of order h^p
    values = [lambda s, a=a: np.array([1 + np.abs(s - a) ** power]) for a in (0.31, 0.577)]
    lines = [Line(value, np.ones(1)) for value in values]
    assert roughness(lines) == pytest.approx(3 - power, abs=0.35)


def test_rounding_of_large_terms_is_not_roughness():
    """f is zero up to the rounding of terms that cancel, all along the line."""
    noise = np.random.default_rng(0)

    def cancelling(s):
        return np.array([(1e3 + s) - 1e3 - s + 1e-13 * noise.standard_normal()])

    assert roughness([Line(cancelling, np.array([1e3]))]) == 0
    assert roughness([Line(cancelling, np.zeros(1))]) > 2  # control: terms unknown
    model = Difference(Written(lambda w, x: (x @ w[:D]) * w[D], 4, 10.0))
    assert assumptions(model, X).smooth


@pytest.mark.parametrize(
    ("model", "degree", "smooth", "zero"),
    [
        (two_layer(6, alpha=2.0), 2, False, False),
        (two_layer(6, alpha=2.0, activation="quadratic"), 3, True, False),
        (Difference(two_layer(6, alpha=0.1, activation="cubic")), 4, True, True),
        (DiagonalNet(2, alpha=0.1), 2, True, True),
        (DiagonalNet(10, alpha=3.0), 10, True, True),
        (DiagonalNet(5, alpha=3.0, signed=False), 5, True, False),
        (Difference(DiagonalNet(5, alpha=3.0, signed=False)), 5, True, True),
        (DiagonalNet(3, log_alpha=700.0), 3, True, True),
        (Difference(DiagonalNet(3, log_alpha=-700.0, signed=False)), 3, True, True),
        (ProductNet([1.0, 2, 3], [1.0, -1, 2]), 2, True, False),
    ],
)
def test_models_of_the_package(model, degree, smooth, zero):
    found = assumptions(model, X)
    assert found.homogeneous
    assert found.agrees
    assert found.declared == degree
    assert found.degree == pytest.approx(degree, abs=1e-9)
    assert (found.smooth, found.zero_output) == (smooth, zero)


@pytest.mark.parametrize(
    "model",
    [
        two_layer(6, alpha=2.0, activation="softplus"),
        two_layer(6, alpha=2.0, bias=True),
        Unbiased(two_layer(6, alpha=2.0)),
    ],
)
def test_nets_without_a_degree(model):
    found = assumptions(model, X)
    assert not found.homogeneous
    assert found.agrees  # they declare none


def test_a_frozen_signed_net_has_degree_one():
    # f(w0) = 0 and <grad f(w0), w0> = D f(w0) = 0, so the expansion is linear, not affine
    found = assumptions(linearize(DiagonalNet(4, alpha=1.5)), X)
    assert found.homogeneous
    assert found.degree == pytest.approx(1, abs=1e-9)
    affine = assumptions(linearize(DiagonalNet(4, alpha=1.5, signed=False)), X)
    assert not affine.homogeneous


@pytest.mark.parametrize("share", [1e-7, 1e-3])
def test_a_small_output_at_the_start_is_still_an_output(share):
    start = np.array([[1.0, 2, 3], [1.0, 2, 3 * (1 - share)]])
    found = assumptions(DiagonalNet(2, start=start), X)
    assert not found.zero_output
    slope = np.linalg.norm(np.concatenate([2 * start[0] * X[0], 2 * start[1] * X[0]]))
    ratio = abs(X[0] @ (start[0] ** 2 - start[1] ** 2)) / (slope * np.linalg.norm(start))
    assert assumptions(DiagonalNet(2, start=start), X[:1]).output == pytest.approx(ratio)


WRONG = FunctionModel(lambda w, x: (x @ w) ** 2 / jnp.sqrt(1e-30 + w @ w), np.ones(D), 2)


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (Unbiased(two_layer(4, alpha=1.0)), r"needs f\(c theta\) = c\^L f\(theta\).*Difference"),
        (two_layer(4, alpha=1.0, bias=True), r"needs f\(c theta\)"),
        (two_layer(4, alpha=1.0), r"needs f\(theta_0, x\) = 0 .*wrap it in Difference\(...\)"),
        (Difference(two_layer(4, alpha=1.0)), r"twice continuously .*smooth=False"),
        (WRONG, "declares 2 but has 1; declare the measured one"),
    ],
)
def test_theorems_refuse_in_one_sentence(model, sentence):
    with pytest.raises(ValueError, match=sentence) as refused:
        door_as("L Theorem 1")(require_theorem)(model, X)
    assert str(refused.value).startswith("L Theorem 1 needs ")
    assert "\n" not in str(refused.value)


def test_theorems_accept_what_satisfies_them():
    found = require_theorem(DiagonalNet(2, alpha=10.0), X)
    assert found == assumptions(DiagonalNet(2, alpha=10.0), X)
    rough = require_theorem(Difference(two_layer(4, alpha=1.0)), X, smooth=False)
    assert not rough.smooth


test_bad_input_is_refused_in_one_sentence = refusals(
    (lambda: assumptions(linear, X), "expected a Model, got function"),
    (lambda: assumptions(DiagonalNet(2, alpha=1.0), [[np.nan]]), "X must be finite"),
    (lambda: assumptions(DiagonalNet(2, alpha=1.0), X, seed=-1), "seed must be at least 0"),
    (
        lambda: assumptions(Written(lambda w, x: 0 * (x @ w), D), X),
        "zero or not finite at every random point",
    ),
)
