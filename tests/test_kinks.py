"""Nets with kinks under weight decay: the sentence says what stopped the flow, and its way works.

The paths of such nets take test samples, so that the jump of the test curve can be read.
"""

import re

import numpy as np
import pytest

import tacit
from tacit.records import Kind

RATE = 0.01


def problems(seed=0, samples=20):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(samples, 3))
    y = np.sign(X[:, 0] * X[:, 1])
    return tacit.Classification(X, y), tacit.Regression(X, y)


def recommended(path):
    call = re.search(r"use (WeightDecay\(.*\)|GradientDescent\(.*\)), whose", path.outcome.sentence)
    return eval(call.group(1), {name: getattr(tacit, name) for name in tacit.__all__})


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("rate", [RATE, 0.0])
def test_a_flow_that_stops_at_a_kink_says_so_and_what_it_recommends_works(kind, rate):
    net, problem = tacit.relu_net(2, 20, alpha=1.0, seed=1), problems()[kind]
    flow = tacit.ParameterFlow(rtol=1e-5, t_max=20.0)
    stalled = tacit.WeightDecay(flow, rate).run(net, problem)
    assert stalled.outcome.kind is Kind.STALLED
    assert stalled.t < 10
    assert "the gradient jumps there (a kink" in stalled.outcome.sentence
    assert "raise rtol" not in stalled.outcome.sentence
    path = recommended(stalled).run(net, problem)
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


def test_a_smooth_net_that_gives_up_is_not_told_of_kinks():
    """Control: the last step of a net without kinks is no jump of its gradient."""
    import jax.numpy as jnp

    def smooth(w, X):
        return jnp.tanh(X @ w[:60].reshape(3, 20)) @ w[60:80]

    net = tacit.FunctionModel(smooth, np.random.default_rng(0).normal(size=80))
    path = tacit.WeightDecay(tacit.ParameterFlow(rtol=1e-6, t_max=20.0), RATE).run(
        net, problems()[0]
    )
    assert path.outcome.kind is Kind.SOLVED
    from tacit.training.exact.stiff.integrator import TangentMarch
    from tacit.training.exact.task import Moment, task

    job = task("test", net, problems()[0])
    march = TangentMarch("test", job.samples, job.loss, job.start, RATE, 1e-6)
    moment = Moment(path.t, path.parameters, path.predictions)
    assert march._kink(moment, 20.0) is None


@pytest.mark.parametrize("method", ["descent", "flow"])
def test_test_samples_give_the_jump_of_a_path_without_a_predictor(method):
    import jax.numpy as jnp

    def smooth(w, X):
        return jnp.tanh(X @ w[:60].reshape(3, 20)) @ w[60:80]

    net = tacit.FunctionModel(smooth, np.random.default_rng(0).normal(size=80))
    problem, test = problems()[0], problems(seed=1, samples=200)[0]
    flow = tacit.ParameterFlow(rtol=1e-6, t_max=100.0)
    if method == "descent":
        flow = tacit.GradientDescent(0.005, 20000)
    path = tacit.WeightDecay(flow, 1e-3).run(net, problem, test=test)
    found = path.dataset
    last = np.asarray(net.predict(path.parameters, test.X))
    assert found.test_accuracy.values[-1] == np.mean(np.sign(last) == test.y)
    expected = np.exp(-last * test.y).mean()  # the loss of a Classification by default
    assert found.test_loss.values[-1] == pytest.approx(expected, rel=1e-9)
    np.testing.assert_array_equal(found.final_parameters.values, path.parameters)
    np.testing.assert_array_equal(found.X_test.values, test.X)
    read = tacit.grokking(found.t, found.train_accuracy, found.test_accuracy, level=0.8)
    assert np.isfinite(read.t1)


def test_test_samples_where_they_do_not_belong_are_refused():
    problem, other = problems()
    descent = tacit.GradientDescent(0.05, 10)
    net = tacit.relu_net(2, 20, alpha=1.0)
    with pytest.raises(ValueError, match="records no test samples; wrap ParameterFlow"):
        tacit.WeightDecay(tacit.DualFlow(t_max=1.0), 1e-3).run(
            tacit.DiagonalNet(2, alpha=1.0), problem, test=problem
        )
    with pytest.raises(ValueError, match="its path keeps the predictor"):
        descent.run(tacit.DiagonalNet(2, alpha=1.0), problem, test=problem)
    with pytest.raises(ValueError, match="test must be a Regression or a Classification"):
        descent.run(net, problem, test=other)


def test_test_samples_of_a_regression():
    _, problem = problems()
    _, test = problems(seed=1)
    net = tacit.relu_net(2, 20, alpha=1.0)
    path = tacit.GradientDescent(1e-3, 50).run(net, problem, test=test)
    last = np.asarray(net.predict(path.parameters, test.X))
    assert path.dataset.test_loss.values[-1] == pytest.approx(np.sum((last - test.y) ** 2))
