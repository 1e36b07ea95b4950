"""Nets with kinks under weight decay: the sentence says what stopped the flow, and its way works.

The paths of such nets take test samples, so that the jump of the test curve can be read.
"""

import dataclasses
import re

import jax.numpy as jnp
import numpy as np
import pytest

import penchant
from penchant import GradientDescent
from penchant.lab import Kind
from penchant.training.exact.stiff import StiffIntegrator
from penchant.training.samples import SampleTask
from penchant.training.task import Moment

RATE = 0.01


def problems(seed=0, samples=20):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(samples, 3))
    y = np.sign(X[:, 0] * X[:, 1])
    return penchant.Classification(X, y), penchant.Regression(X, y)


def smooth(w, X):
    return jnp.tanh(X @ w[:60].reshape(3, 20)) @ w[60:80]


def recommended(path):
    """The method and the stop rule that the sentence names."""
    calls = re.search(r"use (\S.*\)) with stop=(\S+\)), whose", path.outcome.sentence)
    known = {"GradientDescent": GradientDescent, "Steps": penchant.Steps}
    return tuple(eval(call, known) for call in calls.groups())


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("rate", [RATE, 0.0])
def test_a_flow_that_stops_at_a_kink_says_so_and_what_it_recommends_works(kind, rate):
    net, problem = penchant.models.relu_net(2, 20, alpha=1.0, seed=1), problems()[kind]
    flow = penchant.ParameterFlow(rtol=1e-5, weight_decay=rate)
    stalled = penchant.train(net, problem, flow, stop=penchant.Time(20.0))
    assert stalled.outcome.kind is Kind.STALLED
    assert stalled.t < 10
    assert "the gradient jumps there (a kink" in stalled.outcome.sentence
    assert "raise rtol" not in stalled.outcome.sentence
    method, stop = recommended(stalled)
    path = penchant.train(net, problem, method, stop=stop)
    assert path.outcome.kind is Kind.SOLVED
    assert path.t == pytest.approx(20.0, rel=0.01)
    assert path.log_loss < stalled.log_loss - 0.3
    # the second route: up to the kink both are the same path
    early = stalled.t / 2
    near = [
        np.interp(np.log(early), np.log(p.dataset.t.values[1:]), p.dataset.log_loss.values[1:])
        for p in (stalled, path)
    ]
    assert near[0] == pytest.approx(near[1], abs=0.02)


def test_the_error_of_a_smooth_net_does_not_mention_kinks():
    """Control: the last step of a net without kinks is no jump of its gradient."""
    net = penchant.FunctionModel(smooth, np.random.default_rng(0).normal(size=80))
    flow = penchant.ParameterFlow(rtol=1e-6, weight_decay=RATE)
    path = penchant.train(net, problems()[0], flow, stop=penchant.Time(20.0))
    assert path.outcome.kind is Kind.SOLVED
    task = SampleTask(net, problems()[0])
    system = StiffIntegrator(task, RATE, 1e-6, 20.0)
    moment = Moment(path.t, path.parameters, path.predictions)
    assert system._kink(moment) is None


@pytest.mark.parametrize("method", ["descent", "flow"])
def test_test_samples_give_the_jump_of_a_path_without_a_predictor(method):
    net = penchant.FunctionModel(smooth, np.random.default_rng(0).normal(size=80))
    test = problems(seed=1, samples=200)[0]
    problem = dataclasses.replace(problems()[0], test=test)
    flow = penchant.ParameterFlow(rtol=1e-6, weight_decay=0.001)
    if method == "descent":
        flow = GradientDescent(0.005, weight_decay=0.001)
    path = penchant.train(net, problem, flow, stop=penchant.Time(100.0))
    found = path.dataset
    last = np.asarray(net.predict(path.parameters, test.X))
    assert found.test_accuracy.values[-1] == np.mean(np.sign(last) == test.y)
    expected = np.exp(-last * test.y).mean()  # the loss of a Classification by default
    assert found.test_loss.values[-1] == pytest.approx(expected, rel=1e-9)
    np.testing.assert_array_equal(found.final_parameters.values, path.parameters)
    np.testing.assert_array_equal(found.X_test.values, test.X)
    read = penchant.measures.grokking(found.t, found.train_accuracy, found.test_accuracy, level=0.8)
    assert np.isfinite(read.t1)


def test_test_samples_of_another_kind_are_refused():
    problem, other = problems()
    with pytest.raises(ValueError, match="test must be a Classification too, got Regression"):
        dataclasses.replace(problem, test=other)


@pytest.mark.parametrize("flow", [penchant.DualFlow, penchant.ParameterFlow])
@pytest.mark.parametrize("rate", [0.0, 0.01])
def test_test_samples_of_a_linear_predictor(flow, rate):
    problem, test = (
        penchant.problems.separable_points(6, 4, seed=1),
        penchant.problems.separable_points(50, 4, seed=2),
    )
    problem = dataclasses.replace(problem, test=test)
    net, method = penchant.DiagonalNet(2, alpha=1.0), flow(weight_decay=rate)
    found = penchant.train(net, problem, method, stop=penchant.Time(20.0)).dataset
    margins = found.predictor.values @ test.signed_rows.T
    np.testing.assert_allclose(found.test_loss, np.exp(-margins).mean(axis=1), rtol=1e-12)
    shares = np.where(margins == 0, 0.5, margins > 0).mean(axis=1)
    np.testing.assert_allclose(found.test_accuracy, shares, rtol=1e-12)


def test_test_samples_of_a_regression():
    test = problems(seed=1)[1]
    problem = dataclasses.replace(problems()[1], test=test)
    net = penchant.models.relu_net(2, 20, alpha=1.0)
    path = penchant.train(net, problem, GradientDescent(1e-3), stop=penchant.Steps(50))
    last = np.asarray(net.predict(path.parameters, test.X))
    assert path.dataset.test_loss.values[-1] == pytest.approx(np.sum((last - test.y) ** 2))
