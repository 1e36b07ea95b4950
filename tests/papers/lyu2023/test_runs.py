"""Runs under weight decay by second routes, and odd input of the flow and of the forecast."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

import penchant
from penchant import (
    Classification,
    DiagonalNet,
    DualFlow,
    NumericalError,
    Q,
    Regression,
    forecast,
    train,
)
from penchant.problems import sparse_regression
from penchant.record import At
from penchant.training.exact.decay import follow
from penchant_papers.lyu2023 import runs

DRAWN = {"max_examples": 6, "deadline": None, "derandomize": True}


def problem_of(kind, seed=0):
    if kind == "squares":
        return penchant.problems.sparse_regression(4, 8, sparsity=2, noise=0.0, seed=seed)
    return runs.data_set(seed, loss=kind)


@pytest.mark.parametrize(("kind", "depth"), [("exp", 3), ("logistic", 2), ("squares", 2)])
def test_moments_of_the_exact_flow_are_those_of_the_parameters(kind, depth):
    problem, z = problem_of(kind), np.array([0.2, 1.0, 2.0, 4.0])
    one = runs.exact(problem, 1.0, 1e-2, z, depth, rtol=1e-9)
    two = runs.in_parameters(problem, 1.0, 1e-2, z, depth)
    names = ("predictor", "turn", "growth", "log_loss")
    for name in names:
        assert one[name].values == pytest.approx(two[name].values, rel=1e-5, abs=1e-6)
    other = runs.exact(problem, 1.0, 1.01e-2, z, depth, rtol=1e-9)
    assert other.log_loss.values != pytest.approx(two.log_loss.values, rel=1e-5, abs=1e-6)


def test_margin_points_and_kernels_are_in_their_order():
    problem = problem_of("logistic", 1)
    kernel, rich = runs.margin_points(problem)
    assert np.linalg.norm(kernel) < np.linalg.norm(rich)
    assert np.abs(rich).sum() < np.abs(kernel).sum()


def test_moments_complain_about_a_run_that_did_not_end():
    with pytest.raises(NumericalError, match="the integrator gave up"):
        runs.exact(problem_of("logistic"), 3.0, 1e-3, np.array([30.0]), depth=3)


# --- odd input of the flow and of the forecast


def predictors(net, problem, rate, times, rtol=1e-8):
    path = train(
        net, problem, DualFlow(rtol=rtol, weight_decay=rate), record=At(times=tuple(times))
    )
    assert path.outcome.ok
    return path.dataset.predictor.values[1:]


@settings(**DRAWN)
@given(x=st.floats(0.1, 3.0), y=st.floats(0.1, 3.0), log_alpha=st.floats(-1.0, 2.0))
def test_one_sample_of_one_feature(x, y, log_alpha):
    """beta' = 4 sqrt(beta^2 + 4 a^2) x (2 (y - x beta)) - 2 rate beta, a the decayed start."""
    net, times, rate = DiagonalNet(2, log_alpha=log_alpha), (0.05, 0.5, 5.0, 20.0), 0.1

    def velocity(t, beta):
        size = np.hypot(beta, 2 * np.exp(2 * (log_alpha - rate * t)))
        return 8 * size * x * (y - x * beta) - 2 * rate * beta

    raw = solve_ivp(velocity, (0, 20), [0.0], "LSODA", times, rtol=1e-10, atol=1e-12).y[0]
    problem = Regression(np.array([[x]]), np.array([y]))
    found = predictors(net, problem, rate, times)[:, 0]
    assert found == pytest.approx(raw, rel=1e-5)


@settings(**{**DRAWN, "max_examples": 4})
@given(seed=st.integers(0, 10**6), kind=st.sampled_from(["exp", "logistic", "squares"]))
def test_turned_zero_and_repeated_data(seed, kind):
    """Signs and order of features, a feature of zeros, samples given twice: known changes."""
    rng = np.random.default_rng(seed)
    problem, net, z = problem_of(kind), DiagonalNet(2, alpha=1.5), np.array([0.1, 1.0, 4.0])
    plain = predictors(net, problem, 0.1, z / 0.1)
    order, signs = rng.permutation(8), rng.choice([-1.0, 1.0], 8)
    turned = dataclasses.replace(problem, X=(problem.X * signs)[:, order], truth=None)
    assert predictors(net, turned, 0.1, z / 0.1) == pytest.approx((plain * signs)[:, order],
                                                                  rel=1e-4, abs=1e-6)  # fmt: skip
    wide = dataclasses.replace(problem, X=np.insert(problem.X, 3, 0.0, axis=1), truth=None)
    found = predictors(net, wide, 0.1, z / 0.1)
    assert found == pytest.approx(np.insert(plain, 3, 0.0, axis=1), rel=1e-4, abs=1e-6)
    # a sum of squares doubles with its samples, which halves time and doubles the rate
    factor = 2.0 if kind == "squares" else 1.0
    twice = dataclasses.replace(
        problem, X=np.repeat(problem.X, 2, axis=0), y=np.repeat(problem.y, 2)
    )
    found = predictors(net, twice, 0.1 * factor, z / (0.1 * factor))
    assert found == pytest.approx(plain, rel=1e-4, abs=1e-6)
    assert np.abs(plain[1] - plain[2]).max() > 1e-2


@pytest.mark.parametrize("rate", [1e6, 1e200])
def test_a_huge_rate_leaves_a_linear_answer(rate):
    """beta = 2 a 4 t <z, q> with q of the start: nothing else happens before all has decayed."""
    problem, z = problem_of("exp"), np.array([0.1, 1.0, 5.0])
    found = predictors(DiagonalNet(2, alpha=2.0), problem, rate, z / rate)
    wanted = np.outer(8 * 4 * np.exp(-2 * z) * z / rate, problem.signed_rows.mean(axis=0))
    assert found / wanted == pytest.approx(np.ones_like(found), abs=1e-3)


def test_a_tiny_start_still_walks_the_q_path():
    problem, rate, z = problem_of("squares"), 1e-5, np.array([1.0, 5.0])
    found = predictors(DiagonalNet(2, log_alpha=-2000.0), problem, rate, z / rate)
    for beta, time in zip(found, z, strict=True):
        limit = penchant.interpolate(problem.X, problem.y, Q(2, log_alpha=-2000 - time)).beta
        assert beta == pytest.approx(limit, abs=1e-4)
        far = penchant.interpolate(problem.X, problem.y, Q(2, log_alpha=2.0)).beta
        assert np.abs(beta - far).max() > 1e-2


@pytest.mark.parametrize(
    "problem",
    [
        Regression(np.zeros((3, 4)), np.array([1.0, 2.0, 3.0])),
        Regression(np.eye(3), np.zeros(3)),
        Classification(np.ones((4, 3)), np.array([1.0, -1.0, 1.0, -1.0])),
        Regression(np.ones((2, 3)), np.array([1.0, -1.0])),
    ],
    ids=["no features", "no targets", "labels that contradict", "targets that contradict"],
)
def test_data_that_pull_nothing_only_decay(problem):
    flow = DualFlow(weight_decay=0.1)
    data = train(
        DiagonalNet(2, alpha=2.0), problem, flow, record=At(times=(1e-300, 3.0, 3.0, 20.0))
    ).dataset
    assert np.abs(data.predictor.values).max() < 1e-12
    start = 2 * math.sqrt(2 * problem.dimension)
    norms = start * np.exp(-0.1 * np.array([0, 0, 3, 20]))
    assert data.parameter_norm.values == pytest.approx(norms, rel=1e-9)


@settings(**DRAWN)
@given(log_c=st.floats(-12.0, -3.0), growth=st.floats(0.01, 2.0), rate=st.floats(0.001, 1.0))
def test_a_forecast_from_two_exponentials(log_c, growth, rate):
    t = np.linspace(0.0, 1.0, 30) / growth
    turn = np.degrees(np.arctan(np.exp(log_c + growth * t)))
    found = forecast({"t": t, "parameter_norm": 7 * np.exp(-rate * t), "turn": turn})
    assert found.transition == pytest.approx(-log_c / growth, rel=1e-6)
    assert found.weight_decay == pytest.approx(rate, rel=1e-6)
    assert found.log_norm == pytest.approx(math.log(7) + rate * log_c / growth, rel=1e-6, abs=1e-6)


@settings(**DRAWN)
@given(x=st.floats(0.1, 10.0), y=st.floats(0.1, 10.0), log_alpha=st.floats(2.0, 1000.0))
def test_the_forecast_of_one_sample_is_a_formula(x, y, log_alpha):
    """The fitting displacement is y / (2 sqrt(2) alpha x), the start sqrt(2) alpha."""
    problem, net = Regression(np.array([[x]]), np.array([y])), DiagonalNet(2, log_alpha=log_alpha)
    z = log_alpha + math.log(4 * x / y) / 2
    assert forecast(net, problem, 1e-3).transition * 1e-3 == pytest.approx(max(z, 0.0), rel=1e-9)
    twice = Regression(np.array([[x, 0.0], [x, 0.0]]), np.array([y, y]))  # the start is longer
    there = max(z + math.log(2) / 4, 0.0)
    assert forecast(net, twice, 1e-3).transition * 1e-3 == pytest.approx(there, rel=1e-9)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda p, net: forecast(net, dataclasses.replace(p, X=np.ones_like(p.X)), 1e-3),
         "do not separate"),
        (lambda p, net: forecast(net, p, math.inf), "finite number > 0"),
        (lambda p, net: forecast(net, p, 1e-3).steps(0), "learning_rate must be > 0"),
        (lambda p, net: forecast(DiagonalNet(2, alpha=1.0, signed=False), p, 1e-3), "Difference"),
        (lambda p, net: forecast({"t": [], "parameter_norm": [], "turn": []}), "must not be empty"),
        (lambda p, net: forecast({"t": [math.nan], "parameter_norm": [1], "turn": [1]}),
         "must be finite"),
        (lambda p, net: At(times=[math.inf]), "finite number"),
        (lambda p, net: train(net, p, penchant.ParameterFlow(weight_decay=0.1)), "give stop=Time"),
        (lambda p, net: DualFlow(weight_decay=True), "weight_decay must be a finite number"),
    ],
)  # fmt: skip
def test_wrong_input_speaks(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make(problem_of("logistic"), DiagonalNet(2, alpha=3.0))


def test_a_flow_that_gives_up_in_its_last_solver_says_so(monkeypatch):
    """Both solvers fail at the first tolerance; the papers then try a larger one."""
    problem = sparse_regression(4, 8, sparsity=2, noise=0.0, seed=1006)
    rate, z = runs.joint_rate(16.0), np.array([14.0])
    net, flow = DiagonalNet(2, log_alpha=16.0), DualFlow(rtol=1e-8, weight_decay=rate)
    coarse = runs.exact(problem, 16.0, rate, z, rtol=1e-7)
    step, tried = follow.try_step, []

    def fails_at_the_first_tolerance(solver):
        tried.append(solver.rtol)
        return solver.rtol > tried[0] and step(solver)

    monkeypatch.setattr(follow, "try_step", fails_at_the_first_tolerance)
    with pytest.raises(NumericalError, match="raise rtol"):
        train(net, problem, flow, record=At(times=z / rate), throw=True)
    again = runs.exact(problem, 16.0, rate, z, rtol=1e-8)
    assert len(set(tried)) == 2
    np.testing.assert_allclose(again.predictor, coarse.predictor, rtol=1e-5)
