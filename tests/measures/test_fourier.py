"""Fourier progress measures: by the two-dimensional transform, by hand, and refusals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

from penchant.measures import fourier_losses

P = 7
A, B, C = np.meshgrid(*[np.arange(P)] * 3, indexing="ij")


def wave(k):
    return np.cos(2 * np.pi * k * (A + B - C) / P)


def entropy(logits, counted):
    right = np.take_along_axis(logits, ((A + B) % P)[:, :, :1], axis=2)[..., 0]
    return (logsumexp(logits, axis=2) - right)[counted].mean()


@given(st.integers(0, 10**6), st.sets(st.integers(1, P // 2), min_size=1))
def test_both_losses_are_those_of_the_two_dimensional_transform(seed, keys):
    rng = np.random.default_rng(seed)
    logits, counted = 3 * rng.standard_normal((P, P, P)), rng.random((P, P)) < 0.7
    counted[0, 0] = True
    whole = np.fft.fft2(logits, axes=(0, 1))
    part = np.zeros_like(whole)
    for k in keys:
        for sign in (k, P - k):
            part[sign, sign] = whole[sign, sign]
    part = np.fft.ifft2(part, axes=(0, 1)).real
    losses = fourier_losses(logits, sorted(keys), counted)
    mean = logits.mean(axis=(0, 1))
    assert losses.loss == pytest.approx(entropy(logits, counted), rel=1e-10)
    assert losses.restricted == pytest.approx(entropy(mean + part, counted), rel=1e-10)
    assert losses.excluded == pytest.approx(entropy(logits - part, counted), rel=1e-10)
    kept = sum(losses.shares[k - 1] for k in keys)
    assert kept == pytest.approx((part**2).sum() / ((logits - mean) ** 2).sum(), rel=1e-9)


def test_the_key_frequencies_are_the_fewest_that_hold_most():
    logits = 5 * wave(3) + 4 * wave(1) + 0.5 * wave(2)
    losses = fourier_losses(logits)
    assert losses.frequencies == (3, 1)
    np.testing.assert_allclose(losses.shares, np.array([16, 0.25, 25]) / 41.25, rtol=1e-12)


def test_a_net_that_memorizes_has_no_circuit():
    """A table of the right answers of training pairs: low losses there, with and without waves."""
    rng = np.random.default_rng(0)
    training = rng.random((P, P)) < 0.6
    logits = np.where(training[..., None] & ((A + B - C) % P == 0), 20.0, 0.0)
    memory = fourier_losses(logits, [1], training)
    learned = fourier_losses(20 * wave(1), [1], training)
    assert memory.loss < 1e-6
    assert memory.excluded < 1e-2
    assert learned.excluded == pytest.approx(np.log(P))
    assert learned.restricted == pytest.approx(learned.loss)


def test_logits_of_one_value_have_no_variance():
    losses = fourier_losses(np.ones((3, 3, 3)))
    assert losses.loss == pytest.approx(np.log(3))
    np.testing.assert_array_equal(losses.shares, [0.0])


@pytest.mark.parametrize(
    ("logits", "options", "said"),
    [
        (np.ones((4, 4, 4)), {}, "odd p"),
        (np.ones((5, 5, 4)), {}, "odd p"),
        (np.full((5, 5, 5), np.nan), {}, "logits"),
        (np.ones((5, 5, 5)), {"frequencies": [3]}, "from 1 to 2"),
        (np.ones((5, 5, 5)), {"frequencies": []}, "from 1 to 2"),
        (np.ones((5, 5, 5)), {"frequencies": [1, 1]}, "from 1 to 2"),
        (np.ones((5, 5, 5)), {"frequencies": [0]}, "frequencies"),
        (np.ones((5, 5, 5)), {"mask": np.ones((5, 5))}, "mask"),
        (np.ones((5, 5, 5)), {"mask": np.zeros((5, 5), bool)}, "mask"),
    ],
)
def test_wrong_arguments_are_refused(logits, options, said):
    with pytest.raises((ValueError, TypeError), match=f"^fourier_losses: .*{said}"):
        fourier_losses(logits, **options)
