"""A flow beside its tangent twin, against `train`, closed forms and other starts."""

import numpy as np
import pytest

import penchant
from penchant import Classification, DiagonalNet, ParameterFlow, Regression
from penchant.models import Difference, LinearPredictor, Unbiased, linearize, two_layer
from penchant.problems import separable_points, sparse_regression, three_points
from penchant.record import At
from penchant.solvers import tangent_twin

TIMES = np.array([0.0, 0.01, 0.3, 2.0])


@pytest.mark.parametrize("loss", ["exp", "logistic"])
@pytest.mark.parametrize("depth", [2, 3])
def test_both_are_flows_of_train(loss, depth):
    problem = three_points("3d", loss=loss)
    net = DiagonalNet(depth, alpha=1.5)
    pair = tangent_twin(net, problem, TIMES, np.eye(3))
    for model, outputs in ((net, pair.outputs[1:]), (linearize(net), pair.tangent[1:])):
        losses = {"exp": lambda m: np.exp(-m), "logistic": lambda m: np.logaddexp(0, -m)}
        margins = -np.log(losses[loss](outputs @ problem.signed_rows.T).mean(axis=1))
        path = penchant.train(
            model,
            problem,
            ParameterFlow(rtol=1e-10),
            stop=penchant.stop.LogLoss(-margins[-1]),
            record=At(margins=margins),
        ).dataset
        rows = [int(np.abs(path.smoothed_margin.values - g).argmin()) for g in margins]
        np.testing.assert_allclose(np.exp(path.log_t.values[rows]), TIMES[1:], rtol=1e-5)
        np.testing.assert_allclose(outputs, path.predictor.values[rows], rtol=1e-5, atol=1e-8)
    assert np.abs(pair.outputs - pair.tangent).max() > 1e-3


@pytest.mark.parametrize("loss", ["squares", "half squares"])
def test_the_twin_of_squares_in_closed_form(loss):
    drawn = sparse_regression(3, 5, sparsity=2, seed=0)
    problem = Regression(drawn.X, drawn.y, loss=loss)
    net = DiagonalNet(2, alpha=0.5)
    features = net.jacobian(net.start(5), problem.X)
    values, vectors = np.linalg.eigh(features @ features.T)
    rate = 2.0 if loss == "squares" else 1.0
    pair = tangent_twin(net, problem, TIMES)
    for t, row in zip(TIMES, pair.tangent, strict=True):
        learned = vectors @ (-np.expm1(-rate * t * values) * (vectors.T @ problem.y))
        np.testing.assert_allclose(row, learned, atol=1e-9)
    assert np.abs(pair.outputs[-1] - pair.tangent[-1]).max() > 1e-3


def test_a_net_that_is_not_separable_and_a_start_that_is_not_zero():
    """Unbiased and its net move alike: outputs are those beyond the start."""
    X = np.random.default_rng(0).normal(size=(4, 3))
    problem = Classification(X, [1, -1, 1, 1])
    net = two_layer(width=4, alpha=1.0, activation="tanh", seed=1)
    own = tangent_twin(Unbiased(net), problem, [0.5, 1.0])
    features = net.jacobian(net.start(3), X)
    twin = tangent_twin(LinearPredictor(), Classification(features, problem.y), [0.5, 1.0])
    np.testing.assert_allclose(twin.outputs, own.tangent, atol=1e-8)
    assert np.abs(own.outputs - own.tangent).max() > 1e-3
    pair = tangent_twin(Difference(net), problem, [0.5, 1.0])
    assert pair.distance[0] <= pair.distance[1]
    shifted = Regression(X, net.predict(net.start(3), X))  # the start fits these values
    still = tangent_twin(net, shifted, [0.5, 1.0])
    np.testing.assert_allclose(still.outputs, 0, atol=1e-12)


def test_large_starts_keep_their_digits_and_come_close():
    problem = separable_points(3, 4, margin=0.4, seed=1)
    far = [
        tangent_twin(DiagonalNet(2, alpha=alpha), problem, [1.0]).distance[-1]
        for alpha in (16.0, 128.0, 1024.0)
    ]
    assert far[0] > 50 * far[1] > 2500 * far[2] > 0


def test_times_and_points_that_do_not_fit_are_refused():
    problem, net = three_points("3b"), DiagonalNet(2, alpha=1.0)
    for times in ([1.0, 0.5], [-1.0, 1.0], []):
        with pytest.raises(ValueError, match=r"^tangent_twin: times"):
            tangent_twin(net, problem, times)
    with pytest.raises(ValueError, match=r"^tangent_twin: points must have 3 columns"):
        tangent_twin(net, problem, [1.0], np.eye(2))
