"""Deep linear nets under every method for g + beta h: hand-written loops, and what depth finds."""

import functools

import numpy as np
import pytest

from penchant import L1, L2, Adam, DiagonalNet, GradientDescent, Steps, train
from penchant.methods import Proximal
from penchant.models import DeepFactorization, LinearMatrix, LinearPredictor
from penchant.problems import Completion, low_rank_completion, sparse_recovery
from penchant.record import LogSpaced

SPARSE = sparse_recovery(20, 40, sparsity=2, seed=0, snr=np.inf)
LOW_RANK = low_rank_completion(samples=40, dimension=8, rank=1, seed=0, loss="half squares")
DIAGONAL = DiagonalNet(depth=3, alpha=0.3)
INSIDE = (LOW_RANK.entries < [3, 4]).all(axis=1)
OBLONG = Completion((3, 4), LOW_RANK.entries[INSIDE], LOW_RANK.values[INSIDE], loss="half squares")
DEEP = DeepFactorization(3, 2, alpha=0.6, seed=1, shape=(3, 4))
STEP, STEPS, BETA = 0.02, 40, 0.5  # strong enough to carry parameters across zero


def diagonal_slope(theta):
    """The gradient of (1/2) |X (u^3 - v^3) - y|^2 by hand."""
    u, v = theta[:40], theta[40:]
    back = SPARSE.X.T @ (SPARSE.X @ (u**3 - v**3) - SPARSE.y)
    return np.concatenate([3 * u**2 * back, -3 * v**2 * back])


def deep_slope(theta):
    """The gradient of half the sum of squared errors of A B C at the entries given."""
    A, B, C = theta[:6].reshape(3, 2), theta[6:10].reshape(2, 2), theta[10:].reshape(2, 4)
    product, back = A @ B @ C, np.zeros((3, 4))
    for (i, j), value in zip(OBLONG.entries, OBLONG.values, strict=True):
        back[i, j] = product[i, j] - value
    slopes = back @ (B @ C).T, A.T @ back @ C.T, (A @ B).T @ back
    return np.concatenate([part.ravel() for part in slopes])


def subgradient(theta, slope):
    return theta - STEP * (slope(theta) + BETA * np.sign(theta))


def proximal(theta, slope):
    moved = theta - STEP * slope(theta)
    return np.sign(moved) * np.maximum(np.abs(moved) - STEP * BETA, 0)


def by_hand(rule, theta, slope):
    for _ in range(STEPS):
        theta = rule(theta, slope)
    return theta


def adam_by_hand(theta, slope):
    mean, square = np.zeros_like(theta), np.zeros_like(theta)
    for k in range(1, STEPS + 1):
        g = slope(theta) + 2 * BETA * theta
        mean, square = 0.9 * mean + 0.1 * g, 0.999 * square + 0.001 * g**2
        theta = theta - STEP * (mean / (1 - 0.9**k)) / (np.sqrt(square / (1 - 0.999**k)) + 1e-8)
    return theta


NETS = pytest.mark.parametrize(
    ("model", "problem", "slope", "size"),
    [(DIAGONAL, SPARSE, diagonal_slope, 40), (DEEP, OBLONG, deep_slope, 12)],
    ids=["diagonal", "deep"],
)


@NETS
def test_every_method_takes_the_steps_written_by_hand(model, problem, slope, size):
    start = model.start(size)
    kinked = functools.partial(GradientDescent, subgradient=True)
    methods = {kinked: L1(), Proximal: L1(), Adam: L2()}
    found = [
        train(model, problem, method(STEP), penalty=BETA * norm, stop=Steps(STEPS))
        for method, norm in methods.items()
    ]
    hand = [
        by_hand(subgradient, start, slope),
        by_hand(proximal, start, slope),
        adam_by_hand(start, slope),
    ]
    for path, wanted in zip(found, hand, strict=True):
        np.testing.assert_allclose(path.parameters, wanted, rtol=1e-9, atol=1e-11)
        assert path.predictor.shape == ((40,) if size == 40 else (3, 4))
    for path, other in zip(found, [*hand[1:], hand[0]], strict=True):  # the control
        assert np.abs(path.parameters - other).max() > 1e-4


def error(model, problem, step):
    """The relative error where descent without a penalty fits."""
    rules = {"stop": Steps(100_000), "record": LogSpaced(3)}
    path = train(model, problem, GradientDescent(step, subgradient=True), **rules)
    assert float(path.dataset.loss[-1]) < 1e-6
    return float(path.dataset.relative_error[-1])


def test_depth_takes_the_place_of_the_penalty():
    assert error(DiagonalNet(3, alpha=0.03), SPARSE, 0.1) < 0.06
    assert error(LinearPredictor(), SPARSE, 0.1) > 0.5  # the control: no depth
    assert error(DeepFactorization(3, 8, alpha=0.03, seed=1), LOW_RANK, 0.05) < 1e-3
    assert error(LinearMatrix(), LOW_RANK, 0.05) > 0.4
