"""The bounds on the exponential loss against mpmath and against flows; where they do not apply."""

import mpmath
import numpy as np
import pytest

import penchant
from penchant import Classification, DiagonalNet, ParameterFlow, bounds
from penchant.problems import separable_points
from penchant.record import LogSpaced
from penchant.stop import LogLoss

POINTS = Classification([[3.0, 1.0, 0.5], [1.0, -2.0, 0.5]], [1, -1])


def best_margin(problem):
    """gamma_2 = 1 / |w| of the max margin, which `separation` does not use."""
    return 1 / np.linalg.norm(penchant.max_margin(problem, penchant.L2()).beta)


@pytest.mark.parametrize("depth", [2, 3, 5, 9])
def test_the_bounds_in_many_digits(depth):
    alpha, gamma = 0.7, best_margin(POINTS)
    net, widest = DiagonalNet(depth, alpha=alpha), np.abs(POINTS.X).sum(axis=0).max()
    g = np.array([1e-8, 1e-3, 0.05])
    with mpmath.workdps(40):
        z = [mpmath.mpf(float(v)) * widest / (2 * mpmath.mpf(gamma) ** 2 * alpha**depth) for v in g]
        if depth == 2:
            exact = [mpmath.log(2 * alpha**2 * mpmath.sinh(v)) for v in z]
        else:
            p = mpmath.mpf(depth) / (depth - 2)
            arguments = [v / p for v in z]
            exact = [mpmath.log(alpha**depth * ((1 - v) ** -p - (1 + v) ** -p)) for v in arguments]
        log_t = np.array([-30.0, 0.0, 1e4])
        rate = 2 * depth**2 * alpha ** (2 * depth - 2) * gamma**2
        losses = [-mpmath.log(1 + rate * mpmath.exp(v)) for v in log_t]
    np.testing.assert_allclose(
        bounds.largest_log_weight(POINTS, net, g), np.array(exact, float), rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(
        bounds.largest_log_loss(POINTS, net, log_t), np.array(losses, float), rtol=1e-9
    )


@pytest.mark.parametrize("depth", [2, 3])
def test_flows_stay_below_and_other_depths_do_not_bound_them(depth):
    problem = separable_points(4, 5, margin=0.3, seed=2)
    net = DiagonalNet(depth, alpha=3.0)
    path = penchant.train(
        net, problem, ParameterFlow(), stop=LogLoss(-20.0), record=LogSpaced(10)
    ).dataset.isel(time=slice(1, None))
    loss = bounds.largest_log_loss(problem, net, path.log_t.values)
    weight = bounds.largest_log_weight(problem, net, path.smoothed_margin.values)
    assert (path.log_loss.values <= loss + 1e-9).all()
    assert (np.log(np.abs(path.predictor.values).max(axis=1)) <= weight + 1e-9).all()
    deeper = bounds.largest_log_loss(problem, DiagonalNet(depth + 2, alpha=3.0), path.log_t.values)
    assert (path.log_loss.values > deeper).any()


def test_one_point_attains_both_in_the_kernel_regime():
    problem, net = Classification([[1.0, -2.0]], [1]), DiagonalNet(2, alpha=1e3)
    path = penchant.train(net, problem, ParameterFlow(), stop=LogLoss(-5.0)).dataset
    end = path.isel(time=[-1])
    loss = bounds.largest_log_loss(problem, net, end.log_t.values)
    np.testing.assert_allclose(loss, end.log_loss.values, rtol=1e-5)
    weight = bounds.largest_log_weight(problem, net, end.smoothed_margin.values)
    np.testing.assert_allclose(weight, np.log(np.abs(end.predictor.values).max(axis=1)), atol=1e-5)


def test_beyond_its_argument_the_bound_is_infinite():
    found = bounds.largest_log_weight(POINTS, DiagonalNet(3, alpha=0.1), [0.0, 1e-4, 1e6])
    assert found[0] == -np.inf
    assert np.isfinite(found[1])
    assert found[2] == np.inf
    two = bounds.largest_log_weight(POINTS, DiagonalNet(2, alpha=0.1), [1e6])
    assert np.isfinite(two).all()


@pytest.mark.parametrize(
    ("net", "problem", "words"),
    [
        (DiagonalNet(2, start=([1.0] * 3, [2.0] * 3)), POINTS, "start at alpha in every weight"),
        (DiagonalNet(2, alpha=1.0, signed=False), POINTS, "signed"),
        (DiagonalNet(2, alpha=1.0), Classification(POINTS.X, POINTS.y, "logistic"), "exponential"),
        (DiagonalNet(2, alpha=1.0), Classification([[1.0], [1.0]], [1, -1]), "separable"),
        (None, POINTS, "DiagonalNet"),
    ],
)
def test_what_the_lemmas_do_not_cover_is_refused(net, problem, words):
    with pytest.raises(ValueError, match=words):
        bounds.largest_log_loss(problem, net, [0.0])
