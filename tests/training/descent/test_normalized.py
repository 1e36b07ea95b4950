"""Normalized descent: plain loops, exact arithmetic far out, the order of its error, rules."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penchant import Classification, DiagonalNet, ParameterFlow, Steps, Time, train
from penchant.lab import Kind
from penchant.methods import NormalizedDescent
from penchant.models import LinearPredictor, ProductNet
from penchant.problems import sparse_regression, three_points
from penchant.record import At
from penchant.stop import LogLoss, Near, Scale

LOSSES = pytest.mark.parametrize("loss", ["exp", "logistic"])
NET = DiagonalNet(2, alpha=1.0)


def run(rate, steps, *goals, model=NET, problem=None, **more):
    """The path of so many normalized steps, or fewer up to a goal."""
    problem = three_points("3b") if problem is None else problem
    return train(model, problem, NormalizedDescent(rate), stop=[Steps(steps), *goals], **more)


def flow_to(log_loss, model=NET, problem=None):
    problem = three_points("3b") if problem is None else problem
    return train(model, problem, ParameterFlow(), stop=LogLoss(log_loss))


def plain_loop(model, problem, step, count):
    """(parameters, times) of the update with the loss and its gradient as they are written."""
    Z, u, t = problem.signed_rows, model.start(problem.dimension), 0.0
    rows = [(u, t)]
    for _ in range(count):
        m = Z @ model.predictor(u)
        if problem.loss == "exp":
            loss, force = np.exp(-m).mean(), np.exp(-m) / len(m)
        else:
            loss, force = np.log(1 + np.exp(-m)).mean(), 1 / (1 + np.exp(m)) / len(m)
        u, t = u + step * model.pullback(u, Z, force) / loss, t + step / loss
        rows.append((u, t))
    return np.array([u for u, _ in rows]), np.array([t for _, t in rows])


@LOSSES
@pytest.mark.parametrize(
    "model",
    [NET, DiagonalNet(3, alpha=0.6), ProductNet([1, 2, 1], [1, 0, -1])],
    ids=["depth 2", "depth 3", "product"],
)
def test_it_takes_the_steps_of_a_plain_loop(model, loss):
    problem = three_points("3d", loss=loss)
    weights, times = plain_loop(model, problem, 0.002, 40)
    path = run(0.002, 40, model=model, problem=problem, record=At([1, 7, 39]))
    at = [0, 1, 7, 39, 40]
    assert path.dataset.step.values.tolist() == at
    np.testing.assert_allclose(path.dataset.parameters, weights[at], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(path.dataset.t, times[at], rtol=1e-12)
    np.testing.assert_allclose(path.dataset.log_t[1:], np.log(times[at[1:]]), atol=1e-12)
    assert path.outcome.kind is Kind.SOLVED
    assert np.abs(path.dataset.parameters.values[-1] - weights[39]).max() > 1e-4


def test_squares_and_labels_that_no_line_separates_are_normalized_too():
    problem = sparse_regression(3, 5, sparsity=1, seed=0)
    a, t = np.full(5, 0.5), 0.0
    for _ in range(20):
        residual = problem.X @ a - problem.y
        loss = residual @ residual
        a, t = a - 1e-3 * 2 * problem.X.T @ residual / loss, t + 1e-3 / loss
    path = run(1e-3, 20, model=LinearPredictor(0.5), problem=problem)
    np.testing.assert_allclose(path.predictor, a, rtol=1e-11)
    assert path.t == pytest.approx(t, rel=1e-11)
    both = Classification([[1.0], [-1.0], [2.0]], [1, 1, 1])
    a = 0.5
    for _ in range(50):
        tails = np.exp(-both.X[:, 0] * a)
        a = a + 0.01 * (both.X[:, 0] * tails).sum() / tails.sum()
    path = run(0.01, 50, model=LinearPredictor(0.5), problem=both)
    assert path.predictor[0] == pytest.approx(a, rel=1e-11)


@LOSSES
@settings(deadline=None, derandomize=True, max_examples=6)
@given(size=st.floats(0, 5), seed=st.integers(0, 10**6))
def test_one_step_from_anywhere_is_exact(loss, size, seed):
    """From margins up to 1e5 the loss is far below float64; mpmath holds it."""
    rng = np.random.default_rng(seed)
    start = rng.uniform(0.5, 1.5, (2, 3)) * 10 ** (size / 2)
    problem = three_points("3b", loss=loss)
    path = run(0.1, 1, model=DiagonalNet(2, start=start), problem=problem)
    with mpmath.workdps(60):
        Z = mpmath.matrix(problem.signed_rows.tolist())
        beta = mpmath.matrix([mpmath.mpf(a) ** 2 - mpmath.mpf(b) ** 2 for a, b in start.T])
        tails = [mpmath.exp(-m) for m in Z * beta]
        if loss == "exp":
            total, pulls = sum(tails), tails
        else:
            total = sum(mpmath.log1p(e) for e in tails)
            pulls = [e / (1 + e) for e in tails]
        pull = np.array(
            [float(sum(pulls[n] * Z[n, i] for n in range(3)) / total) for i in range(3)]
        )
        log_t = float(mpmath.log(mpmath.mpf(0.1) * 3 / total))
    moved, expected = path.parameters - start.ravel(), (0.2 * start * [pull, -pull]).ravel()
    rounding = 1e-14 * start.max()
    np.testing.assert_allclose(moved, expected, rtol=1e-9, atol=rounding)
    assert float(path.dataset.log_t[-1]) == pytest.approx(log_t, rel=1e-12, abs=1e-11)
    assert np.abs(moved).max() > 1e6 * rounding


@LOSSES
def test_it_approaches_the_flow_at_first_order(loss):
    problem, net = three_points("3d", loss=loss), DiagonalNet(3, alpha=0.8)
    steps, errors, times, controls = np.array([8e-4, 4e-4, 2e-4, 1e-4]), [], [], []
    for step in steps:
        end = run(step, 10**6, LogLoss(-20), model=net, problem=problem)
        flow = flow_to(end.log_loss, net, problem)
        other = flow_to(0.9 * end.log_loss, net, problem)
        errors.append(np.abs(end.predictor - flow.predictor).max())
        controls.append(np.abs(end.predictor - other.predictor).max())
        times.append(abs(float(end.dataset.log_t[-1] - flow.dataset.log_t[-1])))
    for values in (errors, times):
        assert np.polyfit(np.log(steps), np.log(values), 1)[0] == pytest.approx(1, abs=0.1)
    assert errors[-1] < 1e-2
    assert abs(np.polyfit(np.log(steps), np.log(controls), 1)[0]) < 0.1


def test_it_goes_where_no_loss_can_be_represented():
    path = run(1e-4, 10**6, LogLoss(-1e6))
    assert path.outcome.kind is Kind.SOLVED
    flow = flow_to(path.log_loss)
    np.testing.assert_allclose(path.predictor, flow.predictor, atol=1e-3 * path.predictor.max())
    assert np.isinf(path.t)
    # the last step but one decides the time of a descent, and steps raise the margin by 590 here
    assert float(path.dataset.log_t[-1]) == pytest.approx(float(flow.dataset.log_t[-1]), rel=1e-3)
    assert (np.diff(path.dataset.smoothed_margin) > 0).all()


# --- rules ----------------------------------------------------------------------------------


def test_it_stops_at_the_first_step_past_a_loss():
    path = run(0.01, 1000, LogLoss(-7))
    last = path.steps
    before = run(0.01, last - 1)
    assert path.outcome.kind is Kind.SOLVED
    assert path.log_loss <= -7 < before.log_loss
    assert run(0.01, 1000, Scale(1 / 7)).steps == last


def test_it_stops_at_the_first_step_past_a_time():
    path = run(0.01, 1000, Time(5.0))
    before = run(0.01, path.steps - 1)
    assert path.outcome.kind is Kind.SOLVED
    assert before.t < 5 <= path.t
    short = run(0.01, 1000, Time(5.0), LogLoss(-1e6))
    assert short.steps == path.steps
    assert short.outcome.kind is Kind.BUDGET_SPENT


def test_it_stops_near_a_direction_and_at_the_first_of_several_rules():
    rule = Near([1, 0, 0], 20.0)
    path = run(1e-3, 10**5, rule, LogLoss(-1e30))
    assert path.outcome.kind is Kind.SOLVED
    assert "20 degrees" in path.outcome.sentence
    gaps = [rule.gap(beta) for beta in path.dataset.predictor.values[1:]]
    assert gaps[-1] <= 0 < min(gaps[:-1])


def test_a_rule_that_is_never_met_ends_with_an_outcome():
    short = run(1e-3, 100, LogLoss(-1e6))
    away = run(1e-3, 100, Near([0, 0, -1], 1.0))
    for path, words in ((short, "above log loss -1e+06"), (away, "degrees outside 1 degrees")):
        assert path.outcome.kind is Kind.BUDGET_SPENT
        assert words in path.outcome.sentence
        assert "100 steps ended" in path.outcome.sentence


def test_divergence_is_reported_and_never_recorded():
    net = DiagonalNet(5, alpha=10.0)
    path = run(1e3, 1000, model=net)
    assert path.outcome.kind is Kind.DIVERGED
    assert "smaller learning rate than 1000" in path.outcome.sentence
    assert np.isfinite(path.dataset.predictor).all()
