"""Alignment, effective rank and participation ratio of kernels, against other formulas."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.measures.kernels.numbers import effective_rank, kernel_alignment, participation_ratio

ONE = settings(deadline=None, derandomize=True, max_examples=40)
SEEDS = st.integers(0, 10**6)
SIZES = st.tuples(st.integers(2, 8), st.integers(1, 10), st.integers(1, 3))


def features(seed, samples, width):
    return np.random.default_rng(seed).standard_normal((samples, width))


@ONE
@given(seed=SEEDS, sizes=SIZES, power=st.sampled_from([-300, -20, 0, 20, 300]))
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
@given(seed=SEEDS, sizes=SIZES, shift=st.floats(-5, 5))
def test_centred_alignment_is_that_of_centred_features(seed, sizes, shift):
    samples, width, outputs = sizes
    F, Y = features(seed, samples, width), features(seed + 1, samples, outputs)
    F0, Y0 = F - F.mean(axis=0), Y - Y.mean(axis=0)
    expected = kernel_alignment(F0 @ F0.T, Y0)
    assert kernel_alignment((F + shift) @ (F + shift).T, Y + shift, centred=True) == (
        pytest.approx(expected, rel=1e-6, abs=1e-9)
    )


def test_a_constant_offset_counts_only_without_centring():
    F, y = features(0, 6, 3), np.array([1, 1, 1, -1, -1, -1])
    K = F @ F.T
    plain, centred = kernel_alignment(K, y), kernel_alignment(K, y, centred=True)
    assert kernel_alignment(K + 9, y, centred=True) == pytest.approx(centred)
    assert kernel_alignment(K + 9, y) < 0.9 * plain


def test_one_vector_of_labels_is_a_column():
    F, y = features(1, 5, 4), features(2, 5, 1)
    assert kernel_alignment(F @ F.T, y[:, 0]) == kernel_alignment(F @ F.T, y)
    assert y[:, 0] @ F @ F.T @ y[:, 0] / (
        np.linalg.norm(F @ F.T) * (y[:, 0] @ y[:, 0])
    ) == pytest.approx(kernel_alignment(F @ F.T, y))


@ONE
@given(seed=SEEDS, sizes=SIZES, power=st.sampled_from([-300, 0, 300]))
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


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: kernel_alignment(np.eye(3), np.ones(2)), "K has 3 samples but y has 2"),
        (lambda: kernel_alignment(np.eye(3), np.zeros(3)), "y must not be zero"),
        (lambda: kernel_alignment(np.eye(3), np.ones(3), centred=True), "y must not be constant"),
        (lambda: kernel_alignment(np.ones((2, 2)), [1, -1], centred=True), "K must not be const"),
        (lambda: kernel_alignment(np.ones((2, 3)), [1, -1]), r"square, got shape \(2, 3\)"),
        (lambda: effective_rank(np.zeros((2, 2))), "K must not be zero"),
        (lambda: effective_rank(np.diag([1.0, -0.5])), "semidefinite, got the eigenvalue -0.5"),
        (lambda: participation_ratio([[1, 2], [0, 1]]), "K must be symmetric"),
        (lambda: participation_ratio([[np.nan]]), "K must be finite"),
    ],
)
def test_wrong_input_is_told(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
