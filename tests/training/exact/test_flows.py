"""Flows: two routes along whole paths, plain integrators, orders, conservation, extremes."""

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penchant import (
    L2,
    DiagonalNet,
    DualFlow,
    GradientDescent,
    ParameterFlow,
    Q,
    Regression,
    Steps,
    Time,
    interpolate,
    train,
)
from penchant.lab import Kind
from penchant.models import LinearPredictor, ProductNet
from penchant.problems import sparse_regression
from penchant.record import At, LogSpaced
from penchant.stop import Interpolated, Loss, Scale
from refusals import refusals

PROBLEM = sparse_regression(4, 12, sparsity=2, seed=1)
SHAPE = np.random.default_rng(5).uniform(0.6, 1.6, 12) * np.tile([1, -1, 1], 4)
BOTH = pytest.mark.parametrize("flow", [ParameterFlow, DualFlow])


def runge_kutta(model, problem, t, steps):
    """Parameters at time t by the classical fourth-order method on the loss sum r^2."""

    def velocity(w):
        return -2 * model.pullback(w, problem.X, model.predict(w, problem.X) - problem.y)

    w, h = model.start(problem.dimension), t / steps
    for _ in range(steps):
        a = velocity(w)
        b = velocity(w + h / 2 * a)
        c = velocity(w + h / 2 * b)
        d = velocity(w + h * c)
        w = w + h / 6 * (a + 2 * b + 2 * c + d)
    return w


def gap(a, b):
    return float(np.abs(a - b).max() / np.abs(b).max())


def test_a_linear_predictor_from_zero_ends_at_the_least_norm():
    """No parameter has a size at the start, which once left the steps without any tolerance."""
    path = train(LinearPredictor(), PROBLEM, ParameterFlow())
    assert path.outcome.ok
    assert gap(path.predictor, np.linalg.pinv(PROBLEM.X) @ PROBLEM.y) < 1e-9


# --- two routes -----------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [2, 3, 5])
@pytest.mark.parametrize("alpha", [0.2, 1.0, 30.0])
def test_dual_and_parameter_flow_take_one_path(depth, alpha):
    net = DiagonalNet(depth, alpha=alpha, shape=SHAPE)
    dual, direct = (train(net, PROBLEM, flow) for flow in (DualFlow(), ParameterFlow()))
    n = min(dual.dataset.sizes["time"], direct.dataset.sizes["time"]) - 1
    assert n > 40
    a, b = (path.dataset.predictor.values[:n] for path in (dual, direct))
    np.testing.assert_allclose(dual.dataset.t[:n], direct.dataset.t[:n], rtol=1e-12)
    assert np.abs(a - b).max() < 2e-7 * np.abs(b).max()
    assert gap(dual.predictor, direct.predictor) < 1e-8
    assert gap(dual.parameters, direct.parameters) < 1e-7
    other = train(DiagonalNet(depth, alpha=alpha, shape=1.01 * SHAPE[::-1]), PROBLEM, DualFlow())
    assert gap(other.predictor, direct.predictor) > 1e-3


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_flows_agree_with_a_plain_integrator(depth):
    net, t = DiagonalNet(depth, alpha=0.5, shape=SHAPE), 0.05
    plain = net.predictor(runge_kutta(net, PROBLEM, t, 1000))
    slower = net.predictor(runge_kutta(net, PROBLEM, t / 2, 1000))  # a lost factor 2 in the loss
    for flow in (ParameterFlow(), DualFlow()):
        path = train(net, PROBLEM, flow, stop=[Interpolated(), Time(t)])
        assert path.t == pytest.approx(t, rel=1e-12)
        assert path.outcome.kind is Kind.BUDGET_SPENT
        assert gap(path.predictor, plain) < 1e-8
        assert gap(path.predictor, slower) > 1e-2


@pytest.mark.parametrize(
    "net",
    [
        ProductNet(SHAPE, 0.4 * SHAPE[::-1]),
        DiagonalNet(2, start=(SHAPE, 0.3 * SHAPE)),
        DiagonalNet(3, alpha=0.8, signed=False),
    ],
    ids=["product", "biased", "unsigned"],
)
def test_other_starts_agree_with_a_plain_integrator(net):
    t = 0.03
    plain = runge_kutta(net, PROBLEM, t, 1000)
    path = train(net, PROBLEM, ParameterFlow(), stop=[Interpolated(), Time(t)])
    assert gap(path.parameters, plain) < 1e-8
    assert gap(path.parameters, runge_kutta(net, PROBLEM, 0.9 * t, 100)) > 1e-3


@BOTH
@pytest.mark.parametrize("depth", [2, 3])
def test_flows_end_where_the_theory_says(flow, depth):
    path = train(DiagonalNet(depth, alpha=0.1, shape=SHAPE), PROBLEM, flow())
    assert path.outcome.kind is Kind.SOLVED
    selected = interpolate(PROBLEM.X, PROBLEM.y, Q(depth, alpha=0.1, shape=SHAPE)).beta
    wrong = interpolate(PROBLEM.X, PROBLEM.y, Q(depth, alpha=0.2, shape=SHAPE)).beta
    assert gap(path.predictor, selected) < 1e-8
    assert gap(path.predictor, wrong) > 1e-3


def test_tighter_steps_are_more_accurate():
    net, t = DiagonalNet(3, alpha=0.5), 0.05
    plain = net.predictor(runge_kutta(net, PROBLEM, t, 1000))
    for flow in (ParameterFlow, DualFlow):
        paths = (train(net, PROBLEM, flow(rtol=r), stop=Time(t)) for r in (1e-4, 1e-11))
        loose, tight = (gap(path.predictor, plain) for path in paths)
        assert tight < 1e-8 < 1e-6 < loose


# --- laws of the motion ---------------------------------------------------------------------


def test_the_product_of_the_two_weights_is_conserved():
    path = train(DiagonalNet(2, alpha=0.05, shape=SHAPE), PROBLEM, ParameterFlow())
    plus, minus = np.split(path.dataset.parameters.values, 2, axis=1)
    np.testing.assert_allclose(plus * minus, np.tile((0.05 * SHAPE) ** 2, (len(plus), 1)), 1e-7)
    assert np.ptp(plus / (0.05 * SHAPE)) > 1  # control: the weights themselves did move


def test_deeper_nets_conserve_the_sum_of_inverse_powers():
    path = train(DiagonalNet(4, alpha=0.3), PROBLEM, ParameterFlow())
    plus, minus = np.split(path.dataset.parameters.values, 2, axis=1)
    np.testing.assert_allclose(plus**-2 + minus**-2, 2 * 0.3**-2, rtol=1e-7)
    assert np.ptp(plus * minus) > 1e-2  # control: the law of depth 2 fails at depth 4


def test_a_product_net_conserves_its_imbalance():
    u, v = SHAPE, 0.5 * SHAPE[::-1]
    path = train(ProductNet(u, v), PROBLEM, ParameterFlow())
    a, b = np.split(path.dataset.parameters.values, 2, axis=1)
    np.testing.assert_allclose(a**2 - b**2, np.tile(u**2 - v**2, (len(a), 1)), atol=1e-8)
    assert np.ptp(a**2 + b**2, axis=0).max() > 0.1


def test_the_dual_gives_the_predictor_along_the_whole_path():
    path = train(DiagonalNet(2, alpha=0.1, shape=SHAPE), PROBLEM, DualFlow())
    s = path.dataset.dual.values @ PROBLEM.X
    beta = 2 * (0.1 * SHAPE) ** 2 * np.sinh(s)  # W eq. 17
    np.testing.assert_allclose(path.dataset.predictor, beta, rtol=1e-9, atol=1e-14)
    path = train(DiagonalNet(4, alpha=0.3, shape=SHAPE), PROBLEM, DualFlow())
    s = SHAPE**2 * (path.dataset.dual.values @ PROBLEM.X)
    beta = (0.3 * SHAPE) ** 4 * ((1 - s) ** -2 - (1 + s) ** -2)  # W eq. 59
    np.testing.assert_allclose(path.dataset.predictor, beta, rtol=1e-8, atol=1e-12)
    assert np.abs(s).max() < 1  # W Lemma 8
    assert np.abs(path.dataset.predictor - 2 * (0.3 * SHAPE) ** 4 * np.sinh(s)).max() > 1e-3


@settings(deadline=None, derandomize=True, max_examples=15)
@given(
    seed=st.integers(0, 10**6),
    shape=st.sampled_from([(1, 1), (2, 3), (3, 3), (5, 3), (4, 9)]),
    depth=st.integers(2, 6),
    log_alpha=st.floats(-2, 4),
)
def test_losses_fall_and_consistent_data_are_fitted(seed, shape, depth, log_alpha):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal(shape)
    problem = Regression(X, X @ rng.standard_normal(shape[1]))
    path = train(DiagonalNet(depth, log_alpha=log_alpha), problem, DualFlow(rtol=1e-9))
    assert path.outcome.kind is Kind.SOLVED
    log_loss = path.dataset.log_loss.values
    resolved = log_loss > log_loss[0] + np.log(1e-14)
    assert (np.diff(log_loss[resolved]) < 1e-6).all()
    assert gap(X @ path.predictor, problem.y) < 1e-8


# --- descent --------------------------------------------------------------------------------


def test_descent_approaches_the_flow_at_first_order():
    net, t = DiagonalNet(3, alpha=0.7), 0.02
    flow = train(net, PROBLEM, ParameterFlow(), stop=[Interpolated(), Time(t)]).predictor
    later = train(net, PROBLEM, ParameterFlow(), stop=[Interpolated(), Time(1.2 * t)]).predictor
    counts = np.array([200, 400, 800, 1600])
    ends = [
        train(net, PROBLEM, GradientDescent(t / n), stop=Steps(int(n))).predictor for n in counts
    ]
    slope = np.polyfit(np.log(counts), np.log([gap(end, flow) for end in ends]), 1)[0]
    assert slope == pytest.approx(-1, abs=0.05)
    control = np.polyfit(np.log(counts), np.log([gap(end, later) for end in ends]), 1)[0]
    assert abs(control) < 0.1


# --- extremes -------------------------------------------------------------------------------


def test_a_start_far_below_float64_reaches_the_rich_limit():
    log_alpha = -4605.0  # alpha = 10^-2000
    path = train(DiagonalNet(2, log_alpha=log_alpha), PROBLEM, DualFlow())
    assert path.outcome.kind is Kind.SOLVED
    selected = interpolate(PROBLEM.X, PROBLEM.y, Q(2, log_alpha=log_alpha)).beta
    l2 = interpolate(PROBLEM.X, PROBLEM.y, L2()).beta
    assert gap(path.predictor, selected) < 1e-7
    assert gap(path.predictor, l2) > 0.1
    assert path.parameters is None
    # until the escape nu = 8 y t, and a coordinate appears when |x_i nu| = 2 |log alpha|
    escape = -2 * log_alpha / (8 * np.abs(PROBLEM.X.T @ PROBLEM.y).max())
    loss = path.dataset.loss.values / path.dataset.loss.values[0]
    t = path.dataset.t.values
    assert (loss[t < 0.99 * escape] == 1).all()
    assert loss[t > 1.3 * escape].max() < 0.99
    assert t[-1] < np.inf


@pytest.mark.parametrize("depth", [2, 3, 6])
def test_a_start_far_above_float64_is_the_kernel_regime(depth):
    path = train(DiagonalNet(depth, log_alpha=690.0, shape=SHAPE), PROBLEM, DualFlow())
    assert path.outcome.kind is Kind.SOLVED
    weights = np.abs(SHAPE) ** (1.0 - depth)  # the kernel is X diag(w0^(2D-2)) X^T
    weighted = np.linalg.lstsq(PROBLEM.X / weights, PROBLEM.y, rcond=None)[0] / weights
    assert gap(path.predictor, weighted) < 1e-9
    assert gap(path.predictor, interpolate(PROBLEM.X, PROBLEM.y, L2()).beta) > 1e-2
    log_t = path.dataset.log_t.values
    assert log_t[0] == -np.inf
    assert np.isfinite(log_t[1:]).all()
    assert (np.diff(log_t[1:]) > 0).all()
    assert "10^-" in path.outcome.sentence


def test_the_box_is_followed_to_within_the_rounding_of_the_dual():
    net = DiagonalNet(5, alpha=1e-4)  # active coordinates end 1e-12 away from the wall
    problem = sparse_regression(2, 5, sparsity=1, seed=2)
    path = train(net, problem, DualFlow(rtol=1e-8))
    assert path.outcome.kind is Kind.SOLVED
    selected = interpolate(problem.X, problem.y, Q(5, alpha=1e-4)).beta
    assert gap(path.predictor, selected) < 1e-7
    slack = 1 - np.abs(path.dataset.dual.values[-1] @ problem.X).max()
    assert slack < 1e-11


# --- data that are not in general position --------------------------------------------------


@BOTH
@pytest.mark.parametrize("depth", [2, 3])
def test_duplicate_rows_and_zero_columns_change_nothing(flow, depth):
    X = np.vstack([PROBLEM.X, PROBLEM.X[1], 2 * PROBLEM.X[0] - PROBLEM.X[2]])
    y = np.append(PROBLEM.y, [PROBLEM.y[1], 2 * PROBLEM.y[0] - PROBLEM.y[2]])
    X = np.hstack([X, np.zeros((6, 1))])
    net = DiagonalNet(depth, alpha=0.3)
    path = train(net, Regression(X, y), flow())
    assert path.outcome.kind is Kind.SOLVED
    selected = interpolate(PROBLEM.X, PROBLEM.y, Q(depth, alpha=0.3)).beta
    assert gap(path.predictor[:-1], selected) < 1e-8
    assert path.predictor[-1] == 0


@BOTH
@pytest.mark.parametrize("alpha", [1e-3, 1.0])
def test_inconsistent_data_end_at_least_squares_and_say_so(flow, alpha):
    rng = np.random.default_rng(4)
    problem = Regression(rng.standard_normal((7, 3)), rng.standard_normal(7))
    path = train(DiagonalNet(2, alpha=alpha), problem, flow())
    best = np.linalg.lstsq(problem.X, problem.y, rcond=None)[0]
    assert path.outcome.kind is Kind.STALLED
    assert "least-squares loss" in path.outcome.sentence
    assert gap(path.predictor, best) < 1e-7


def test_a_model_that_cannot_fit_stalls_above_the_least_squares_loss():
    problem = Regression(np.eye(2), [1.0, -1.0])
    path = train(DiagonalNet(2, alpha=0.5, signed=False), problem, ParameterFlow())
    assert path.outcome.kind is Kind.STALLED
    assert "cannot move further" in path.outcome.sentence
    np.testing.assert_allclose(path.predictor, [1, 0], atol=1e-6)


@BOTH
def test_nothing_to_learn_is_learned_at_once(flow):
    path = train(DiagonalNet(3, alpha=1.0), Regression(np.eye(2), [0.0, 0.0]), flow())
    assert path.outcome.kind is Kind.SOLVED
    assert path.dataset.sizes["time"] == 1
    assert path.log_loss == -np.inf


@BOTH
def test_labels_that_exert_no_force_are_named(flow):
    problem = Regression([[0.0, 0.0], [1.0, 1.0]], [1.0, 0.0])
    path = train(DiagonalNet(2, alpha=1.0), problem, flow())
    assert path.outcome.kind is Kind.STALLED
    assert "nothing moves" in path.outcome.sentence


# --- records, budgets, silence --------------------------------------------------------------


def test_spent_budgets_are_reported_with_the_way_out():
    net = DiagonalNet(2, alpha=0.1)
    short = train(net, PROBLEM, ParameterFlow(max_steps=20))
    assert short.outcome.kind is Kind.BUDGET_SPENT
    assert "raise max_steps" in short.outcome.sentence
    early = train(net, PROBLEM, DualFlow(), stop=[Interpolated(), Time(0.001)])
    assert "by Time; allow more time" in early.outcome.sentence
    assert early.t == pytest.approx(1e-3)


METHODS = [(ParameterFlow(), None), (DualFlow(), None), (GradientDescent(1e-3), Steps(3000))]


@pytest.mark.parametrize(("flow", "stop"), METHODS)
def test_a_path_is_labelled_and_can_be_repeated(flow, stop, capsys):
    path = train(DiagonalNet(2, alpha=0.5, shape=SHAPE), PROBLEM, flow, stop=stop)
    dataset = path.dataset
    assert dataset.predictor.dims == ("time", "feature")
    assert dataset.t.dims == ("time",)
    assert dataset.t[0] == 0
    for variable in dataset.variables.values():
        assert set(variable.attrs) == {"units", "long_name"}
    residual = dataset.predictor.values @ PROBLEM.X.T - PROBLEM.y
    # a sum of so many terms may be taken in any order, and a small residual is a difference
    terms = np.abs(dataset.predictor.values) @ np.abs(PROBLEM.X).T + np.abs(PROBLEM.y)
    slack = PROBLEM.dimension * np.finfo(float).eps * terms
    allowed = ((2 * np.abs(residual) + slack) * slack).sum(axis=1) + 1e-12 * dataset.loss
    assert (np.abs(dataset.loss - (residual**2).sum(axis=1)) <= allowed).all()
    np.testing.assert_allclose(dataset.log_loss, np.log(dataset.loss), rtol=1e-12)
    np.testing.assert_allclose(dataset.norm_l1, np.abs(dataset.predictor).sum("feature"))
    np.testing.assert_allclose(dataset.norm_l2**2, (dataset.predictor**2).sum("feature"))
    np.testing.assert_allclose(dataset.test_error[0], 1)

    description = json.loads(dataset.attrs["description"])
    assert description["problem"]["seed"] == 1
    assert "numpy" in description["versions"]
    again = train(**path.arguments)
    assert again.dataset.identical(dataset)
    assert str(path).startswith("Path")
    assert capsys.readouterr() == ("", "")


def test_data_without_a_recipe_travel_with_the_path():
    problem = Regression(PROBLEM.X, PROBLEM.y)
    net = DiagonalNet(2, alpha=0.5)
    dataset = train(net, problem, DualFlow(), stop=Time(0.01)).dataset
    assert (dataset.X.values == PROBLEM.X).all()
    assert (dataset.y.values == PROBLEM.y).all()
    assert "X" not in train(net, PROBLEM, DualFlow(), stop=Time(0.01)).dataset


@BOTH
def test_time_alone_is_followed_to_its_end_or_to_a_fit_to_rounding(flow):
    net = DiagonalNet(2, alpha=0.5)
    short = train(net, PROBLEM, flow(), stop=Time(0.01))
    assert (short.outcome.kind, short.t) == (Kind.SOLVED, 0.01)
    assert "followed to t=0.01" in short.outcome.sentence
    spent = train(net, PROBLEM, flow(), stop=[Time(0.01), Loss(1e-9)])
    assert spent.outcome.kind is Kind.BUDGET_SPENT
    np.testing.assert_array_equal(short.predictor, spent.predictor)
    rested = train(net, PROBLEM, flow(), stop=Time(1e6))
    assert rested.outcome.kind is Kind.SOLVED
    assert rested.log_loss < np.log(1e-24 * np.sum(PROBLEM.y**2))


@BOTH
def test_the_times_named_are_recorded_and_nothing_else_changes(flow):
    net, times = DiagonalNet(2, alpha=0.5), [0.003, 0.01, 0.02]
    named = train(net, PROBLEM, flow(), stop=Time(0.05), record=At(times=times)).dataset
    assert named.t.values.tolist() == [0.0, *times, 0.05]
    mixed = train(net, PROBLEM, flow(), stop=Time(0.05), record=[LogSpaced(5), At(times=times)])
    rows = [int(np.flatnonzero(mixed.dataset.t.values == t)[0]) for t in times]
    np.testing.assert_array_equal(mixed.dataset.predictor[rows], named.predictor[1:-1])
    assert mixed.dataset.sizes["time"] > len(times) + 4


@BOTH
def test_test_samples_are_recorded(flow):
    test = sparse_regression(samples=7, dimension=12, sparsity=2, seed=5)
    problem = dataclasses.replace(PROBLEM, test=test)
    path = train(DiagonalNet(2, alpha=0.5), problem, flow(), stop=Time(0.01))
    residuals = path.dataset.predictor.values @ test.X.T - test.y
    np.testing.assert_allclose(path.dataset.test_loss, (residuals**2).sum(axis=1), rtol=1e-12)


@BOTH
def test_half_of_the_squares_is_the_same_flow_at_half_the_speed(flow):
    net, half = DiagonalNet(2, alpha=0.5), dataclasses.replace(PROBLEM, loss="half squares")
    slow = train(net, half, flow(), stop=Time(0.1), record=At(times=[0.02]))
    fast = train(net, PROBLEM, flow(), stop=Time(0.05), record=At(times=[0.01]))
    np.testing.assert_array_equal(slow.dataset.predictor, fast.dataset.predictor)
    assert slow.dataset.t.values.tolist() == [0.0, 0.02, 0.1]
    np.testing.assert_allclose(slow.dataset.loss, fast.dataset.loss / 2, rtol=1e-14)
    assert "followed to t=0.05" in slow.outcome.sentence  # with words that say in which units
    assert slow.outcome.sentence.endswith("half the time, twice the loss)")


@pytest.mark.parametrize(("method", "stop"), METHODS)
def test_progress_is_reported_rarely_and_rises(method, stop):
    reports = []
    progress = lambda f, m: reports.append((f, m))  # noqa: E731
    train(DiagonalNet(2, alpha=0.5), PROBLEM, method, stop=stop, progress=progress)
    fractions = [fraction for fraction, _ in reports]
    assert 3 < len(reports) < 100
    assert fractions == sorted(fractions)
    assert 0 <= fractions[0] < fractions[-1] <= 1


def test_recorded_times_are_evenly_spaced_in_the_logarithm():
    path = train(DiagonalNet(2, alpha=0.5), PROBLEM, ParameterFlow(), record=LogSpaced(7))
    spacing = np.diff(path.dataset.log_t.values[1:-1])
    np.testing.assert_allclose(spacing, np.log(10) / 7, rtol=1e-9)


# --- what is refused ------------------------------------------------------------------------

NET = DiagonalNet(2, alpha=1.0)


test_bad_input_is_refused_in_one_sentence = refusals(
    (lambda: train(NET, PROBLEM, DualFlow(), stop=Scale(0.1)), "Scale does not apply here"),
    (lambda: train(NET, PROBLEM, DualFlow(), batch=3), "an exact flow has no batch"),
    (
        lambda: train(NET, PROBLEM, DualFlow(), record=At(margins=[1])),
        "cannot record at margins",
    ),
    (lambda: ParameterFlow(rtol=1e-15), "rtol must be between 1e-13 and 0.01, got 1e-15"),
    (lambda: DualFlow(max_steps=1.5), "max_steps must be an integer"),
    (lambda: Steps(0), "count must be at least 1"),
    (lambda: train(NET, (1, 2), DualFlow()), "a Regression or a Classification, got tuple"),
    (lambda: train("net", PROBLEM, ParameterFlow()), "model must be a separable .* got str"),
    (lambda: train(ProductNet(SHAPE, SHAPE), PROBLEM, DualFlow()), "use ParameterFlow"),
    (lambda: train(DiagonalNet(2, alpha=1, signed=False), PROBLEM, DualFlow()), "signed"),
    (lambda: train(DiagonalNet(2, start=(SHAPE, SHAPE)), PROBLEM, DualFlow()), "equal starts"),
    (lambda: train(DiagonalNet(2, log_alpha=-4605), PROBLEM, ParameterFlow()), "use DualFlow"),
    (
        lambda: train(DiagonalNet(2, log_alpha=690), PROBLEM, GradientDescent(1), stop=Steps(9)),
        "use DualFlow",
    ),
    (lambda: train(DiagonalNet(5, alpha=1e-50), PROBLEM, ParameterFlow()), "use DualFlow"),
    (lambda: train(DiagonalNet(5, log_alpha=-4605), PROBLEM, DualFlow()), "interpolate"),
    (lambda: train(DiagonalNet(2, alpha=1, shape=[1, 2]), PROBLEM, DualFlow()), "12 features"),
)
