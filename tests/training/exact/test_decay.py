"""Weight decay: the exact dual flow against raw parameters, closed forms and the slow limit."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

import penchant
from general_solvers import gradient_flow
from penchant import Classification, GradientDescent, Regression
from penchant.measures import margin_accuracy
from penchant.training.exact.decay import dual as row_products
from penchant.training.exact.decay.dual import MarginDecay, RowProducts
from refusals import refusals


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
    net = penchant.DiagonalNet(depth, alpha={2: 2.0, 3: 2.0, 5: 1.3}[depth], shape=shape)
    problem = problems(X, kind)
    dataset = penchant.train(
        net,
        problem,
        penchant.DualFlow(rtol=1e-9, weight_decay=0.01),
        record=penchant.record.At(times=TIMES),
    ).dataset
    theta = gradient_flow(net, problem, TIMES, 0.01)
    wanted = np.array([net.predictor(row) for row in theta])
    assert gap(dataset.predictor.values[1:], wanted) < 1e-6
    norms = np.linalg.norm(theta, axis=1)
    np.testing.assert_allclose(dataset.parameter_norm.values[1:], norms, rtol=1e-6)
    turns = penchant.measures.angle(theta, np.tile(net.start(7), (len(theta), 1)))
    np.testing.assert_allclose(dataset.turn.values[1:], turns, rtol=1e-5, atol=1e-9)
    # the control: a slightly different rate is told apart
    other = penchant.train(
        net,
        problem,
        penchant.DualFlow(rtol=1e-6, weight_decay=0.0101),
        record=penchant.record.At(times=TIMES),
    ).dataset
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
    net, rate, problem = penchant.DiagonalNet(2, log_alpha=log_alpha), math.exp(log_rate), None
    problem = problems(X, kind)
    times = np.array([0.1, 1.0, 3.0]) / rate
    dataset = penchant.train(
        net,
        problem,
        penchant.DualFlow(rtol=1e-9, weight_decay=rate),
        record=penchant.record.At(times=times),
    ).dataset
    wanted = np.array([net.predictor(row) for row in gradient_flow(net, problem, times, rate)])
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
        flow = penchant.DualFlow(rtol=1e-8, weight_decay=rate)
        path = penchant.train(
            penchant.DiagonalNet(2, log_alpha=size),
            problem,
            flow,
            record=penchant.record.At(times=(size - left) / rate),
        )
        assert path.outcome.ok
        ends.append(path.dataset.predictor.values[1:])
    assert gap(ends[1], ends[0]) < 1e-5
    assert gap(ends[0][:1], ends[0][2:]) > 1e-2  # the control: they do move


@pytest.mark.parametrize("kind", ["exp", "squares"])
@pytest.mark.parametrize("alpha", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("rate", [1e-4, 1e-12])
def test_a_small_start_escapes_on_time(alpha, kind, rate):
    """The second route integrates log u and log v, which are of order one at any scale."""
    problem = penchant.problems.sparse_regression(4, 8, sparsity=2, noise=0.0, seed=0)
    if kind == "exp":
        problem = penchant.problems.separable_points(4, 8, margin=0.3, seed=0)
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
    flow = penchant.DualFlow(rtol=1e-9, weight_decay=rate)
    path = penchant.train(
        penchant.DiagonalNet(2, alpha=alpha), problem, flow, record=penchant.record.At(times=times)
    )
    assert path.outcome.ok
    assert gap(path.dataset.predictor.values[1:], wanted) < 1e-5


def test_regression_follows_the_q_path_of_the_decayed_start():
    """beta = 2 a sinh(X^T nu) with X beta = y is W's argmin Q at alpha e^(-rate t), rate -> 0."""
    problem = penchant.problems.sparse_regression(5, 12, sparsity=2, noise=0.0, seed=1)
    z = np.array([0.5, 2.0, 3.0, 5.0])
    gaps = []
    for rate in (1e-3, 1e-5):
        flow = penchant.DualFlow(rtol=1e-9, weight_decay=rate)
        found = penchant.train(
            penchant.DiagonalNet(2, alpha=10.0),
            problem,
            flow,
            record=penchant.record.At(times=z / rate),
        ).dataset.predictor.values[1:]
        path = penchant.solvers.interpolate_path(
            problem.X, problem.y, log_alphas=math.log(10.0) - z
        )
        gaps.append(gap(found, path.beta))
    assert gaps[1] < 1e-4
    assert gaps[0] / gaps[1] == pytest.approx(100, rel=0.2)  # first order in the rate


@pytest.mark.parametrize("loss", ["logistic", "squares"])
def test_requested_times_come_back_exactly_and_once(loss):
    problem = problems(np.random.default_rng(5).standard_normal((4, 7)), loss)
    net = penchant.DiagonalNet(2, alpha=3.0)
    requested = [80.0, 0.1, 80.0, 7.3, 0.1 + 0.2, 99.99]
    flow = penchant.DualFlow(rtol=1e-6, weight_decay=0.01)
    dataset = penchant.train(net, problem, flow, record=penchant.record.At(times=requested)).dataset
    np.testing.assert_array_equal(dataset.t.values, [0.0, *sorted(set(requested))])
    np.testing.assert_array_equal(dataset.log_t.values[1:], np.log(sorted(set(requested))))
    # without At the record is fit for penchant.measures.grokking and ends at Time itself
    for t_max in (80.0, 1000.0, 123.456):
        t = penchant.train(net, problem, flow, stop=penchant.Time(t_max)).dataset.t.values
        assert (np.diff(t) > 1e-9 * t[1:]).all()
        assert t[-1] == t_max


def test_a_tie_counts_one_half_in_training_as_on_new_samples():
    """The zero predictor of the start knows nothing: 1/2 on both sides, by every flow."""
    net, problem = penchant.DiagonalNet(2, alpha=2.0), penchant.problems.majority(8, 20, seed=0)
    flow = penchant.DualFlow(rtol=1e-6, weight_decay=0.01)
    first = penchant.train(
        net, problem, flow, record=penchant.record.At(times=[50.0])
    ).dataset.isel(time=0)
    assert first.train_accuracy == first.test_accuracy == 0.5
    for method, stop in (
        (penchant.ParameterFlow(weight_decay=0.01), penchant.Time(1.0)),
        (GradientDescent(0.01, weight_decay=0.01), penchant.Steps(2)),
        (penchant.DualFlow(), penchant.stop.Interpolated(0.5)),
    ):
        assert penchant.train(net, problem, method, stop=stop).dataset.train_accuracy[0] == 0.5
    # the rule itself: right, wrong and undecided
    assert margin_accuracy(np.array([2.0, -1.0, 0.0, 0.0])) == 0.5
    assert margin_accuracy(np.array([[2.0, 0.0], [1e-300, -0.0]])).tolist() == [0.75, 0.75]


def test_decay_alone_shrinks_the_parameters():
    """Where labels pull nothing (y = 0) theta is e^(-rate t) theta0, and nothing turns."""
    problem = Regression(np.eye(3), np.zeros(3))
    flow = penchant.DualFlow(weight_decay=0.1)
    path = penchant.train(
        penchant.DiagonalNet(2, alpha=5.0),
        problem,
        flow,
        record=penchant.record.At(times=[1.0, 30.0]),
    )
    norms = 5 * math.sqrt(6) * np.exp([0.0, -0.1, -3.0])
    np.testing.assert_allclose(path.dataset.parameter_norm.values, norms, rtol=1e-12)
    assert np.abs(path.dataset.turn.values).max() < 1e-10
    assert np.abs(path.predictor).max() < 1e-12


def test_inseparable_labels_settle_at_the_regularised_minimum():
    X = np.array([[1.0, 0.0], [1.0, 0.1], [1.0, -0.1]])
    problem = Classification(X, np.array([1.0, -1.0, 1.0]), "logistic")
    flow = penchant.DualFlow(weight_decay=0.05)
    path = penchant.train(
        penchant.DiagonalNet(2, alpha=1.0), problem, flow, stop=penchant.Time(3000.0)
    )
    assert path.outcome.ok
    last = path.dataset.predictor.values[-5:]
    assert np.abs(np.diff(last, axis=0)).max() < 1e-8


def test_the_clock_runs_both_ways():
    problem = problems(np.random.default_rng(0).standard_normal((3, 4)), "exp")
    dual = MarginDecay(penchant.DiagonalNet(2, log_alpha=200.0), problem, 1e-3)
    for log_t in (-420.0, -400.0, -5.0, 0.0, 7.0, 12.0):
        assert dual.log_time(dual.tau(log_t)) == pytest.approx(log_t, abs=1e-9)


def decayed(rate, method=penchant.DualFlow, **given):
    net, flow = penchant.DiagonalNet(2, alpha=1.0), method(weight_decay=rate)
    return penchant.train(net, penchant.problems.three_points("3b"), flow, **given)


@pytest.mark.parametrize("scale", [0.0, 1e-200, 1.0, 1e150])
def test_data_of_any_size_have_a_kernel_distance(scale):
    X = scale * np.random.default_rng(0).standard_normal((3, 4))
    problem = Classification(X, np.array([1.0, -1.0, 1.0]))
    net = penchant.DiagonalNet(2, alpha=1.0)
    path = penchant.train(
        net, problem, penchant.DualFlow(rtol=1e-6, weight_decay=0.1), stop=penchant.Time(1.0)
    )
    distance = path.dataset.kernel_distance.values
    assert np.isfinite(distance).all()
    assert (distance.max() > 0) == (scale == 1.0)  # the others fit, or are, nearly nothing


test_wrong_input_is_refused = refusals(
    (lambda: penchant.DualFlow(weight_decay=-1.0), "weight_decay must be >= 0"),
    (lambda: penchant.DualFlow(weight_decay=math.nan), "weight_decay must be a finite number"),
    (lambda: penchant.record.At(times=[-1.0]), "times must be >= 0"),
    (
        lambda: decayed(
            0.1, record=penchant.record.At(times=[1.0, 5e3]), stop=penchant.Time(100.0)
        ),
        r"must stay within Time\(100\), got 5000",
    ),
    (lambda: decayed(0.1, record=penchant.record.At(margins=[1.0])), r"cannot record at margins"),
    (lambda: decayed(0.1, stop=penchant.Time(1e9)), "ends all motion"),
    (lambda: decayed(1e-320, stop=penchant.Time(1.0)), "at least 1e-300"),
    (lambda: decayed(0.1, stop=penchant.stop.LogLoss(-1.0)), "time alone ends training; use Time"),
    (
        lambda: decayed(0.1, penchant.ParameterFlow, stop=penchant.stop.Loss(1.0)),
        "Loss does not apply here under weight decay, where time alone ends training",
    ),
)


# single precision: as accurate as the tolerance, and used only where that is safe

LATE = [10.0, 100.0, 1000.0, 2000.0, 3000.0, 4000.0]


@pytest.mark.parametrize("scale", [1.0, 1e-60, 1e60])
def test_products_in_single_precision_are_accurate_to_1e_6(scale, monkeypatch):
    rng = np.random.default_rng(0)
    rows = rng.choice([-1.0, 1.0], size=(30, 20000))
    x, beta = scale * rng.normal(size=30), scale * rng.normal(size=20000)
    weights = np.abs(beta)
    double, near = RowProducts(rows), RowProducts(rows, 1e-5)
    assert double.single is None
    assert near.single is None  # control: the table is small
    monkeypatch.setattr(row_products, "LARGE", 0)
    assert RowProducts(rows, 1e-7).single is None  # control: the tolerance is too fine
    near = RowProducts(rows, 1e-5)
    assert near.single is not None
    for name, vector, size in (
        ("pull", x, np.linalg.norm(x)),
        ("outputs", beta, np.linalg.norm(beta)),
        ("gram", weights, weights.sum()),
    ):
        exact, found = getattr(double, name)(vector), getattr(near, name)(vector)
        assert found.dtype == np.float64
        assert 0 < np.abs(found - exact).max() < 1e-6 * size, name


def majority_path(rtol):
    problem = penchant.problems.majority(60, 1500)
    net = penchant.DiagonalNet(depth=2, alpha=48 / np.sqrt(3000))
    return penchant.train(
        net,
        problem,
        penchant.DualFlow(rtol=rtol, weight_decay=0.001),
        record=penchant.record.At(times=LATE),
    )


def test_a_path_in_single_precision_is_as_near_as_one_in_double(monkeypatch):
    exact, double = majority_path(1e-9), majority_path(1e-4)
    monkeypatch.setattr(row_products, "LARGE", 0)
    made = []
    monkeypatch.setattr(
        "penchant.training.exact.decay.follow.RowProducts",
        lambda rows, rtol: made.append(RowProducts(rows, rtol)) or made[-1],
    )
    single = majority_path(1e-4)
    assert made[0].single is not None

    def error(found):
        apart = np.linalg.norm(found.dataset.predictor - exact.dataset.predictor, axis=1)
        accuracy = np.abs(found.dataset.test_accuracy - exact.dataset.test_accuracy).max()
        size = np.linalg.norm(exact.dataset.predictor, axis=1)
        return float((apart[1:] / size[1:]).max()), float(accuracy)

    assert np.ptp(exact.dataset.test_accuracy.values[1:]) > 0.1  # the curve moves
    assert max(error(double)) < 1e-4
    assert max(error(single)) < 1e-4  # the tolerance that was asked for
    assert error(single)[0] < 2 * error(double)[0]
