"""Weight decay: the exact dual flow against raw parameters, closed forms and the slow limit."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

import tacit
from tacit.flows.decay import WeightDecay
from tacit.problems.classification import Classification
from tacit.problems.population import accuracy
from tacit.problems.regression import Regression
from tacit.training.exact.decay.dual import MarginDecay


def raw(net, problem, rate, times):
    """Parameters at `times`, by LSODA on theta' = -grad L - rate theta."""

    def velocity(_, theta):
        slopes = net.slopes(theta)
        if isinstance(problem, Classification):
            margins = problem.signed_rows @ net.predictor(theta)
            pull = np.exp(-margins) if problem.loss == "exp" else 1 / (1 + np.exp(margins))
            return (slopes * (pull / len(margins) @ problem.signed_rows)).ravel() - rate * theta
        residual = problem.X @ net.predictor(theta) - problem.y
        return -2 * (slopes * (residual @ problem.X)).ravel() - rate * theta

    start = net.start(problem.dimension)
    atol = 1e-14 * np.abs(start).max()
    found = solve_ivp(velocity, (0, times[-1]), start, method="LSODA", rtol=1e-11, atol=atol,
                      t_eval=times)  # fmt: skip
    assert found.success
    return found.y.T


def problems(X, kind):
    if kind == "squares":
        return Regression(X, 1.5 * X[:, 0] - X[:, 1])
    return Classification(X, np.where(X[:, 0] > 0, 1.0, -1.0), kind)


def gap(found, wanted):
    return float((np.abs(found - wanted).max(axis=1) / np.abs(wanted).max(axis=1)).max())


TIMES = np.array([0.01, 1.0, 20.0, 60.0, 100.0, 200.0, 300.0])


@pytest.mark.parametrize("depth", [2, 3, 5])
@pytest.mark.parametrize("kind", ["exp", "logistic", "squares"])
def test_the_dual_flow_is_the_flow_of_the_parameters(depth, kind):
    rng = np.random.default_rng([depth, len(kind)])
    X = rng.standard_normal((4, 7))
    shape = np.exp(rng.normal(0, 0.3, 7)) * rng.choice([-1, 1], 7)
    net = tacit.DiagonalNet(depth, alpha={2: 2.0, 3: 2.0, 5: 1.3}[depth], shape=shape)
    problem = problems(X, kind)
    dataset = WeightDecay(tacit.DualFlow(record=TIMES, rtol=1e-9), 0.01).run(net, problem).dataset
    theta = raw(net, problem, 0.01, TIMES)
    wanted = np.array([net.predictor(row) for row in theta])
    assert gap(dataset.predictor.values[1:], wanted) < 1e-6
    norms = np.linalg.norm(theta, axis=1)
    np.testing.assert_allclose(dataset.parameter_norm.values[1:], norms, rtol=1e-6)
    turns = tacit.angle(theta, np.tile(net.start(7), (len(theta), 1)))
    np.testing.assert_allclose(dataset.turn.values[1:], turns, rtol=1e-5, atol=1e-9)
    # the control: a slightly different rate is told apart
    other = WeightDecay(tacit.DualFlow(record=TIMES, rtol=1e-6), 0.0101).run(net, problem).dataset
    assert gap(other.predictor.values[1:], wanted) > 1e-4


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10**6),
    log_alpha=st.floats(-1.0, 2.0),
    log_rate=st.floats(-6.0, -1.0),
    kind=st.sampled_from(["exp", "logistic", "squares"]),
)
def test_any_start_and_rate_agree_with_raw_parameters(seed, log_alpha, log_rate, kind):
    X = np.random.default_rng(seed).standard_normal((3, 5))
    net, rate, problem = tacit.DiagonalNet(2, log_alpha=log_alpha), math.exp(log_rate), None
    problem = problems(X, kind)
    times = np.array([0.1, 1.0, 3.0]) / rate
    dataset = WeightDecay(tacit.DualFlow(record=times, rtol=1e-9), rate).run(net, problem).dataset
    wanted = np.array([net.predictor(row) for row in raw(net, problem, rate, times)])
    assert gap(dataset.predictor.values[1:], wanted) < 1e-6


@pytest.mark.parametrize("kind", ["exp", "logistic", "squares"])
@pytest.mark.parametrize("log_alpha", [60.0, 690.0])
def test_a_huge_start_ends_where_a_large_one_does(log_alpha, kind):
    """Once both have decayed to e^3 the rest of the way is the same: only t is shifted."""
    X = np.random.default_rng(3).standard_normal((3, 6))
    problem, rate = problems(X, kind), 0.01
    left = np.array([3.0, 0.0, -2.0])  # log of the decayed start
    ends = []
    for size in (30.0, log_alpha):
        flow = WeightDecay(tacit.DualFlow(record=(size - left) / rate, rtol=1e-8), rate)
        path = flow.run(tacit.DiagonalNet(2, log_alpha=size), problem)
        assert path.outcome.ok
        ends.append(path.dataset.predictor.values[1:])
    assert gap(ends[1], ends[0]) < 1e-5
    assert gap(ends[0][:1], ends[0][2:]) > 1e-2  # the control: they do move


@pytest.mark.parametrize("kind", ["exp", "squares"])
@pytest.mark.parametrize("alpha", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("rate", [1e-4, 1e-12])
def test_a_small_start_escapes_on_time(alpha, kind, rate):
    """The second route integrates log u and log v, which are of order one at any scale."""
    problem = tacit.sparse_regression(4, 8, sparsity=2, noise=0.0, seed=0)
    if kind == "exp":
        problem = tacit.separable_points(4, 8, margin=0.3, seed=0)
    times = np.array([0.3, 1.0, 3.0, 10.0, 20.0])

    def velocity(_, logs):
        beta = np.exp(2 * logs[:8]) - np.exp(2 * logs[8:])
        if kind == "squares":
            pull = 2 * (problem.y - problem.X @ beta) @ problem.X
        else:
            pull = np.exp(-problem.signed_rows @ beta) @ problem.signed_rows / 4
        return np.concatenate([2 * pull, -2 * pull]) - rate

    start = np.full(16, math.log(alpha))
    with np.errstate(over="ignore", invalid="ignore"):  # in trial steps that are then rejected
        logs = solve_ivp(velocity, (0, 20), start, "DOP853", times, rtol=1e-10, atol=1e-11).y.T
    wanted = np.exp(2 * logs[:, :8]) - np.exp(2 * logs[:, 8:])
    flow = WeightDecay(tacit.DualFlow(record=times, rtol=1e-9), rate)
    path = flow.run(tacit.DiagonalNet(2, alpha=alpha), problem)
    assert path.outcome.ok
    assert gap(path.dataset.predictor.values[1:], wanted) < 1e-5


def test_regression_follows_the_q_path_of_the_decayed_start():
    """beta = 2 a sinh(X^T nu) with X beta = y is W's argmin Q at alpha e^(-rate t), rate -> 0."""
    problem = tacit.sparse_regression(5, 12, sparsity=2, noise=0.0, seed=1)
    z = np.array([0.5, 2.0, 3.0, 5.0])
    gaps = []
    for rate in (1e-3, 1e-5):
        flow = WeightDecay(tacit.DualFlow(record=z / rate, rtol=1e-9), rate)
        found = flow.run(tacit.DiagonalNet(2, alpha=10.0), problem).dataset.predictor.values[1:]
        path = tacit.interpolate_path(problem.X, problem.y, log_alphas=math.log(10.0) - z)
        gaps.append(gap(found, path.beta))
    assert gaps[1] < 1e-4
    assert gaps[0] / gaps[1] == pytest.approx(100, rel=0.2)  # first order in the rate


@pytest.mark.parametrize("loss", ["logistic", "squares"])
def test_the_times_asked_for_come_back_exactly_and_once(loss):
    problem = problems(np.random.default_rng(5).standard_normal((4, 7)), loss)
    net = tacit.DiagonalNet(2, alpha=3.0)
    asked = [80.0, 0.1, 80.0, 7.3, 0.1 + 0.2, 99.99]
    flow = WeightDecay(tacit.DualFlow(record=asked, rtol=1e-6), 0.01)
    dataset = flow.run(net, problem).dataset
    np.testing.assert_array_equal(dataset.t.values, [0.0, *sorted(set(asked))])
    np.testing.assert_array_equal(dataset.log_t.values[1:], np.log(sorted(set(asked))))
    # without record= the record is fit for tacit.grokking and ends at t_max itself
    for t_max in (80.0, 1000.0, 123.456):
        flow = WeightDecay(tacit.DualFlow(t_max=t_max, rtol=1e-6), 0.01)
        t = flow.run(net, problem).dataset.t.values
        assert (np.diff(t) > 1e-9 * t[1:]).all()
        assert t[-1] == t_max


def test_a_tie_counts_one_half_in_training_as_on_new_samples():
    """The zero predictor of the start knows nothing: 1/2 on both sides, by every flow."""
    net, problem = tacit.DiagonalNet(2, alpha=2.0), tacit.majority(8, 20, seed=0)
    flow = WeightDecay(tacit.DualFlow(record=[50.0], rtol=1e-6), 0.01)
    first = flow.run(net, problem).dataset.isel(time=0)
    assert first.train_accuracy == first.test_accuracy == 0.5
    for other in (tacit.ParameterFlow(t_max=1.0), tacit.GradientDescent(steps=2, step=0.01)):
        assert WeightDecay(other, 0.01).run(net, problem).dataset.train_accuracy[0] == 0.5
    assert tacit.DualFlow(loss=0.5).run(net, problem).dataset.train_accuracy[0] == 0.5
    # the rule itself: right, wrong and undecided
    assert accuracy(np.array([2.0, -1.0, 0.0, 0.0])) == 0.5
    assert accuracy(np.array([[2.0, 0.0], [1e-300, -0.0]])).tolist() == [0.75, 0.75]


def test_decay_alone_shrinks_the_parameters():
    """Where labels pull nothing (y = 0) theta is e^(-rate t) theta0, and nothing turns."""
    problem = Regression(np.eye(3), np.zeros(3))
    flow = WeightDecay(tacit.DualFlow(record=[1.0, 30.0]), 0.1)
    path = flow.run(tacit.DiagonalNet(2, alpha=5.0), problem)
    norms = 5 * math.sqrt(6) * np.exp([0.0, -0.1, -3.0])
    np.testing.assert_allclose(path.dataset.parameter_norm.values, norms, rtol=1e-12)
    assert np.abs(path.dataset.turn.values).max() < 1e-10
    assert np.abs(path.predictor).max() < 1e-12


def test_inseparable_labels_settle_at_the_regularised_minimum():
    X = np.array([[1.0, 0.0], [1.0, 0.1], [1.0, -0.1]])
    problem = Classification(X, np.array([1.0, -1.0, 1.0]), "logistic")
    flow = WeightDecay(tacit.DualFlow(t_max=3000.0), 0.05)
    path = flow.run(tacit.DiagonalNet(2, alpha=1.0), problem)
    assert path.outcome.ok
    last = path.dataset.predictor.values[-5:]
    assert np.abs(np.diff(last, axis=0)).max() < 1e-8


def test_the_clock_runs_both_ways():
    problem = problems(np.random.default_rng(0).standard_normal((3, 4)), "exp")
    dual = MarginDecay(tacit.DiagonalNet(2, log_alpha=200.0), problem, 1e-3)
    for log_t in (-420.0, -400.0, -5.0, 0.0, 7.0, 12.0):
        assert dual.log_time(dual.tau(log_t)) == pytest.approx(log_t, abs=1e-9)


def test_rate_zero_is_the_flow_itself():
    problem, net = (
        tacit.sparse_regression(4, 8, sparsity=2, seed=0),
        tacit.DiagonalNet(2, alpha=0.1),
    )
    plain = tacit.DualFlow().run(net, problem)
    wrapped = WeightDecay(tacit.DualFlow(), 0.0).run(net, problem)
    np.testing.assert_array_equal(plain.predictor, wrapped.predictor)


def decayed(flow, rate):
    net = tacit.DiagonalNet(2, alpha=1.0)
    return WeightDecay(flow, rate).run(net, tacit.three_points("M-F3b"))


@pytest.mark.parametrize("scale", [0.0, 1e-200, 1.0, 1e150])
def test_data_of_any_size_have_a_kernel_distance(scale):
    X = scale * np.random.default_rng(0).standard_normal((3, 4))
    problem = Classification(X, np.array([1.0, -1.0, 1.0]))
    net = tacit.DiagonalNet(2, alpha=1.0)
    path = WeightDecay(tacit.DualFlow(t_max=1.0, rtol=1e-6), 0.1).run(net, problem)
    distance = path.dataset.kernel_distance.values
    assert np.isfinite(distance).all()
    assert (distance.max() > 0) == (scale == 1.0)  # the others fit, or are, nearly nothing


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: WeightDecay(tacit.DualFlow(), -1.0), "rate must be >= 0"),
        (lambda: WeightDecay(tacit.DualFlow(), math.nan), "rate must be a finite number"),
        (lambda: WeightDecay("flow", 1.0), "first argument must be a flow"),
        (
            lambda: WeightDecay(tacit.NormalizedDescent(step=0.1, steps=3), 0.1).run(
                tacit.DiagonalNet(2, alpha=1.0), tacit.three_points("M-F3b")
            ),
            "NormalizedDescent has no weight decay",
        ),
        (
            lambda: WeightDecay(tacit.DualFlow(record=[-1.0]), 0.1).run(
                tacit.DiagonalNet(2, alpha=1.0), tacit.three_points("M-F3b")
            ),
            "record must be > 0",
        ),
        (lambda: decayed(tacit.DualFlow(record=[1.0, 5e3], t_max=100.0), 0.1), "stay within t_max"),
        (lambda: decayed(tacit.DualFlow(t_max=1e9), 0.1), "ends all motion"),
        (lambda: decayed(tacit.DualFlow(t_max=1.0), 1e-320), "at least 1e-300"),
    ],
)
def test_wrong_input_speaks(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()
