"""Gaussian factors drawn by their Wishart law: the law, the width and what they train to."""

import numpy as np
import pytest
from scipy.stats import ks_2samp

from penchant import Factorization, train
from penchant.methods import MatrixFlow
from penchant.models import wide_factorization, wishart_root
from penchant.problems import low_rank_completion


def test_wishart_roots_have_the_law_of_gaussian_factors():
    rng = np.random.default_rng(4)

    def largest(draw):
        return [np.linalg.norm(draw(), 2) for _ in range(2000)]

    gaussian = largest(lambda: rng.standard_normal((4, 20)))
    assert ks_2samp(gaussian, largest(lambda: wishart_root(4, 20, rng))).pvalue > 0.01
    assert ks_2samp(gaussian, largest(lambda: wishart_root(4, 21, rng))).pvalue < 1e-6


def test_a_seed_is_a_generator_of_this_seed():
    one, other = wishart_root(3, 9, 5), wishart_root(3, 9, np.random.default_rng(5))
    np.testing.assert_array_equal(one, other)
    assert np.abs(one - wishart_root(3, 9, 6)).max() > 0.1


def test_factors_of_one_lifted_matrix_train_alike():
    """The full factors and the triangular root of their own W W^T end in the same matrix."""
    problem = low_rank_completion(samples=12, dimension=4, rank=1, seed=2)
    full = Factorization(50, alpha=0.2, seed=1)
    W = full.stack(full.start(16))
    root = np.linalg.cholesky(W @ W.T)
    few = Factorization(factors=(root[:4], root[4:]))
    ends = [train(model, problem, MatrixFlow()).predictor for model in (full, few)]
    np.testing.assert_allclose(*ends, atol=1e-7)
    other = wide_factorization(50, alpha=0.2, shape=(4, 4), seed=1)
    assert np.abs(train(other, problem, MatrixFlow()).predictor - ends[0]).max() > 1e-3


def test_the_scale_and_the_shape_are_those_asked_for():
    model = wide_factorization(10**8, alpha=1e-3, shape=(2, 5), seed=3)
    W = model.stack(model.start(10))
    np.testing.assert_allclose(W @ W.T, 100 * np.eye(7), atol=0.1)
    assert model.matrix(model.start(10)).shape == (2, 5)
    with pytest.raises(ValueError, match=r"width must be at least 7, got 6"):
        wide_factorization(6, alpha=1.0, shape=(2, 5))
