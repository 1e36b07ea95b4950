"""The largest spectral norm of a layer: values, subgradients, duality, and the block diagonal."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penchant
from penchant.regularizers import LayerSpectral, Spectral

SHAPES = [(2, 3), (4, 1), (1, 2)]
NORM = LayerSpectral(SHAPES)


def layers(theta):
    ends = np.cumsum([r * c for r, c in SHAPES])
    return [part.reshape(s) for part, s in zip(np.split(theta, ends[:-1]), SHAPES, strict=True)]


@given(st.integers(0, 10**6))
def test_values_subgradients_and_the_dual_norm(seed):
    theta, other = np.random.default_rng(seed).standard_normal((2, 12))
    assert NORM(theta) == pytest.approx(max(np.linalg.norm(W, 2) for W in layers(theta)))
    nuclear = sum(np.linalg.norm(W, "nuc") for W in layers(theta))
    assert float(NORM.dual_norm.value(theta)) == pytest.approx(nuclear)
    slope = NORM.subgradient(theta)
    assert slope @ theta == pytest.approx(NORM(theta))
    assert NORM(other) >= NORM(theta) + slope @ (other - theta) - 1e-12
    steepest = NORM.dual_norm.subgradient(theta)
    assert NORM(steepest) == pytest.approx(1.0)
    assert steepest @ theta == pytest.approx(nuclear)


def test_the_block_diagonal_has_the_same_norm():
    theta = np.random.default_rng(3).standard_normal((2, 12))
    for row, diagonal in zip(theta, NORM.on_diagonal(theta), strict=True):
        assert NORM.diagonal(diagonal) == pytest.approx(NORM(row))
    assert NORM.diagonal == Spectral((7, 6))


def test_steps_are_those_of_every_layer_alone():
    problem = penchant.problems.separable_points(6, 12, margin=0.5, seed=1)
    method, stop = penchant.methods.SteepestDescent(0.1, NORM), penchant.Steps(1)
    path = penchant.train(penchant.models.LinearPredictor(), problem, method, stop=stop)
    for W in layers(path.predictor):
        sizes = np.linalg.svd(W, compute_uv=False)
        np.testing.assert_allclose(sizes, 0.1, rtol=1e-9)


@pytest.mark.parametrize("shapes", [[], [(0, 1)], [(2,)], "ab", 3, [None]], ids=str)
def test_wrong_shapes_are_refused(shapes):
    with pytest.raises((ValueError, TypeError), match=r"^LayerSpectral: "):
        LayerSpectral(shapes)


def test_parameters_of_another_length_are_refused():
    with pytest.raises(ValueError, match=r"^LayerSpectral\(.*parameters"):
        NORM(np.ones(11))
    problem = penchant.problems.separable_points(6, 5, margin=0.5)
    method = penchant.methods.SteepestDescent(0.1, NORM)
    with pytest.raises(ValueError, match="12 entries but there are 5 parameters"):
        penchant.train(penchant.models.LinearPredictor(), problem, method, stop=penchant.Steps(1))
