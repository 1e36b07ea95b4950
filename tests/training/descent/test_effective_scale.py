"""The effective scale and tilt of gradient steps: the least Q of both is where they stand."""

from __future__ import annotations

import numpy as np
import pytest

import tacit

RNG = np.random.default_rng(0)
X = RNG.standard_normal((8, 20)) / np.sqrt(8)
PROBLEM = tacit.Regression(X, X[:, :3] @ np.array([1.0, -1.0, 0.5]))
EVEN = tacit.DiagonalNet(2, alpha=0.1)
BIASED = tacit.DiagonalNet(2, start=(0.1 * np.exp(0.3 * RNG.standard_normal(20)), np.full(20, 0.1)))
RUNS = {
    "full batch": (EVEN, tacit.GradientDescent(0.03), None, 4000),
    "biased start": (BIASED, tacit.GradientDescent(0.03), None, 4000),
    "one sample": (BIASED, tacit.SGD(0.01), 1, 8000),
    "decay, not fitted": (BIASED, tacit.GradientDescent(0.02, weight_decay=0.05), 3, 3000),
    "scaled rates": (BIASED, tacit.GradientDescent(0.03, scaled=0.1), None, 3000),
}


@pytest.mark.parametrize("name", RUNS)
def test_the_run_stands_at_the_least_q_of_its_scale_and_tilt(name):
    net, method, batch, steps = RUNS[name]
    stop = tacit.Steps(steps)
    path = tacit.train(net, PROBLEM, tacit.EffectiveScale(method), batch=batch, stop=stop)
    plain = tacit.train(net, PROBLEM, method, batch=batch, stop=stop)
    np.testing.assert_array_equal(path.predictor, plain.predictor)
    own = tacit.Regression(X, X @ path.predictor)
    found = tacit.predicted_endpoint(path, own).beta
    np.testing.assert_allclose(found, path.predictor, atol=1e-11)
    q = tacit.effective_regularizer(path)
    without = tacit.interpolate(own, tacit.Q(2, alpha=1.0, shape=q.shape)).beta
    assert np.abs(without - path.predictor).max() > 1e-4  # the tilt is needed
    start = tacit.interpolate(own, tacit.Q(2, alpha=0.1)).beta
    assert np.abs(start - path.predictor).max() > 1e-3  # and so is the scale


def test_a_step_that_changes_the_sign_of_a_weight_keeps_the_law():
    problem = tacit.Regression([[1.0, 0.5]], [1.0])
    net = tacit.DiagonalNet(2, start=([2.0, 0.3], [0.2, 0.1]))
    method = tacit.EffectiveScale(tacit.GradientDescent(0.1, check=False))
    path = tacit.train(net, problem, method, stop=tacit.Steps(1))
    assert path.parameters[0] < 0 < net.start(2)[0]
    assert "came to 1 in coordinate 0 at step 0" in path.outcome.sentence
    small = tacit.EffectiveScale(tacit.GradientDescent(0.01))
    assert "came to 1" not in tacit.train(net, problem, small, stop=tacit.Steps(9)).outcome.sentence
    own = tacit.Regression(problem.X, problem.X @ path.predictor)
    np.testing.assert_allclose(tacit.predicted_endpoint(path, own).beta, path.predictor, atol=1e-12)


def test_a_run_that_is_resumed_has_the_same_tilt_to_the_bit():
    method = tacit.EffectiveScale(tacit.SGD(0.01))
    whole = tacit.train(EVEN, PROBLEM, method, batch=1, stop=tacit.Steps(300))
    half = tacit.train(EVEN, PROBLEM, method, batch=1, stop=tacit.Steps(140))
    rest = tacit.train(EVEN, PROBLEM, method, batch=1, stop=tacit.Steps(300), resume=half)
    np.testing.assert_array_equal(rest.memory[-1], whole.memory[-1])


def test_what_has_no_effective_scale_is_refused():
    with pytest.raises(ValueError, match="SGD without momentum, got Adam"):
        tacit.EffectiveScale(tacit.Adam(0.01))
    with pytest.raises(ValueError, match="got SGD"):
        tacit.EffectiveScale(tacit.SGD(0.01, momentum=0.9))
    method, stop = tacit.EffectiveScale(tacit.SGD(0.01)), tacit.Steps(2)
    with pytest.raises(ValueError, match=r"DiagonalNet\(depth=2\)"):
        tacit.train(tacit.DiagonalNet(3, alpha=0.1), PROBLEM, method, stop=stop)
    with pytest.raises(ValueError, match="takes no penalty"):
        tacit.train(EVEN, PROBLEM, method, stop=stop, penalty=0.1 * tacit.L2())
    plain = tacit.train(EVEN, PROBLEM, tacit.SGD(0.01), stop=stop)
    with pytest.raises(ValueError, match=r"train by EffectiveScale\(method\)"):
        tacit.predicted_endpoint(plain, PROBLEM)
    assert eval(repr(method), vars(tacit).copy() | {"SGD": tacit.SGD}) == method
