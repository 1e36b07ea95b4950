"""Gradient descent with weight decay on every kind of problem, against loops and the flow."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tacit.flows.descent import GradientDescent

from tacit.flows.decay import WeightDecay
from tacit.models.diagonal import DiagonalNet
from tacit.models.factorization import DifferenceFactorization
from tacit.models.function import FunctionModel
from tacit.problems.classification import Classification, separable_points
from tacit.problems.matrices import Completion
from tacit.problems.regression import sparse_regression
from tacit.records import Kind
from tacit.training.exact.parameter import ParameterFlow

PROBLEM = sparse_regression(4, 6, sparsity=2, seed=0)
COMPLETION = Completion((3, 3), [(0, 0), (0, 1), (2, 1)], [1.0, -0.5, 2.0], np.ones((3, 3)))


def tanh_net():
    import jax.numpy as jnp

    start = np.random.default_rng(1).standard_normal(12)
    return FunctionModel(lambda w, X: jnp.tanh(X @ w[:9].reshape(3, 3).T) @ w[9:], start)


def loop(model, problem, step, rate, steps):
    """theta after every step, written out with numpy from the definitions."""
    X = problem.design if hasattr(problem, "design") else problem.X
    w = model.start(problem.dimension)
    rows = [w]
    for _ in range(steps):
        f = model.predict(w, X)
        slopes = 2 * (f - problem.y)
        if isinstance(problem, Classification):
            margins = problem.y * f
            pull = np.exp(-margins) if problem.loss == "exp" else 1 / (1 + np.exp(margins))
            slopes = -problem.y * pull / len(pull)
        w = (1 - step * rate) * w - step * model.pullback(w, X, slopes)
        rows.append(w)
    return np.array(rows)


CASES = [
    (DiagonalNet(2, alpha=0.5), PROBLEM),
    (DiagonalNet(3, alpha=0.8), separable_points(5, 6, seed=2)),
    (DiagonalNet(2, alpha=0.8, signed=False), separable_points(5, 6, seed=2, loss="logistic")),
    (tanh_net(), sparse_regression(4, 3, sparsity=2, seed=0)),
    (tanh_net(), separable_points(5, 3, seed=2, loss="logistic")),
    (DifferenceFactorization(alpha=0.7), COMPLETION),
]


@pytest.mark.parametrize(("model", "problem"), CASES)
def test_a_step_shrinks_and_descends(model, problem):
    flow, rate = GradientDescent(step=0.01, steps=40, record=range(41)), 0.5
    path = WeightDecay(flow, rate).run(model, problem)
    reference = loop(model, problem, 0.01, rate, 40)
    found = path.dataset.parameters.values
    assert np.allclose(found, reference, rtol=1e-12, atol=1e-13)
    assert not np.allclose(found, loop(model, problem, 0.01, 0.0, 40), rtol=1e-2)
    assert np.allclose(path.dataset.t, 0.01 * np.arange(41))
    assert np.allclose(path.dataset.parameter_norm, np.linalg.norm(reference, axis=1), rtol=1e-12)
    plain = flow.run(model, problem)
    assert np.allclose(plain.dataset.parameters, loop(model, problem, 0.01, 0, 40), rtol=1e-12)


def test_no_decay_is_plain_descent():
    flow = GradientDescent(step=0.01, steps=40)
    plain, zero = flow.run(*CASES[0]), flow.run_decayed(*CASES[0], 0.0)
    assert np.array_equal(zero.parameters, plain.parameters)
    assert not np.array_equal(flow.run_decayed(*CASES[0], 1e-6).parameters, plain.parameters)


@settings(deadline=None, derandomize=True, max_examples=3)
@given(st.integers(0, 100), st.floats(0.01, 1.0), st.floats(0.2, 1.5))
def test_small_steps_follow_the_flow_to_first_order(seed, rate, alpha):
    problem, net = separable_points(4, 5, seed=seed, loss="logistic"), DiagonalNet(2, alpha=alpha)
    flow = WeightDecay(ParameterFlow(t_max=2.0, rtol=1e-10), rate).run(net, problem)

    def error(steps):
        path = WeightDecay(GradientDescent(step=2.0 / steps, steps=steps), rate).run(net, problem)
        return np.abs(path.predictor - flow.predictor).max()

    coarse, fine = error(200), error(800)
    assert np.log(coarse / fine) / np.log(4) == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize(("model", "problem"), CASES[3:])
def test_other_models_follow_the_flow_to_first_order_too(model, problem):
    flow = ParameterFlow(t_max=1.0, rtol=1e-9).run_decayed(model, problem, 0.5)

    def error(steps):
        path = GradientDescent(step=1.0 / steps, steps=steps).run_decayed(model, problem, 0.5)
        return np.abs(path.predictions - flow.predictions).max()

    assert np.log(error(500) / error(2000)) / np.log(4) == pytest.approx(1, abs=0.1)


def test_classification_stops_at_its_loss_and_is_labelled():
    problem = separable_points(5, 6, seed=2)
    path = GradientDescent(step=0.1, steps=10_000, loss=0.1).run(DiagonalNet(2, alpha=1), problem)
    assert path.outcome.kind is Kind.SOLVED
    data = path.dataset
    losses = np.exp(-(data.predictor.values @ problem.signed_rows.T)).mean(axis=1)
    assert np.allclose(data.loss, losses, rtol=1e-12)
    assert losses[-1] <= 0.1 * losses[0] < losses[-2]
    before = GradientDescent(step=0.1, steps=int(data.step[-1]) - 1)
    assert np.exp(before.run(DiagonalNet(2, alpha=1), problem).log_loss) > 0.1 * losses[0]


def test_the_description_names_the_decay():
    path = WeightDecay(GradientDescent(step=0.1, steps=3), 0.25).run(tanh_net(), CASES[3][1])
    flow = json.loads(path.dataset.attrs["description"])["flow"]
    assert flow["rate"] == 0.25
    assert flow["of"]["flow"] == "GradientDescent"
    assert path.dataset.step.values.tolist() == [0, 1, 2, 3]


def test_a_step_too_large_for_the_decay_diverges():
    path = GradientDescent(step=30.0, steps=3000).run_decayed(tanh_net(), CASES[3][1], 1.0)
    assert path.outcome.kind is Kind.DIVERGED
    assert "smaller than 30" in path.outcome.sentence


@pytest.mark.parametrize(
    ("run", "sentence"),
    [
        (
            lambda f: f.run(DiagonalNet(2, alpha=1e3, signed=False), Classification([[1]], [-1])),
            "beyond float64",
        ),
        (lambda f: f.run(DiagonalNet(2, alpha=1), COMPLETION), "needs a model of a matrix"),
        (lambda f: f.run_decayed(DiagonalNet(2, alpha=1), PROBLEM, -1.0), "rate must be >= 0"),
        (lambda f: f.run("net", PROBLEM), "got str"),
    ],
)
def test_what_cannot_be_run_is_refused_in_one_sentence(run, sentence):
    with pytest.raises(ValueError, match=sentence) as refused:
        run(GradientDescent(step=0.1, steps=5))
    assert "\n" not in str(refused.value)
