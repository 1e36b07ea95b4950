"""Flow in the parameters on classification data: other routes, laws of motion, rests, rules."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from general_solvers import gradient_flow
from penchant import Classification, DiagonalNet, DualFlow, ParameterFlow, Time, train
from penchant.lab import Kind
from penchant.models import ProductNet, Reparametrized
from penchant.problems import separable_points, three_points
from penchant.record import At
from penchant.stop import Interpolated, LogLoss, Near, Scale
from penchant.training.exact.parameter import MarginParameters

LOSSES = pytest.mark.parametrize("loss", ["exp", "logistic"])
STARTS = {
    "small": DiagonalNet(3, alpha=0.1),
    "large": DiagonalNet(2, alpha=30.0),
    "biased": DiagonalNet(2, start=([1.0, 0.5, 0.2], [0.5, 1.0, 0.1])),
    "unsigned": DiagonalNet(3, alpha=0.8, signed=False),
    "product": ProductNet([1.0, 2.0, 0.5], [0.3, 0.0, -0.5]),
    "map": Reparametrized(lambda w: w + w**3, 0.5),
}


@pytest.fixture(params=STARTS)
def model(request):
    return STARTS[request.param]


def directions(path, margins):
    """Unit predictors at the given smoothed margins, which were recorded."""
    known = path.dataset.smoothed_margin.values
    rows = [int(np.argmin(np.abs(known - g))) for g in margins]
    np.testing.assert_allclose(known[rows], margins, rtol=1e-9)
    beta = path.dataset.predictor.values[rows]
    return beta / np.linalg.norm(beta, axis=1)[:, None], path.dataset.log_t.values[rows]


def smoothed(problem, margins):
    losses = np.exp(-margins) if problem.loss == "exp" else np.log1p(np.exp(-margins))
    return -np.log(losses.mean(axis=-1))


# --- other routes ---------------------------------------------------------------------------


CASES = [("3b", 2, 0.1), ("3d", 2, 1.0), ("3c", 2, 10.0), ("4a", 3, 0.1),
         ("4b", 3, 1.0), ("3d", 3, 10.0), ("3b", 5, 0.1), ("4a", 5, 1.0),
         ("3c", 5, 10.0)]  # fmt: skip


@pytest.mark.parametrize(("name", "depth", "alpha"), CASES)
def test_it_takes_the_path_of_the_dual_flow(name, depth, alpha):
    loss = "logistic" if depth == 3 else "exp"
    problem, margins = three_points(name, loss=loss), np.geomspace(0.5, 1e6, 20)
    rules = {"stop": LogLoss(-1e6), "record": At(margins=margins)}
    net = DiagonalNet(depth, alpha=alpha)
    path, dual = (train(net, problem, flow(), **rules) for flow in (ParameterFlow, DualFlow))
    (ours, time), (theirs, their_time) = (directions(p, margins) for p in (path, dual))
    assert np.linalg.norm(ours - theirs, axis=1).max() < 1e-8
    np.testing.assert_allclose(time, their_time, atol=1e-6, rtol=1e-12)
    moved = DiagonalNet(depth, alpha=1.05 * alpha)
    other = train(moved, problem, DualFlow(rtol=1e-6), **rules)
    assert np.linalg.norm(ours - directions(other, margins)[0], axis=1).max() > 1e-5


@LOSSES
def test_it_is_the_flow_integrated_in_time(model, loss):
    problem, t = three_points("3d", loss=loss), 0.7
    path = train(model, problem, ParameterFlow(), stop=[Interpolated(1e-9), Time(t)])
    assert path.t == pytest.approx(t, rel=1e-9) or path.outcome.kind is not Kind.BUDGET_SPENT
    end = gradient_flow(model, problem, [path.t])[-1]
    np.testing.assert_allclose(path.parameters, end, rtol=1e-6, atol=1e-7)
    assert np.abs(path.parameters - model.start(3)).max() > 1e-3


def test_the_jacobian_is_that_of_the_velocity(model):
    for loss in ("exp", "logistic"):
        system = MarginParameters(model, three_points("3d", loss=loss))
        state = system.start * np.random.default_rng(0).uniform(0.8, 1.2, len(system.start)) + 0.01
        sigma, h = 0.7, 1e-6
        columns = []
        for unit in np.eye(len(state)):
            up, down = (system.velocity(sigma, state + s * h * unit) for s in (1, -1))
            columns.append((up - down) / (2 * h))
        expected, found = np.array(columns).T, system.jacobian(sigma, state)
        scale = np.abs(expected).max(axis=1, keepdims=True)
        assert (np.abs(found - expected) / scale).max() < 1e-6
        assert (np.abs(found - expected.T) / scale).max() > 1e-2


@pytest.mark.parametrize(("depth", "alpha"), [(2, 1e-3), (10, 1e-3), (2, 1e3)])
def test_tighter_steps_change_nothing_that_matters(depth, alpha):
    problem, net = three_points("3d"), DiagonalNet(depth, alpha=alpha)
    margins = np.geomspace(1e-2, 1e8, 20)
    rules = {"stop": LogLoss(-1e8), "record": At(margins=margins)}
    loose, tight, coarse = (
        directions(train(net, problem, ParameterFlow(rtol=r), **rules), margins)[0]
        for r in (1e-8, 1e-11, 1e-3)
    )
    assert np.linalg.norm(loose - tight, axis=1).max() < 1e-6
    if depth == 2:  # a rich start of depth 10 points along one axis from the first record on
        assert np.linalg.norm(coarse - tight, axis=1).max() > 1e-6


def test_it_passes_saddles():
    """Data that no single feature separates: the second weight stays at 1e-15 for long."""
    problem, net = separable_points(8, 5, margin=0.1, seed=1), DiagonalNet(5, alpha=1e-3)
    Z, rule = problem.signed_rows, LogLoss(-5)

    def log_velocity(log_t, x):  # in the logarithms of the weights and of the time
        u = np.exp(x).reshape(2, -1)
        pull = np.exp(-Z @ (u[0] ** 5 - u[1] ** 5)) @ Z / len(Z)
        return (np.exp(log_t) * 5 * u**3 * [pull, -pull]).ravel()

    def arrives(_, x):
        plus, minus = np.exp(x).reshape(2, -1)
        return smoothed(problem, Z @ (plus**5 - minus**5)) - 5

    arrives.terminal = True
    run = solve_ivp(log_velocity, (-5, 30), np.full(10, np.log(1e-3)), method="LSODA",
                    rtol=1e-10, atol=1e-10, events=arrives)  # fmt: skip
    plus, minus = np.exp(run.y[:, -1]).reshape(2, -1)
    path = train(net, problem, ParameterFlow(), stop=rule)
    assert path.outcome.kind is Kind.SOLVED
    np.testing.assert_allclose(path.predictor, plus**5 - minus**5, rtol=1e-6)
    assert float(path.dataset.log_t[-1]) == pytest.approx(run.t[-1], abs=1e-6)
    resting = path.dataset.predictor.values[:, 2] / path.predictor[2]
    assert resting[path.dataset.smoothed_margin < 1].max() < 1e-10  # it did wait at a saddle


# --- laws of the motion ---------------------------------------------------------------------


@settings(deadline=None, derandomize=True, max_examples=8)
@given(
    seed=st.integers(0, 10**6),
    shape=st.sampled_from([(1, 1), (2, 3), (4, 3), (6, 4)]),
    depth=st.integers(2, 6),
    log_alpha=st.floats(-2, 4),
    loss=st.sampled_from(["exp", "logistic"]),
)
def test_losses_fall_and_conserved_quantities_stay(seed, shape, depth, log_alpha, loss):
    problem = separable_points(*shape, margin=0.05, seed=seed, loss=loss)
    net = DiagonalNet(depth, log_alpha=log_alpha)
    path = train(net, problem, ParameterFlow(rtol=1e-9), stop=LogLoss(-1e4))
    assert path.outcome.kind is Kind.SOLVED
    data = path.dataset
    assert (np.diff(data.smoothed_margin) > 0).all()
    assert (np.diff(data.log_t[1:]) > 0).all()
    # the carried margins are those of the predictor, and those of the loss
    margins = data.predictor.values @ problem.signed_rows.T
    np.testing.assert_allclose(margins, data.margins, rtol=1e-5, atol=1e-7)
    early = data.smoothed_margin.values < 30
    np.testing.assert_allclose(smoothed(problem, margins[early]), data.smoothed_margin[early],
                               atol=1e-5)  # fmt: skip
    plus, minus = np.split(data.parameters.values / np.exp(log_alpha), 2, axis=1)
    law = plus * minus if depth == 2 else (plus ** (2 - depth) + minus ** (2 - depth)) / 2
    np.testing.assert_allclose(law, 1, rtol=1e-5)
    assert np.ptp(plus + minus) > 0


def test_a_product_net_conserves_its_imbalance():
    u, v = np.array([1.0, 2.0, 0.5]), np.array([0.3, 0.0, -0.5])
    path = train(ProductNet(u, v), three_points("3b"), ParameterFlow(), stop=LogLoss(-1e5))
    a, b = np.split(path.dataset.parameters.values, 2, axis=1)
    np.testing.assert_allclose(a**2 - b**2, np.tile(u**2 - v**2, (len(a), 1)), atol=1e-4)
    assert np.ptp(a**2 + b**2) > 1e4


@LOSSES
def test_a_start_that_predicts_already_sets_the_clock(loss):
    problem = three_points("3d", loss=loss)
    beta = STARTS["biased"].predictor(STARTS["biased"].start(3))
    path = train(STARTS["biased"], problem, ParameterFlow(), stop=LogLoss(-50))
    begin = smoothed(problem, problem.signed_rows @ beta)
    assert float(path.dataset.smoothed_margin[0]) == pytest.approx(begin, rel=1e-12)
    np.testing.assert_allclose(path.dataset.predictor[0], beta, rtol=1e-14)
    assert abs(begin) > 0.05


# --- rests and rules ------------------------------------------------------------------------


def test_a_saddle_start_and_a_model_that_cannot_go_on_are_reported():
    problem = Classification([[1.0, -2.0], [-0.5, -1.0], [0.2, -1.0]], np.ones(3))
    flat = Reparametrized(lambda w: w**2 - 1, 0.0, signed=False)
    path = train(flat, problem, ParameterFlow(), stop=LogLoss(-10))
    assert path.outcome.kind is Kind.STALLED
    assert "saddle" in path.outcome.sentence
    # weights that cannot be negative: the first balances its samples, the second falls to zero
    for depth in (2, 3):
        path = train(
            DiagonalNet(depth, alpha=1.0, signed=False), problem, ParameterFlow(), stop=LogLoss(-10)
        )
        assert path.outcome.kind is Kind.STALLED
        assert "at rest" in path.outcome.sentence
        weights = np.exp(-problem.signed_rows @ path.predictor)
        assert abs((weights @ problem.signed_rows)[0]) < 1e-6
        assert 0 <= path.predictor[1] < 1e-9
    signed = train(DiagonalNet(2, alpha=1.0), problem, ParameterFlow(), stop=LogLoss(-10))
    assert signed.outcome.kind is Kind.SOLVED


def test_rules_stop_where_they_say():
    problem, net = three_points("3b"), DiagonalNet(2, alpha=3.0)
    at_loss = train(net, problem, ParameterFlow(), stop=LogLoss(-123.0))
    assert at_loss.log_loss == pytest.approx(-123, rel=1e-12)
    scale = train(net, problem, ParameterFlow(), stop=Scale(0.05))
    assert scale.log_loss == pytest.approx(-9 / 0.05, rel=1e-12)
    near = train(net, problem, ParameterFlow(), stop=[LogLoss(-1e7), Near([1, 0, 0], 12.0)])
    assert "12 degrees" in near.outcome.sentence
    cosine = near.predictor[0] / np.linalg.norm(near.predictor)
    assert np.degrees(np.arccos(cosine)) == pytest.approx(12, abs=1e-6)
    assert all(path.outcome.kind is Kind.SOLVED for path in (at_loss, scale, near))


def test_a_rule_that_is_never_met_ends_with_an_outcome():
    problem, net = three_points("3b"), DiagonalNet(2, alpha=3.0)
    away = Near([0, 0, -1], 1.0)
    for path, words in (
        (train(net, problem, ParameterFlow(max_steps=300), stop=away), "max_steps"),
        (train(net, problem, ParameterFlow(), stop=[away, Time(1e5)]), "by Time"),
    ):
        assert path.outcome.kind is Kind.BUDGET_SPENT
        assert words in path.outcome.sentence


@pytest.mark.parametrize(
    ("rules", "problem", "sentence"),
    [
        ({}, Classification([[1.0, 0], [-1.0, 0]], [1, 1]), "not linearly separable"),
        ({}, Classification([[1.0, 0], [0, 0]], [1, 1]), "row 1 of X is zero"),
        ({"stop": ["soon"]}, three_points("3b"), "stop must be a rule"),
        ({"record": [1.0]}, three_points("3b"), "record must be LogSpaced"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(rules, problem, sentence):
    with pytest.raises(ValueError, match=sentence) as refused:
        train(DiagonalNet(2, alpha=1.0), problem, ParameterFlow(), **rules)
    assert "\n" not in str(refused.value)


def test_gradients_beyond_float64_are_refused():
    with pytest.raises(ValueError, match="use DualFlow"):
        train(DiagonalNet(10, alpha=1e-17), three_points("3b"), ParameterFlow())
