"""Solvers take a problem in the place of X and y, and give what they give for its arrays."""

import numpy as np
import pytest

from tacit.problems.classification import separable_points
from tacit.problems.matrices import gaussian_sensing, low_rank_completion
from tacit.problems.regression import Regression, sparse_regression
from tacit.regularizers.norms import L1, L2
from tacit.regularizers.q import Q
from tacit.regularizers.spectral import Frobenius, Nuclear, Schatten
from tacit.solvers.interpolate import interpolate
from tacit.solvers.interpolation_path import interpolate_path
from tacit.solvers.margins.path import max_margin_path, ratchet_path
from tacit.solvers.max_margin import max_margin

VALUES = sparse_regression(6, 12, sparsity=2, noise=0.1, seed=3)
LABELS = separable_points(5, 8, seed=1)
SEEN = low_rank_completion(samples=9, dimension=4, rank=1, seed=2)
SENSED = gaussian_sensing(samples=6, dimension=3, rank=1, seed=1)
SPECTRAL = [Nuclear(), Frobenius(), Schatten(Q(2, alpha=0.3))]


@pytest.mark.parametrize("regularizer", [L1(), L2(), Q(2, alpha=0.1)])
def test_values(regularizer):
    by_arrays = interpolate(VALUES.X, VALUES.y, regularizer)
    for found in (interpolate(VALUES, regularizer), interpolate(VALUES, regularizer=regularizer)):
        np.testing.assert_array_equal(found.beta, by_arrays.beta)
    # the loss of a problem has no say in where it is fitted
    half = Regression(VALUES.X, VALUES.y, loss="half squares")
    np.testing.assert_array_equal(interpolate(half, regularizer).beta, by_arrays.beta)


@pytest.mark.parametrize("regularizer", SPECTRAL, ids=str)
def test_matrices(regularizer):
    sensed = interpolate(SENSED, regularizer).matrix
    by_arrays = interpolate(SENSED.measurements, SENSED.y, regularizer).matrix
    np.testing.assert_array_equal(sensed, by_arrays)


@pytest.mark.parametrize("regularizer", [L1(), L2(), Q(2, mu=0.5)])
def test_labels(regularizer):
    found, by_arrays = max_margin(LABELS, regularizer), max_margin(LABELS.X, LABELS.y, regularizer)
    np.testing.assert_array_equal(found.beta, by_arrays.beta)


@pytest.mark.parametrize("depth", [(), (3,)])
def test_paths(depth):
    scales = {"log_alphas": [0.0, -1.0]}
    found = interpolate_path(VALUES, *depth, **scales)
    by_arrays = interpolate_path(VALUES.X, VALUES.y, *depth, **scales)
    np.testing.assert_array_equal(found.beta, by_arrays.beta)
    assert found.depth == (depth or (2,))[0]
    for path in (max_margin_path, ratchet_path):
        found, by_arrays = (
            path(*given, *depth, mus=[1.0, 0.1]) for given in ((LABELS,), (LABELS.X, LABELS.y))
        )
        np.testing.assert_array_equal(found.beta, by_arrays.beta)
        assert found.depth == (depth or (2,))[0]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: interpolate(LABELS, L1()), r"must be a Regression, got Classification; max_marg"),
        (lambda: max_margin(VALUES, L1()), r"must be a Classification, got Regression; interpol"),
        (lambda: max_margin(SEEN, L1()), r"got Completion; use interpolate\(problem, Nuclear"),
        (lambda: interpolate_path(SEEN, log_alphas=[0.0]), "must be a Regression, got Completion"),
        (lambda: interpolate(SEEN, L1()), r"regularizer of singular values .*L1.*\.regression\(\)"),
        (lambda: interpolate(SEEN), "regularizer of singular values such as Nuclear.*got None"),
        (lambda: interpolate(VALUES, Nuclear()), "X must have 3 dimensions"),
        (lambda: interpolate(VALUES, VALUES.y, L1()), "interpolate: a problem holds its own y"),
        (lambda: interpolate(SEEN, SEEN.y, Nuclear()), "interpolate: a problem holds its own y"),
        (lambda: ratchet_path(LABELS, LABELS.y, 2, mus=[1.0]), "a problem holds its own y"),
        (lambda: interpolate(VALUES), "expected a regularizer such as Q"),
        (lambda: interpolate(VALUES.X, VALUES.y), "expected a regularizer such as Q"),
    ],
)
def test_what_cannot_be_solved_is_a_sentence(call, words):
    with pytest.raises(ValueError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)
