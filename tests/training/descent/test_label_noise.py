"""Fresh noise on the labels of every step: its size, its seed, and where there is none."""

import numpy as np
import pytest

import penchant

EVERY = penchant.Regression(np.eye(400), np.ones(400))


def noises(steps, seed=0, batch=None):
    """What was added to the labels at each step, read off a linear predictor on separate inputs."""
    rate, found, last = 0.1, [], np.zeros(400)
    for k in range(1, steps + 1):
        method = penchant.GradientDescent(rate, label_noise=0.5)
        net, stop = penchant.models.LinearPredictor(), penchant.Steps(k)
        w = penchant.train(net, EVERY, method, stop=stop, seed=seed, batch=batch).predictor
        scale = rate * 2 * (1 if batch is None else 400 / batch)
        moved = (w - last) / scale + last - EVERY.y
        found.append(moved if batch is None else moved[w != last])
        last = w
    return np.array(found)


@pytest.mark.parametrize("batch", [None, 100])
def test_the_noise_is_gaussian_and_new_at_every_step(batch):
    first, second = noises(2, batch=batch)
    assert abs(first.mean()) < 4 * 0.5 / np.sqrt(len(first))
    assert abs(first.std() / 0.5 - 1) < 4 / np.sqrt(2 * len(first))
    assert abs(np.mean(first**3)) < 4 * 0.5**3 * np.sqrt(15 / len(first))
    assert abs(np.corrcoef(first, second)[0, 1]) < 4 / np.sqrt(len(first))
    assert np.abs(first - noises(1, seed=1, batch=batch)[0]).max() > 0.1
    np.testing.assert_array_equal(first, noises(1, batch=batch)[0])


@pytest.mark.parametrize("batch", [None, 1, 3])
def test_a_run_that_is_resumed_sees_the_same_noise_to_the_bit(batch):
    problem, net = (
        penchant.problems.sparse_regression(8, 20, sparsity=2),
        penchant.DiagonalNet(2, alpha=0.1),
    )
    method = penchant.methods.EffectiveScale(penchant.GradientDescent(0.002, label_noise=0.3))
    given = {"batch": batch, "seed": 3}
    whole = penchant.train(net, problem, method, stop=penchant.Steps(300), **given)
    half = penchant.train(net, problem, method, stop=penchant.Steps(131), **given)
    rest = penchant.train(net, problem, method, stop=penchant.Steps(300), resume=half, **given)
    np.testing.assert_array_equal(rest.parameters, whole.parameters)
    np.testing.assert_array_equal(rest.memory[-1], whole.memory[-1])


def test_faint_noise_follows_the_run_without_it_through_the_same_batches():
    problem, net = (
        penchant.problems.sparse_regression(8, 20, sparsity=2),
        penchant.DiagonalNet(2, alpha=0.1),
    )
    plain, faint, loud = (
        penchant.train(net, problem, method, batch=2, stop=penchant.Steps(50)).predictor
        for method in (
            penchant.GradientDescent(0.01, label_noise=size) for size in (0.0, 1e-13, 0.3)
        )
    )
    np.testing.assert_allclose(faint, plain, rtol=0, atol=1e-12)
    assert np.abs(faint - plain).max() > 0
    assert np.abs(loud - plain).max() > 1e-3


def test_labels_that_are_no_numbers_get_no_noise():
    with pytest.raises(ValueError, match="label_noise must be >= 0, got -1"):
        penchant.GradientDescent(0.1, label_noise=-1.0)
    method, net = penchant.GradientDescent(0.1, label_noise=0.1), penchant.DiagonalNet(2, alpha=1.0)
    for clocked in (method, penchant.methods.EffectiveScale(method)):
        with pytest.raises(ValueError, match=r"label_noise=0.1 is added to numbers.*leave it out"):
            penchant.train(
                net, penchant.problems.three_points("3b"), clocked, stop=penchant.Steps(1)
            )
