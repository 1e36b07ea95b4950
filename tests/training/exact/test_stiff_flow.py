"""The stiff flow of any model, with and without weight decay, against exact and general solvers."""

import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from general_solvers import gradient_flow
from penchant import (
    Classification,
    DiagonalNet,
    DualFlow,
    Factorization,
    FunctionModel,
    ParameterFlow,
    Regression,
    Time,
    train,
)
from penchant.lab import Kind
from penchant.measures.distances import turn
from penchant.models import (
    DeepFactorization,
    DifferenceFactorization,
    ProductNet,
    Reparametrized,
    SymmetricFactorization,
)
from penchant.problems import Completion, Sensing, separable_points, sparse_regression
from penchant.record import At, LogSpaced
from penchant.stop import Interpolated, LogLoss, Near
from penchant.training.exact.bdf import SIGNS, Backward, Curved, GaussNewton
from penchant.training.exact.task import DenseDerivative, MatrixSamples, TwoFactorSamples

RNG = np.random.default_rng(0)
TRUTH = RNG.standard_normal((4, 4))
ENTRIES = np.array([(0, 1), (1, 1), (2, 3), (3, 0), (0, 0), (1, 2)])
COMPLETION = Completion((4, 4), ENTRIES, TRUTH[tuple(ENTRIES.T)], TRUTH)
MEASURES = RNG.standard_normal((5, 4, 4))
SENSING = Sensing(MEASURES, MEASURES.reshape(5, -1) @ TRUTH.ravel(), TRUTH)
PROBLEM = sparse_regression(6, 12, sparsity=2, seed=0)


def tanh_net(width=4):
    import jax.numpy as jnp

    def net(w, X):
        hidden = w[: width * X.shape[1]].reshape(width, -1)
        bias, out = w[-2 * width : -width], w[-width:]
        return jnp.tanh(X @ hidden.T + bias) @ out

    def start(d):
        return np.random.default_rng(3).standard_normal(width * (d + 2))

    return FunctionModel(net, start)


# the integrator


class Cubic:
    """u' = -u^3 with a tangent that is wrong on purpose: -1 in place of -3 u^2."""

    def velocity(self, t, u):
        return -(u**3)

    def tangent(self, t, u):
        return GaussNewton(DenseDerivative(np.eye(1)), np.ones(1), 0.0)

    curved = tangent

    def weights(self, u):
        return np.full(1, 1e-12)

    @staticmethod
    def exact(t):
        return 1 / np.sqrt(1 + 2 * t)


def error_at_fixed_step(order, h, end=1.0):
    """The error at `end` of steps of one size and order, from an exact history."""
    solver = Backward(Cubic(), 0.0, np.ones(1), h)
    history = Cubic.exact(-h * np.arange(order + 1))[:, None]
    solver.order = order
    solver.table[: order + 1] = SIGNS[: order + 1, : order + 1] @ history
    while solver.t < end - h / 2:
        ahead = solver.table[: order + 1].sum(axis=0)
        solver._accept(solver._newton(ahead, np.full(1, 1e-12)))
    return abs(float(solver.state[0]) - Cubic.exact(solver.t))


@pytest.mark.parametrize(("order", "h"), [(1, 1e-3), (2, 5e-3), (3, 5e-3), (4, 1e-2), (5, 1e-2)])
def test_the_order_is_the_slope_of_the_error_although_the_tangent_is_wrong(order, h):
    slope = np.log2(error_at_fixed_step(order, h) / error_at_fixed_step(order, h / 2))
    assert slope == pytest.approx(order, abs=0.25)  # the next orders are a whole unit away


def test_a_changed_step_keeps_the_polynomial():
    solver = Backward(Cubic(), 0.0, np.ones(1), 0.1)
    solver.order, times = 4, np.linspace(-0.3, 0, 7)
    solver.table[:5] = RNG.standard_normal((5, 1))
    before = [solver.at(t)[0] for t in times]
    other = Backward(Cubic(), 0.0, np.ones(1), 0.1)
    other.order, other.table = 4, solver.table.copy()
    solver._resize(0.37)
    assert np.allclose([solver.at(t)[0] for t in times], before, rtol=1e-11)
    other.h *= 0.37  # the differences left as they were: another polynomial
    assert not np.allclose([other.at(t)[0] for t in times], before, rtol=1e-2)


@settings(deadline=None, derandomize=True, max_examples=20)
@given(st.integers(0, 10**6), st.floats(-3, 3), st.floats(0, 5), st.booleans())
def test_sample_space_solves_the_parameter_system(seed, log_step, rate, wide):
    rng = np.random.default_rng(seed)
    J, bends, b = rng.standard_normal((4, 9 if wide else 3)), rng.uniform(0, 2, 4), None
    b, step = rng.standard_normal(J.shape[1]), 10**log_step
    x = GaussNewton(DenseDerivative(J), bends, rate).solver(step)(b)
    A = -(J.T * bends) @ J - rate * np.eye(len(b))
    assert np.allclose(x - step * A @ x, b, rtol=0, atol=1e-12 * (1 + step * np.abs(A).max()))
    if rate > 0.1 and step > 0.1:
        without = GaussNewton(DenseDerivative(J), bends, 0.0).solver(step)(b)
        assert not np.allclose(without, x, rtol=1e-3)


def test_the_curvature_of_what_is_not_fitted_joins_the_tangent():
    model = DeepFactorization(3, 4, alpha=0.8)
    w, slopes, rate = model.start(16), np.arange(1.0, 6.0), 0.3
    samples, P = MatrixSamples(model, SENSING, w), w.size
    tangent = GaussNewton(samples.derivative(w), np.full(5, 2.0), rate)
    curved = Curved(tangent, samples, w, slopes)

    def pull(at):
        return model.pullback(at, SENSING.design, slopes)

    small = 1e-6 * np.eye(P)
    hessian = np.array([(pull(w + e) - pull(w - e)) / 2e-6 for e in small])
    J = model.jacobian(w, SENSING.design)
    A = -2 * J.T @ J - hessian - rate * np.eye(P)
    b, step = np.sin(np.arange(P)), 0.1 / np.linalg.norm(hessian, 2)
    assert np.allclose(curved.apply(b), A @ b, atol=1e-5)
    assert not np.allclose(tangent.apply(b), A @ b, atol=1.0)
    exact = np.linalg.solve(np.eye(P) - step * A, b)
    # conjugate gradients leave a thousandth, which the tangent alone does not reach
    assert np.linalg.norm(curved.solver(step)(b) - exact) < 3e-3 * np.linalg.norm(exact)
    assert np.linalg.norm(tangent.solver(step)(b) - exact) > 1e-2 * np.linalg.norm(exact)


MATRIX_MODELS = [
    DifferenceFactorization(alpha=1.5, width=3, seed=2),
    SymmetricFactorization(3, alpha=1.0, seed=1),
    Factorization(3, alpha=1.0, seed=1),
]


@pytest.mark.parametrize("model", MATRIX_MODELS)
def test_completion_s_structured_derivative_is_the_jacobian(model):
    start = model.start(16)
    w = start + 0.3 * np.random.default_rng(5).standard_normal(start.size)
    structured = TwoFactorSamples(model, COMPLETION, start).derivative(w)
    assert not isinstance(structured, DenseDerivative)
    J, x, r = model.jacobian(w, COMPLETION.design), start - 2 * w**2, np.arange(6.0)
    assert np.allclose(structured.kernel(), J @ J.T, rtol=1e-12, atol=1e-12)
    assert np.allclose(structured.push(x), J @ x, rtol=1e-12, atol=1e-11)
    assert np.allclose(structured.pull(r), J.T @ r, rtol=1e-12, atol=1e-12)
    elsewhere = TwoFactorSamples(model, COMPLETION, start).derivative(start)
    assert not np.allclose(elsewhere.kernel(), J @ J.T, rtol=1e-2)


def test_displaced_matrices_keep_the_digits_that_a_large_start_rounds_away():
    model, alpha = DifferenceFactorization(alpha=1e6), Fraction(10**6)
    start = model.start(16)
    step = 1e-6 * np.random.default_rng(1).standard_normal(start.size)
    U, V = (np.array([[Fraction(float(x)) for x in row] for row in half])
            for half in step.reshape(2, 4, 4))  # fmt: skip
    eye = np.array([[Fraction(int(i == j)) for j in range(4)] for i in range(4)])
    U, V = U + alpha * eye, V + alpha * eye
    exact = (U.dot(U.T) - V.dot(V.T)).astype(float)[tuple(ENTRIES.T)]
    found = TwoFactorSamples(model, COMPLETION, start).displaced(step, 0.0)
    assert np.abs(found - exact).max() < 1e-14
    assert np.abs(model.predict(start + step, COMPLETION.design) - exact).max() > 1e-6


# against general and exact solutions

SEPARABLE = [
    (DiagonalNet(2, alpha=3.0), PROBLEM),
    (DiagonalNet(3, alpha=1.0), PROBLEM),
    (DiagonalNet(2, alpha=0.05), PROBLEM),
    (DiagonalNet(2, alpha=3.0), separable_points(8, 12, seed=1)),
    (DiagonalNet(2, alpha=5.0), separable_points(8, 20, seed=1, loss="logistic")),
    (ProductNet(np.ones(12), np.full(12, 2.0)), PROBLEM),
    (Reparametrized(lambda w: w + w**3, 0.3), sparse_regression(2, 3, sparsity=1, seed=0)),
]


@pytest.mark.parametrize(("model", "problem"), SEPARABLE)
def test_separable_models_with_decay_agree_with_a_general_solver(model, problem):
    rate = 0.1
    flow = ParameterFlow(rtol=1e-9, weight_decay=rate)
    path = train(model, problem, flow, stop=Time(6 / rate), record=LogSpaced(8))
    assert path.outcome.kind is Kind.SOLVED
    data = path.dataset.isel(time=slice(1, None))
    reference = gradient_flow(model, problem, data.t.values, rate)
    scale = np.abs(reference).max(axis=1, keepdims=True)
    assert (np.abs(data.parameters.values - reference) / scale).max() < 1e-6
    predictors = np.array([model.predictor(w) for w in reference])
    assert np.abs(data.predictor.values - predictors).max() < 1e-6
    assert np.allclose(data.parameter_norm, np.linalg.norm(reference, axis=1), rtol=1e-6)
    other = gradient_flow(model, problem, data.t.values, 1.01 * rate)
    assert (np.abs(other - reference) / scale).max() > 1e-4  # one per cent of decay is seen


# W W^T cannot fit these measurements: there the curvature of the model does not go away
OTHERS = [
    (tanh_net(), sparse_regression(6, 3, sparsity=2, seed=0), 0.05),
    (tanh_net(), separable_points(8, 3, seed=1, loss="logistic"), 0.05),
    (DifferenceFactorization(alpha=5.0), COMPLETION, 0.05),
    (DifferenceFactorization(alpha=1.0, width=3, seed=4), SENSING, 0.05),
    (Factorization(3, alpha=1.0, seed=2), COMPLETION, 0.05),
    (SymmetricFactorization(2, alpha=1.0, seed=2), SENSING, 0.05),
    (DeepFactorization(3, 4, alpha=0.8), COMPLETION, 0.05),
    (tanh_net(), sparse_regression(6, 3, sparsity=2, seed=0), 0.0),
    (Factorization(4, alpha=0.01, seed=2), COMPLETION, 0.0),
    (DeepFactorization(3, 4, alpha=0.8), SENSING, 0.0),
]


@pytest.mark.parametrize(("model", "problem", "rate"), OTHERS)
def test_any_other_model_agrees_with_a_general_solver(model, problem, rate):
    t_max = 4 / rate if rate else 20.0
    flow = ParameterFlow(rtol=1e-8, max_steps=1000, weight_decay=rate)
    path = train(model, problem, flow, stop=Time(t_max), record=LogSpaced(6))
    assert path.outcome.ok or "by t_max" in path.outcome.sentence
    data = path.dataset.isel(time=slice(1, None))
    reference = gradient_flow(model, problem, data.t.values, rate)
    assert np.abs(data.parameters.values - reference).max() < 1e-6
    rows = problem.design if hasattr(problem, "design") else problem.X
    predictions = np.array([model.predict(w, rows) for w in reference])
    assert np.abs(data.predictions.values - predictions).max() < 1e-6
    start = model.start(problem.dimension)
    cosines = reference @ start / np.linalg.norm(reference, axis=1) / np.linalg.norm(start)
    assert np.allclose(data.turn, np.degrees(np.arccos(np.clip(cosines, -1, 1))), atol=1e-3)
    if not isinstance(model, FunctionModel):  # one of each kind of problem is enough
        other = gradient_flow(model, problem, data.t.values, rate + 1e-3)
        assert np.abs(other - reference).max() > 1e-5


@pytest.mark.parametrize("loss", [None, "exp", "logistic"])
def test_a_large_start_agrees_with_the_exact_dual(loss):
    problem = PROBLEM if loss is None else separable_points(8, 12, seed=1, loss=loss)
    net, rate = DiagonalNet(2, alpha=1e4), 0.01
    t_max = (np.log(1e4) + 5) / rate
    exact = train(
        net, problem, DualFlow(rtol=1e-10, weight_decay=rate), stop=Time(t_max), record=LogSpaced(5)
    )
    late = [t for t in exact.dataset.t.values if t > 0.3 * t_max][::2]
    flow = ParameterFlow(rtol=1e-9, weight_decay=rate)
    path = train(net, problem, flow, stop=Time(t_max), record=[LogSpaced(5), At(times=late)])
    ours = path.dataset.predictor.values[np.searchsorted(path.dataset.t.values, late)]
    theirs = exact.dataset.predictor.values[np.searchsorted(exact.dataset.t.values, late)]
    assert np.abs(ours - theirs).max() < 1e-7 * np.abs(theirs).max()
    assert path.dataset.turn.values[-1] == pytest.approx(exact.dataset.turn.values[-1], rel=1e-7)
    # the predictors of the records differ from each other by more than that
    assert np.abs(np.diff(theirs, axis=0)).max() > 1e-3


@settings(deadline=None, derandomize=True, max_examples=8)
@given(
    st.integers(0, 1000), st.floats(-1.5, 0.8), st.floats(-3, 0), st.sampled_from([2, 3]),
    st.sampled_from([None, "exp", "logistic"]),
)  # fmt: skip
def test_decayed_nets_of_any_scale_agree_with_a_general_solver(seed, scale, log_rate, depth, loss):
    if loss is None:
        problem = sparse_regression(3, 6, sparsity=2, seed=seed)
    else:
        problem = separable_points(3, 6, seed=seed, loss=loss)
    net, rate = DiagonalNet(depth, alpha=10**scale), 10**log_rate
    times = np.array([0.1, 1.0, 5.0]) / rate
    flow, record = ParameterFlow(rtol=1e-9, weight_decay=rate), At(times=list(times[:-1]))
    path = train(net, problem, flow, stop=Time(times[-1]), record=[LogSpaced(), record])
    ours = path.dataset.predictor.values[np.searchsorted(path.dataset.t.values, times)]
    theirs = [net.predictor(w) for w in gradient_flow(net, problem, times, rate)]
    assert np.abs(ours - theirs).max() < 2e-6 * max(1.0, np.abs(theirs).max())


def linear_model(d, scale=1.0):
    return FunctionModel(lambda w, X: X @ w, scale * np.arange(1.0, d + 1), homogeneity=1)


def closed_form(X, y, start, rate, t):
    """theta of theta' = -2 X^T (X theta - y) - rate theta, by the eigenvectors of X^T X."""
    values, vectors = np.linalg.eigh(2 * X.T @ X)
    speed = np.maximum(values, 0) + rate
    rest = vectors.T @ (2 * X.T @ y) / speed
    return vectors @ (rest + np.exp(-speed * t) * (vectors.T @ start - rest))


@pytest.mark.parametrize(("size", "rate"), [(1.0, 0.1), (300.0, 0.01), (1e4, 1.0)])
def test_a_linear_model_follows_its_closed_form_at_any_stiffness(size, rate):
    X = size * np.random.default_rng(2).standard_normal((3, 5))
    problem, model = Regression(X, size * np.array([1.0, -2.0, 0.5])), linear_model(5)
    flow = ParameterFlow(rtol=1e-8, max_steps=500, weight_decay=rate)
    path = train(model, problem, flow, stop=Time(6 / rate))
    assert path.outcome.kind is Kind.SOLVED  # within 500 steps although 2 |X|^2 / rate is 1e9
    data = path.dataset
    exact = np.array([closed_form(X, problem.y, model.start(5), rate, t) for t in data.t.values])
    assert np.abs(data.parameters.values - exact).max() < 1e-5
    wrong = [closed_form(X, problem.y, model.start(5), 2 * rate, t) for t in data.t.values]
    assert np.abs(data.parameters.values - np.array(wrong)).max() > 1e-2
    flow = ParameterFlow(rtol=1e-8, max_steps=20, weight_decay=rate)
    short = train(model, problem, flow, stop=Time(6 / rate))
    assert short.outcome.kind is Kind.BUDGET_SPENT
    assert "raise max_steps" in short.outcome.sentence


def test_grokking_s_stiffness_takes_a_few_hundred_steps():
    net, rate = DiagonalNet(2, alpha=1e3), 0.1  # 2 alpha^2 |X|^2 / rate is beyond 1e8
    assert 8e6 * np.linalg.norm(PROBLEM.X, 2) ** 2 / rate > 1e8
    flow = ParameterFlow(rtol=1e-6, max_steps=600, weight_decay=rate)
    assert train(net, PROBLEM, flow, stop=Time(120.0)).outcome.kind is Kind.SOLVED


def test_samples_given_twice_do_no_harm():
    twice = Regression(np.tile(PROBLEM.X, (2, 1)) / 2**0.5, np.tile(PROBLEM.y, 2) / 2**0.5)
    net, flow = (
        DiagonalNet(2, alpha=1e5),
        ParameterFlow(rtol=1e-7, max_steps=900, weight_decay=1e-3),
    )
    once, again = (train(net, p, flow, stop=Time(2e4)) for p in (PROBLEM, twice))
    assert again.outcome.kind is Kind.SOLVED
    assert np.abs(again.predictor - once.predictor).max() < 1e-5
    assert np.abs(once.predictor).max() > 0.1


def test_a_start_at_zero_moves():
    X, y = PROBLEM.X, PROBLEM.y
    model = FunctionModel(lambda w, X: X @ w, np.zeros(12))
    path = train(model, PROBLEM, ParameterFlow(rtol=1e-9, weight_decay=0.1), stop=Time(50.0))
    assert np.abs(path.parameters - closed_form(X, y, np.zeros(12), 0.1, 50.0)).max() < 1e-8
    assert np.isnan(path.dataset.turn.values).all()  # there is no angle with zero


# what comes back


def test_the_path_of_a_function_is_labelled_like_any_other():
    problem = separable_points(8, 3, seed=1)
    flow = ParameterFlow(rtol=1e-6, weight_decay=0.1)
    path = train(
        tanh_net(), problem, flow, stop=Time(20.0), record=[LogSpaced(4), At(times=[0.5, 3.25])]
    )
    data = path.dataset
    assert {0.0, 0.5, 3.25, 20.0} <= set(data.t.values)
    assert (np.diff(data.t.values) > 0).all()
    assert data.t.values[-1] == path.t == 20.0
    margins = data.predictions.values * problem.y
    assert np.allclose(np.exp(data.log_loss), np.exp(-margins).mean(axis=1), rtol=1e-12)
    assert np.allclose(data.margin, margins.min(axis=1))
    assert np.allclose(data.train_accuracy, (margins > 0).mean(axis=1))
    assert data.turn.attrs["units"] == "degrees"
    assert all(variable.attrs["long_name"] for variable in data.variables.values())
    described = json.loads(data.attrs["description"])
    assert described["method"]["weight_decay"] == 0.1
    assert described["method"]["is"] == "ParameterFlow"
    assert path.problem.loss == "exp"
    assert data.attrs["outcome"] == "solved"
    with pytest.raises(AttributeError, match="the model has no linear predictor"):
        _ = path.predictor


def test_the_path_of_a_matrix_model_holds_its_matrices():
    model = DifferenceFactorization(alpha=5.0)
    path = train(model, COMPLETION, ParameterFlow(rtol=1e-8, weight_decay=0.02), stop=Time(500.0))
    data = path.dataset
    assert np.allclose(path.predictor, model.matrix(path.parameters), atol=1e-12)
    assert data.predictor.dims == ("time", "row", "column")
    hidden = ~COMPLETION.observed
    k = len(data.t) // 2
    M = data.predictor.values[k]
    nuclear = np.sqrt(np.maximum(np.linalg.eigvalsh(M.T @ M), 0)).sum()
    assert data.norm_nuclear.values[k] == pytest.approx(nuclear, rel=1e-6)
    assert data.test_error.values[k] == pytest.approx(
        np.sqrt(np.mean((M - TRUTH)[hidden] ** 2)), rel=1e-12
    )
    assert data.norm_l2.values[k] == pytest.approx(np.sqrt((M**2).sum()), rel=1e-12)
    assert data.norm_nuclear.values[-1] != pytest.approx(data.norm_l2.values[-1], rel=0.05)


def test_many_parameters_are_recorded_at_the_end_only():
    model = DifferenceFactorization(alpha=2.0, width=300, seed=0)
    path = train(model, COMPLETION, ParameterFlow(rtol=1e-5, weight_decay=0.1), stop=Time(1.0))
    assert "parameters" not in path.dataset
    assert path.dataset.final_parameters.shape == (2400,)


def test_a_turn_is_an_angle():
    assert turn(np.array([1.0, 0]), np.array([0.0, 2])) == pytest.approx(90)
    assert turn(np.array([1.0, 0]), np.array([1.0, 1e-12])) == pytest.approx(np.degrees(1e-12))
    assert np.isnan(turn(np.zeros(2), np.ones(2)))


def test_training_without_decay_stops_where_its_rules_say():
    problem = separable_points(8, 3, seed=1)
    path = train(tanh_net(), problem, ParameterFlow(rtol=1e-6), stop=LogLoss(-6.0))
    assert path.outcome.kind is Kind.SOLVED
    assert -7 < path.log_loss <= -6
    fitted = train(
        Factorization(4, alpha=0.5), COMPLETION, ParameterFlow(rtol=1e-7), stop=Interpolated(1e-14)
    )
    assert fitted.outcome.kind is Kind.SOLVED
    assert fitted.log_loss <= np.log(1e-14 * np.sum(COMPLETION.y**2))


def test_a_saddle_is_reported():
    path = train(Factorization(factors=(np.zeros((4, 2)),) * 2), COMPLETION, ParameterFlow())
    assert path.outcome.kind is Kind.STALLED
    assert "saddle" in path.outcome.sentence


def test_data_that_cannot_be_fitted_come_to_rest():
    bad = Regression(np.ones((2, 1)), np.array([1.0, 2.0]))
    path = train(linear_model(1), bad, ParameterFlow(rtol=1e-8))
    assert path.outcome.kind is Kind.STALLED
    assert path.parameters[0] == pytest.approx(1.5, rel=1e-7)


LABELS, NET = separable_points(8, 3, seed=1), DiagonalNet(2, alpha=1)
WRONG, AWAY = Classification([[1.0]], [-1.0]), Near([1, 0, 0], 1.0)


@pytest.mark.parametrize(
    ("model", "problem", "rate", "stop", "sentence"),
    [
        (NET, PROBLEM, 0.1, None, "give stop=Time"),
        (NET, PROBLEM, -0.1, Time(1.0), "weight_decay must be >= 0"),
        (NET, PROBLEM, 0.1, LogLoss(-1.0), "time alone ends training; use Time"),
        (tanh_net(), LABELS, 0.0, AWAY, "Near does not apply here where FunctionModel learns lab"),
        (NET, COMPLETION, 0.1, Time(1.0), r"use problem.regression\(\)"),
        (tanh_net(), (1, 2), 0.0, None, "got tuple"),
        ("net", PROBLEM, 0.1, Time(1.0), "got str"),
        (DiagonalNet(2, alpha=1e3, signed=False), WRONG, 0.1, Time(1.0), "beyond float64"),
    ],
)
def test_what_cannot_be_run_is_refused_in_one_sentence(model, problem, rate, stop, sentence):
    with pytest.raises(ValueError, match=sentence) as refused:
        train(model, problem, ParameterFlow(weight_decay=rate), stop=stop)
    assert "\n" not in str(refused.value)


def test_a_requested_time_is_recorded_to_the_bit():
    """Also one that differs from an evenly spaced record by less than its logarithm tells."""
    rate = 10**-0.9
    requested = (np.array([0.1, 1.0]) / rate).tolist()
    net, problem = DiagonalNet(2, alpha=1.0), separable_points(3, 6, seed=150)
    flow, both = ParameterFlow(rtol=1e-6, weight_decay=rate), [LogSpaced(), At(times=requested)]
    path = train(net, problem, flow, stop=Time(5.0 / rate), record=both)
    assert set(requested) <= set(path.dataset.t.values.tolist())
