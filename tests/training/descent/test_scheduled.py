"""Learning rates that follow a schedule: the same steps by hand, their time, and predictions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penchant
from penchant.lab import double_precision

PROBLEM = penchant.problems.sparse_regression(8, 20, sparsity=2, noise=0.1, seed=0)
NET = penchant.DiagonalNet(2, alpha=0.1)
WARM = ([0, 50, 200], [0.0, 1.0, 0.2])


def factors(steps, at, values):
    return np.interp(np.arange(steps), at, values)


def by_hand(rate, decay, per_step):
    w = NET.start(20)
    sign = np.repeat([1.0, -1.0], 20)
    for factor in per_step:
        beta = w[:20] ** 2 - w[20:] ** 2
        g = 2 * PROBLEM.X.T @ (PROBLEM.X @ beta - PROBLEM.y)
        w = w - rate * factor * (2 * sign * np.tile(g, 2) * w + decay * w)
    return w


@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_steps_are_those_of_a_loop_by_hand(decay):
    method = penchant.methods.Scheduled(penchant.GradientDescent(0.01, weight_decay=decay), *WARM)
    path = penchant.train(NET, PROBLEM, method, stop=penchant.Steps(300))
    hand = by_hand(0.01, decay, factors(300, *WARM))
    np.testing.assert_allclose(path.parameters, hand, rtol=1e-12)
    constant = by_hand(0.01, decay, np.ones(300))  # the control: without the schedule
    assert np.abs(path.parameters - constant).max() > 1e-3
    assert path.t == pytest.approx(0.01 * factors(300, *WARM).sum(), rel=1e-12)


@pytest.mark.parametrize(
    "method", [penchant.GradientDescent(0.01, momentum=0.9), penchant.Adam(0.01)]
)
def test_a_factor_of_one_changes_nothing_to_the_bit(method):
    given = {"batch": 3, "seed": 1, "stop": penchant.Steps(40)}
    plain = penchant.train(NET, PROBLEM, method, **given)
    same = penchant.train(NET, PROBLEM, penchant.methods.Scheduled(method, [0], [1.0]), **given)
    np.testing.assert_array_equal(same.parameters, plain.parameters)


def test_a_factor_that_jumps_holds_from_its_step_on():
    method = penchant.methods.Scheduled(
        penchant.GradientDescent(0.01), [0, 10, 10, 20], [1.0, 1.0, 0.1, 0.1]
    )
    path = penchant.train(NET, PROBLEM, method, stop=penchant.Steps(20))
    hand = by_hand(0.01, 0.0, [1.0] * 10 + [0.1] * 10)
    np.testing.assert_allclose(path.parameters, hand, rtol=1e-12)
    assert path.t == pytest.approx(0.11, rel=1e-9)


def test_a_scheduled_run_resumes_to_the_bit():
    method, given = (
        penchant.methods.Scheduled(penchant.GradientDescent(0.01), *WARM),
        {"batch": 2, "seed": 3},
    )
    whole = penchant.train(NET, PROBLEM, method, stop=penchant.Steps(120), **given)
    half = penchant.train(NET, PROBLEM, method, stop=penchant.Steps(60), **given)
    rest = penchant.train(NET, PROBLEM, method, stop=penchant.Steps(120), resume=half, **given)
    np.testing.assert_array_equal(rest.parameters, whole.parameters)


@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=5).map(sorted),
    st.lists(st.floats(0, 2), min_size=5, max_size=5),
    st.integers(0, 60),
)
@settings(max_examples=60, deadline=None)
def test_the_time_is_the_sum_of_the_rates(at, values, k):
    values = values[: len(at)]
    if not max(values) > 0.01:
        return
    method = penchant.methods.Scheduled(penchant.GradientDescent(0.5), at, values)
    with double_precision():
        every = np.array([float(method.clock.factor(step)) for step in range(k)])
    assert method.clock.total(k) == pytest.approx(every.sum(), rel=1e-5, abs=1e-5)
    reached = method.clock.steps_in(0.5 * method.clock.total(k))
    assert reached <= k + 1e-3


def test_time_ends_a_scheduled_run():
    method = penchant.methods.Scheduled(penchant.GradientDescent(0.01), *WARM)
    path = penchant.train(NET, PROBLEM, method, stop=penchant.Time(0.5))
    sums = np.cumsum(0.01 * factors(500, *WARM))
    assert path.steps == int(np.argmax(sums >= 0.5)) + 1
    assert path.t == pytest.approx(0.5, abs=0.01)


def test_the_effective_scale_holds_with_a_schedule():
    method = penchant.methods.EffectiveScale(
        penchant.methods.Scheduled(penchant.GradientDescent(0.02), *WARM)
    )
    path = penchant.train(NET, PROBLEM, method, batch=1, stop=penchant.Steps(2000))
    own = penchant.Regression(PROBLEM.X, PROBLEM.X @ path.predictor)
    found = penchant.interpolate(own, penchant.forecasts.effective_regularizer(path)).beta
    np.testing.assert_allclose(found, path.predictor, atol=1e-12)


def test_a_scheduled_run_is_predicted():
    """The scales of ten seeds lie in the interval; those of the constant rate do not."""
    plain, stop = penchant.GradientDescent(0.004, label_noise=0.2), penchant.Steps(6000)
    method = penchant.methods.Scheduled(plain, [0, 1000, 6000], [0.0, 1.0, 0.0])
    predicted = penchant.forecasts.predict_run(NET, PROBLEM, method, batch=2, stop=stop)
    constant = penchant.forecasts.predict_run(NET, PROBLEM, plain, batch=2, stop=stop)
    clocked = penchant.methods.EffectiveScale(method)
    shares = []
    for seed in range(10):
        path = penchant.train(NET, PROBLEM, clocked, batch=2, stop=stop, seed=seed)
        scale = penchant.forecasts.effective_regularizer(path).shape
        inside = [((run.low < scale) & (scale < run.high)).mean() for run in (predicted, constant)]
        shares.append(inside)
    covered, control = np.mean(shares, axis=0)
    assert covered > 0.8
    assert control < 0.5


@pytest.mark.parametrize(
    ("method", "steps", "values", "words"),
    [
        (penchant.GradientDescent(0.1, scaled=1.0), [0], [1.0], "with a fixed learning rate, got"),
        (penchant.DualFlow(), [0], [1.0], "needs a step-by-step method"),
        (penchant.GradientDescent(0.1), [0, 1], [1.0], "must have one length, got 2 and 1"),
        (penchant.GradientDescent(0.1), [5, 1], [1.0, 1.0], "and not fall"),
        (penchant.GradientDescent(0.1), [0.5], [1.0], "must be whole"),
        (penchant.GradientDescent(0.1), [0, 1], [1.0, -1.0], "must be >= 0 and not all 0"),
        (penchant.GradientDescent(0.1), [0], [0.0], "must be >= 0 and not all 0"),
        (penchant.GradientDescent(0.1), [], [], "steps"),
        (penchant.GradientDescent(0.1), [0], [float("nan")], "factors"),
    ],
)
def test_what_is_no_schedule_is_refused_in_one_sentence(method, steps, values, words):
    with pytest.raises(ValueError, match=f"Scheduled: .*{words}"):
        penchant.methods.Scheduled(method, steps, values)


def test_a_schedule_moves_the_forecast_of_grokking_and_the_run_alike():
    """Less noise late: the run groks later than at a constant rate, and earlier than a flow."""
    of = penchant.problems.sparse_regression(4, 8, sparsity=1, noise=0.0, seed=0)
    net, decay = penchant.DiagonalNet(2, alpha=1.0), 0.03
    flow = penchant.forecast(net, of, decay, measure=of.population_error).transition
    sgd = penchant.GradientDescent(3e-3, label_noise=0.5, weight_decay=decay)
    steps = round(flow / sgd.learning_rate)
    falling = penchant.methods.Scheduled(sgd, [0, steps], [1.0, 0.2])
    given = {"batch": 1, "measure": of.population_error}
    constant, found = (
        penchant.forecast(net, of, method=method, **given).transition for method in (sgd, falling)
    )
    same = penchant.forecast(
        net, of, method=penchant.methods.Scheduled(sgd, [0], [1.0]), **given
    ).transition
    assert same == pytest.approx(constant, rel=0.01)
    stop, record = penchant.Steps(4 * steps), penchant.record.LogSpaced(60)  # to the time 1.2 flow
    path = penchant.train(net, of, falling, batch=1, stop=stop, record=record).dataset
    grid = np.linspace(0, float(path.t[-1]), 2000)
    curve = np.interp(grid, path.t.values, path.test_error.values)
    half = of.population_error(np.linalg.lstsq(of.X, of.y)[0]) / 2
    measured = float((curve > half).mean() * grid[-1])
    assert found == pytest.approx(measured, rel=0.1)
    assert constant < 0.95 * found < 0.95 * flow
