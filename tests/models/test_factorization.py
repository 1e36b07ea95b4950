"""Matrix models: gradients against JAX and finite differences, homogeneity, lifts, bad input."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penchant import Factorization
from penchant.lab import double_precision
from penchant.models import DeepFactorization, DifferenceFactorization, SymmetricFactorization
from refusals import refusals

ONCE = settings(max_examples=25, deadline=None, derandomize=True)
MODELS = {
    "product": lambda k, s: Factorization(k, alpha=0.7, seed=s),
    "oblong": lambda k, s: Factorization(k, alpha=0.7, seed=s, shape=(2, 8)),
    "symmetric": lambda k, s: SymmetricFactorization(k, alpha=0.7, seed=s),
    "difference": lambda k, s: DifferenceFactorization(alpha=0.7, width=k, seed=s),
    "identity": lambda k, s: DifferenceFactorization(alpha=0.7),
    "deep": lambda k, s: DeepFactorization(4, k, alpha=0.7, seed=s),
    "deep oblong": lambda k, s: DeepFactorization(3, k, alpha=0.7, seed=s, shape=(2, 8)),
    "deep given": lambda k, s: DeepFactorization(
        factors=[np.full((2, 3), 0.4), np.eye(3), np.full((3, 8), 0.2)]
    ),
    "depth two": lambda k, s: DeepFactorization(2, k, alpha=0.7, seed=s),
}
two = pytest.mark.parametrize("name", [n for n in MODELS if "de" not in n or n == "identity"])
everyone = pytest.mark.parametrize("name", MODELS)


def setting(name, width=3, seed=0):
    """A model, parameters away from its start, and five measurements of 16 entries."""
    rng = np.random.default_rng(seed)
    model = MODELS[name](width, seed)
    start = model.start(16)
    return model, start + 0.3 * rng.standard_normal(start.size), rng.standard_normal((5, 16))


@everyone
def test_jacobian_and_pullback_are_those_of_jax(name):
    model, parameters, X = setting(name)
    with double_precision():
        slopes = np.asarray(jax.jit(jax.jacobian(model.predict))(parameters, X))
    np.testing.assert_allclose(model.jacobian(parameters, X), slopes, rtol=1e-12, atol=1e-12)
    residual = np.arange(5.0)
    pulled = model.pullback(parameters, X, residual)
    np.testing.assert_allclose(pulled, residual @ slopes, rtol=1e-12, atol=1e-11)


@everyone
@ONCE
@given(width=st.integers(1, 6), seed=st.integers(0, 1000))
def test_pullback_is_the_slope_of_the_predictions(name, width, seed):
    model, parameters, X = setting(name, width, seed)
    direction = np.random.default_rng(seed + 1).standard_normal(parameters.size)
    ahead, behind = (model.predict(parameters + h * direction, X) for h in (1e-4, -1e-4))
    residual = np.arange(1.0, 6.0)
    moved = model.pullback(parameters, X, residual) @ direction
    np.testing.assert_allclose(moved, residual @ (ahead - behind) / 2e-4, rtol=1e-5, atol=1e-5)


@everyone
def test_homogeneity_is_the_number_of_factors(name):
    model, parameters, X = setting(name)
    before, after = model.predict(parameters, X), model.predict(1.7 * parameters, X)
    np.testing.assert_allclose(after, 1.7**model.homogeneity * before, rtol=1e-12)
    assert not np.allclose(after, 1.7 ** (model.homogeneity + 1) * before)


@two
def test_the_matrix_is_a_part_of_the_lifted_one(name):
    model, parameters, X = setting(name)
    W = model.stack(parameters)
    np.testing.assert_allclose(model.part(W @ W.T), model.matrix(parameters), atol=1e-14)
    S = model.lift(X[0].reshape(model.shape_for(16)))
    np.testing.assert_array_equal(S, S.T)
    # tr(S W W^T) counts every prediction twice: S is twice W's measurement of section 6
    np.testing.assert_allclose(np.sum(S * (W @ W.T)), 2 * model.predict(parameters, X)[0])


def test_the_start_has_the_requested_scale():
    for make in (Factorization, SymmetricFactorization):
        start = make(400, alpha=0.1, seed=3).start(100)
        assert abs(start.std() / 0.1 - 1) < 0.05
        assert abs(start.mean()) < 0.01
        np.testing.assert_allclose(make(400, log_alpha=np.log(0.1), seed=3).start(100), start)
        assert not np.allclose(make(400, alpha=0.1, seed=4).start(100), start)


def test_unbiased_starts_are_zero():
    for model in (DifferenceFactorization(alpha=3), DifferenceFactorization(alpha=3, seed=1)):
        assert not model.matrix(model.start(25)).any()
    identity = DifferenceFactorization(alpha=3.0)
    np.testing.assert_array_equal(identity.stack(identity.start(4))[:2], 3 * np.eye(2))


def test_given_factors_are_the_start():
    U, V = np.arange(6.0).reshape(2, 3), np.ones((4, 3))
    model = Factorization(factors=(U, V))
    np.testing.assert_array_equal(model.matrix(model.start(8)), U @ V.T)
    W = SymmetricFactorization(factors=(U,))
    np.testing.assert_array_equal(W.matrix(W.start(4)), U @ U.T)


test_bad_input_gets_one_sentence = refusals(
    (lambda: Factorization(0, alpha=1), "width must be at least 1, got 0"),
    (lambda: SymmetricFactorization(0, alpha=1), "width must be at least 1, got 0"),
    (lambda: DifferenceFactorization(alpha=1, width=0), "width must be at least 1, got 0"),
    (lambda: DeepFactorization(3, 0, alpha=1), "width must be at least 1, got 0"),
    (lambda: DeepFactorization(factors=[np.eye(2)]), "factors must be two arrays or more"),
    (
        lambda: DeepFactorization(factors=[np.eye(2), np.eye(3)]),
        r"must share one inner dimension, got shapes \(2, 2\), \(3, 3\)",
    ),
    (
        lambda: DeepFactorization(3, factors=[np.eye(2), np.eye(2)]),
        "factors= already sets depth, width and scale",
    ),
    (lambda: DeepFactorization(1, 4, alpha=1), "depth must be at least 2, got 1"),
    (lambda: Factorization(3), "give exactly one of alpha and log_alpha"),
    (lambda: Factorization(3, alpha=1, log_alpha=0), "got alpha and log_alpha"),
    (lambda: Factorization(3, alpha=-1), "alpha must be > 0"),
    (lambda: Factorization(3, log_alpha=-1e4), "log_alpha. must be at most 300"),
    (lambda: Factorization(3, alpha=1, shape=5), "shape must be"),
    (lambda: Factorization(3, alpha=1).start(10), "do not make a square matrix; give shape="),
    (lambda: Factorization(3, alpha=1, shape=(2, 3)).start(10), "6 entries but the data"),
    (lambda: Factorization(3, factors=(np.eye(2), np.eye(2))), "already sets width"),
    (lambda: Factorization(factors=(np.eye(2), np.eye(3))), "must have the same width"),
    (lambda: Factorization(factors=(np.eye(2),)), "the 2 array"),
    (lambda: Factorization(factors=([[np.nan]], [[1.0]])), "must be finite"),
    (lambda: DifferenceFactorization(alpha=1, width=3).start(25), "give seed="),
)
