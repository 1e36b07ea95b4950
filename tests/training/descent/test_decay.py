"""Gradient descent with weight decay on every kind of problem, against loops and the flow."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from general_solvers import loss_gradient
from penchant import DiagonalNet, FunctionModel, GradientDescent, ParameterFlow, Steps, Time, train
from penchant.lab import Kind
from penchant.models import DifferenceFactorization
from penchant.problems import Completion, separable_points, sparse_regression
from penchant.record import At
from penchant.stop import Interpolated

PROBLEM = sparse_regression(4, 6, sparsity=2, seed=0)
COMPLETION = Completion((3, 3), [(0, 0), (0, 1), (2, 1)], [1.0, -0.5, 2.0], np.ones((3, 3)))


def tanh_net():
    import jax.numpy as jnp

    start = np.random.default_rng(1).standard_normal(12)
    return FunctionModel(lambda w, X: jnp.tanh(X @ w[:9].reshape(3, 3).T) @ w[9:], start)


def loop(model, problem, step, rate, steps):
    """theta after every step, written out with numpy from the definitions."""
    slope, rows = loss_gradient(model, problem), [model.start(problem.dimension)]
    for _ in range(steps):
        rows.append((1 - step * rate) * rows[-1] - step * slope(rows[-1]))
    return np.array(rows)


CASES = [
    (DiagonalNet(2, alpha=0.5), PROBLEM),
    (DiagonalNet(3, alpha=0.8), separable_points(5, 6, seed=2)),
    (DiagonalNet(2, alpha=0.8, signed=False), separable_points(5, 6, seed=2, loss="logistic")),
    (tanh_net(), sparse_regression(4, 3, sparsity=2, seed=0)),
    (tanh_net(), separable_points(5, 3, seed=2, loss="logistic")),
    (DifferenceFactorization(alpha=0.7), COMPLETION),
]


@pytest.mark.parametrize(("model", "problem"), CASES)
def test_a_step_shrinks_and_descends(model, problem):
    given = {"stop": Steps(40), "record": At(range(41))}
    path = train(model, problem, GradientDescent(0.01, weight_decay=0.5), **given)
    reference = loop(model, problem, 0.01, 0.5, 40)
    found = path.dataset.parameters.values
    assert np.allclose(found, reference, rtol=1e-12, atol=1e-13)
    assert not np.allclose(found, loop(model, problem, 0.01, 0.0, 40), rtol=1e-2)
    assert np.allclose(path.dataset.t, 0.01 * np.arange(41))
    assert np.allclose(path.dataset.parameter_norm, np.linalg.norm(reference, axis=1), rtol=1e-12)
    plain = train(model, problem, GradientDescent(0.01), **given)
    assert np.allclose(plain.dataset.parameters, loop(model, problem, 0.01, 0, 40), rtol=1e-12)


@settings(deadline=None, derandomize=True, max_examples=3)
@given(st.integers(0, 100), st.floats(0.01, 1.0), st.floats(0.2, 1.5))
def test_small_steps_follow_the_flow_to_first_order(seed, rate, alpha):
    problem, net = separable_points(4, 5, seed=seed, loss="logistic"), DiagonalNet(2, alpha=alpha)
    flow = train(net, problem, ParameterFlow(rtol=1e-10, weight_decay=rate), stop=Time(2.0))

    def error(steps):
        method = GradientDescent(2.0 / steps, weight_decay=rate)
        path = train(net, problem, method, stop=Steps(steps))
        return np.abs(path.predictor - flow.predictor).max()

    coarse, fine = error(200), error(800)
    assert np.log(coarse / fine) / np.log(4) == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize(("model", "problem"), CASES[3:])
def test_other_models_follow_the_flow_to_first_order_too(model, problem):
    flow = train(model, problem, ParameterFlow(rtol=1e-9, weight_decay=0.5), stop=Time(1.0))

    def error(steps):
        method = GradientDescent(1.0 / steps, weight_decay=0.5)
        path = train(model, problem, method, stop=Steps(steps))
        return np.abs(path.predictions - flow.predictions).max()

    assert np.log(error(500) / error(2000)) / np.log(4) == pytest.approx(1, abs=0.1)


def test_classification_stops_at_its_loss_and_is_labelled():
    problem = separable_points(5, 6, seed=2)
    net, method = DiagonalNet(2, alpha=1), GradientDescent(0.1)
    path = train(net, problem, method, stop=[Steps(10_000), Interpolated(0.1)])
    assert path.outcome.kind is Kind.SOLVED
    data = path.dataset
    losses = np.exp(-(data.predictor.values @ problem.signed_rows.T)).mean(axis=1)
    assert np.allclose(data.loss, losses, rtol=1e-12)
    assert losses[-1] <= 0.1 * losses[0] < losses[-2]
    before = train(net, problem, method, stop=Steps(path.steps - 1))
    assert np.exp(before.log_loss) > 0.1 * losses[0]


def test_a_step_too_large_for_the_decay_diverges():
    with pytest.raises(ValueError, match=r"1 - learning_rate.*, which must be above -1, got -29"):
        GradientDescent(30.0, weight_decay=1.0)
    method = GradientDescent(30.0, weight_decay=0.05)
    path = train(
        tanh_net(), sparse_regression(4, 3, sparsity=2, seed=0), method, stop=Steps(30_000)
    )
    assert path.outcome.kind is Kind.DIVERGED
    assert "smaller learning rate than 30" in path.outcome.sentence
