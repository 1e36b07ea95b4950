"""The forecast: its formula by another route, its margin level, runs so far, and bad input."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tacit
from tacit.flows.decay import WeightDecay
from tacit.probes.forecast import forecast, forecast_run, transition_time
from tacit.problems.classification import separable_points
from tacit.problems.grokking import majority


@settings(max_examples=20, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10**6),
    log_alpha=st.floats(1.0, 300.0),
    log_rate=st.floats(-300.0, -6.0),
    depth=st.sampled_from([2, 3, 5]),
)
def test_the_start_and_the_displacement_meet(seed, log_alpha, log_rate, depth):
    """For a diagonal net delta0 is |w| / (sqrt 2 D alpha^(D-1)), w the l2 max margin point."""
    problem = separable_points(4, 9, margin=0.3, seed=seed)
    rate = math.exp(log_rate)
    w = tacit.max_margin(problem.X, problem.y, tacit.L2()).beta
    log_delta = math.log(np.linalg.norm(w) / math.sqrt(2) / depth) - (depth - 1) * log_alpha
    log_start = log_alpha + math.log(18) / 2
    net = tacit.DiagonalNet(depth, log_alpha=log_alpha)
    # g of the theory; at most 1 means a decay too strong for a transition
    log_level = math.log(depth) + log_rate + 2 * (log_delta + (depth - 1) * log_start) / depth
    if -log_level < 3:
        return
    found = forecast(net, problem, rate)
    z, g = found.t2 * rate, found.smoothed_margin
    if z > 0:
        meeting = log_delta + math.log(g) + (depth - 1) * z
        assert log_start - z == pytest.approx(meeting, abs=1e-6 * abs(log_alpha))
        # loss against decay there: e^-g = L rate g |delta|^2 with |delta| that of margin one
        balance = math.log(depth) + log_rate + math.log(g) + 2 * (meeting - math.log(g))
        assert -g == pytest.approx(balance, abs=1e-6 * (abs(log_rate) + log_alpha))
        assert found.low <= found.t2 <= found.high
        assert found.log_norm == pytest.approx(log_start - z)
    else:
        assert "no delayed transition" in found.sentence


def test_it_tends_to_log_alpha_over_rate():
    problem, rate = separable_points(4, 9, margin=0.3, seed=0), 1e-9
    ratios = []
    for log_alpha in (5.0, 50.0, 500.0):
        found = forecast(tacit.DiagonalNet(2, log_alpha=log_alpha), problem, rate)
        assert found.naive == pytest.approx(log_alpha / rate)
        ratios.append(abs(found.t2 / found.naive - 1))
    assert ratios[0] > 3 * ratios[1] > 9 * ratios[2]


@pytest.fixture(scope="module")
def run():
    problem, rate = majority(40, 300, seed=2), 1e-3
    net = tacit.DiagonalNet(2, alpha=4.0)
    path = WeightDecay(tacit.DualFlow(rtol=1e-6, t_max=9 / rate), rate).run(net, problem)
    return net, problem, rate, path.dataset


def test_a_run_is_forecast_before_it_happens(run):
    net, problem, rate, dataset = run
    expected = forecast(net, problem, rate)
    turned = float(np.interp(45, dataset.turn.values, dataset.t.values))
    assert expected.low <= turned <= expected.high
    seen = dataset.t.values <= expected.t2 / 2
    on_the_way = forecast_run(*(dataset[k].values[seen] for k in ("t", "parameter_norm", "turn")))
    assert on_the_way.rate == pytest.approx(rate, rel=0.02)
    assert on_the_way.low <= turned <= on_the_way.high
    # the control: (1/rate) log alpha alone is not in the interval, nor is the total norm's log
    assert not expected.low <= expected.naive <= expected.high
    assert not expected.low <= math.log(np.linalg.norm(net.start(300))) / rate <= expected.high


def test_a_run_past_its_transition_says_so(run):
    dataset = run[3]
    past = forecast_run(*(dataset[k].values for k in ("t", "parameter_norm", "turn")))
    assert "has happened" in past.sentence


def test_time_as_steps(run):
    net, problem, rate, _ = run
    expected = forecast(net, problem, rate)
    assert expected.steps(0.01) == math.ceil(expected.t2 / 0.01)


def test_regression_meets_where_theory_says():
    """delta0 of a diagonal net is |w| / (sqrt(8) alpha) with w the shortest interpolant."""
    problem = tacit.sparse_regression(5, 12, 2, noise=0.0, seed=3)
    w = np.linalg.pinv(problem.X) @ problem.y
    found = forecast(tacit.DiagonalNet(2, alpha=20.0), problem, 1e-4)
    delta = np.linalg.norm(w) / math.sqrt(8) / 20
    assert found.t2 * 1e-4 == pytest.approx(math.log(20 * math.sqrt(24) / delta) / 2)
    with pytest.raises(ValueError, match="so strong"):
        forecast(tacit.DiagonalNet(2, alpha=2.0), problem, 1e3)


def test_a_small_start_has_no_kernel_phase():
    found = forecast(tacit.DiagonalNet(2, alpha=1e-3), majority(40, 300, seed=2), 1e-3)
    assert found.t2 == 0
    assert "no delayed transition" in found.sentence
    assert math.isnan(found.naive)


def zero(problem):
    return tacit.Regression(problem.X, 0 * problem.y)


def biased():
    from tacit.models.function import FunctionModel

    return FunctionModel(lambda w, X: X @ w[:2] + w[2] ** 2, np.ones(3), homogeneity=None)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda p: forecast(tacit.DiagonalNet(2, alpha=3.0), p, 0.0), "without decay"),
        (lambda p: forecast(tacit.DiagonalNet(2, alpha=3.0), p, -1.0), "rate must be > 0"),
        (lambda p: forecast(tacit.DiagonalNet(2, alpha=3.0), p, 1e4), "so strong"),
        (lambda p: forecast(tacit.DiagonalNet(2, alpha=3.0), "p", 1e-3), "must be a Regression"),
        (lambda p: forecast(biased(), p, 1e-3), "needs f\\(c theta\\)"),
        (lambda p: transition_time(0.5, rate=1e-3), "is not positive"),
        (lambda p: transition_time(rate=1e-3), "exactly one"),
        (lambda p: forecast(tacit.DiagonalNet(2, alpha=3.0), zero(p), 1e-3), "nothing to fit"),
        (lambda p: forecast_run([1.0] * 9, [1.0] * 9, [1.0] * 9), "t must increase"),
        (lambda p: transition_time(log_alpha=1e10, rate=1e-300), "beyond float64"),
        (lambda p: forecast_run([1, 2], [1, 1], [1, 1]), "at least 4 times"),
        (lambda p: forecast_run(range(9), [1.0] * 9, [1.0] * 9), "does not decay"),
        (lambda p: forecast_run(range(9), np.exp(-np.arange(9.0)), [0.0] * 9), "has the run begun"),
        (lambda p: forecast_run(range(9), [1.0] * 8, [1.0] * 9), "one value per time"),
    ],
)
def test_wrong_input_speaks(make, sentence):
    problem = separable_points(4, 2, margin=0.3, seed=1)
    with pytest.raises(ValueError, match=sentence):
        make(problem)


def test_transition_time_is_the_formula():
    assert transition_time(math.e**2, rate=0.5) == pytest.approx(4.0)
