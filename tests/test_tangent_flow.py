"""The exponential tangent-kernel flow against descent, other integrators and exact solutions."""

import functools

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from tacit import At, Interpolated, LogSpaced, Time, train
from tacit.flows import exponential_step
from tacit.flows.descent import GradientDescent
from tacit.flows.exponential import TangentFlow, function_of
from tacit.flows.exponential_step import compiled, trial
from tacit.models.diagonal import DiagonalNet
from tacit.models.function import FunctionModel
from tacit.models.linear import LinearPredictor
from tacit.models.network import two_layer
from tacit.models.relu_net import relu_net
from tacit.precision import double_precision
from tacit.problems.circle import circle_teacher
from tacit.problems.classification import Classification
from tacit.problems.regression import Regression, sparse_regression
from tacit.records import Kind
from tacit.training.exact.parameter import ParameterFlow

CIRCLE = circle_teacher(samples=5, seed=1, test=200)
SMOOTH = two_layer(4, 1.0, "tanh", seed=3)


def rms(a, b):
    return float(np.sqrt(np.mean((a - b) ** 2)))


def outputs(model, parameters):
    return model.predict(parameters, CIRCLE.test.X)


def one_step(model, problem, h):
    """The parameters after one trial step of length h, whatever its error."""
    with double_precision():
        begin = compiled()[0](model.function, problem.X, problem.y, model.start(2))
        return np.asarray(tried(model.function, problem.X, begin._replace(step=h)))


@functools.partial(jax.jit, static_argnums=0)
def tried(function, X, state):
    return trial(function, X, state)[0]


def general(model, problem, t):
    """The flow by an explicit Runge-Kutta of order eight."""

    def velocity(_, w):
        residual = model.predict(w, problem.X) - problem.y
        return -2 * model.pullback(w, problem.X, residual)

    found = solve_ivp(velocity, (0, t), model.start(2), method="DOP853", rtol=1e-12, atol=1e-13)
    return found.y[:, -1]


@pytest.mark.parametrize(("depth", "alpha"), [(2, 0.3), (3, 0.8)])
def test_against_small_steps_of_descent(depth, alpha):
    model = relu_net(depth, 5, alpha, seed=2, unbiased=True)
    problem, t = CIRCLE.training, 3.0
    ends = [GradientDescent(h, round(t / h), record=[]).run(model, problem).parameters
            for h in (1e-2, 1e-3)]  # fmt: skip
    flow = TangentFlow(rtol=1e-3, t_max=t, loss=1e-20).end(model, problem).parameters
    coarse, fine = (rms(outputs(model, flow), outputs(model, w)) for w in ends)
    assert fine < 5e-4
    assert fine < coarse / 2  # descent comes to the flow as its step shrinks


@pytest.mark.parametrize("model", [SMOOTH, DiagonalNet(2, alpha=0.5)])
def test_against_the_stiff_integrator(model):
    problem = CIRCLE.training
    times = [0.5, 2.0]
    ours = TangentFlow(rtol=1e-6, t_max=2.0, record=times).run(model, problem)
    other = train(
        model,
        problem,
        ParameterFlow(rtol=1e-9),
        stop=[Interpolated(), Time(2.0)],
        record=[LogSpaced(), At(times=times)],
    )
    np.testing.assert_allclose(ours.parameters, other.parameters, atol=2e-5)
    assert 0.5 in ours.dataset.t.values
    early = ours.dataset.parameters.sel(time=np.flatnonzero(ours.dataset.t.values == 0.5)[0])
    assert np.abs(early - ours.parameters).max() > 5e-4  # they were not there all along


def test_its_local_error_is_of_third_order():
    problem, steps = CIRCLE.training, np.array([5e-3, 2.5e-3, 1.25e-3])
    errors = [np.linalg.norm(one_step(SMOOTH, problem, h) - general(SMOOTH, problem, h))
              for h in steps]  # fmt: skip
    slope = np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert slope == pytest.approx(3, abs=0.1)


@settings(deadline=None, derandomize=True, max_examples=8)
@given(st.integers(0, 1000), st.floats(0.01, 1000.0))
def test_a_linear_model_is_solved_in_one_step_of_any_length(seed, h):
    rng = np.random.default_rng(seed)
    problem = Regression(rng.standard_normal((3, 2)), rng.standard_normal(3))
    model = FunctionModel(linear, rng.standard_normal(2))
    gram, goal = 2 * problem.X.T @ problem.X, 2 * problem.X.T @ problem.y
    values, vectors = np.linalg.eigh(gram)
    apart = model.start(2) - np.linalg.solve(gram, goal)
    exact = model.start(2) + vectors @ (np.expm1(-h * values) * (vectors.T @ apart))
    np.testing.assert_allclose(one_step(model, problem, h), exact, atol=1e-9)


def linear(parameters, X):
    return X @ parameters


def test_a_stiff_start_takes_few_steps():
    model, problem = relu_net(3, 5, 10.0, seed=2, unbiased=True), CIRCLE.training
    end = TangentFlow().end(model, problem)
    J = model.jacobian(model.start(2), problem.X)
    assert end.outcome.ok
    assert end.steps < 40
    assert end.t * np.linalg.norm(J, 2) ** 2 > 100 * end.steps  # descent needs as many at least
    jumpy = GradientDescent(0.01, 200).run(model, problem)  # W's step: every unit dies
    assert np.exp(jumpy.log_loss) > 0.9 * np.sum(problem.y**2)


def test_the_error_falls_with_rtol():
    model, problem = relu_net(2, 5, 0.7, seed=1, unbiased=True), CIRCLE.training
    ends = [TangentFlow(rtol=rtol, t_max=2.0).end(model, problem) for rtol in (1, 1e-3, 1e-5)]
    truth = outputs(model, ends[-1].parameters)
    loose, tight = (rms(outputs(model, end.parameters), truth) for end in ends[:2])
    assert tight < 1e-3
    assert tight < loose
    assert ends[0].steps < ends[1].steps < ends[2].steps


def test_run_and_end_agree_and_the_path_is_whole():
    model, problem = relu_net(2, 5, 0.5, seed=3, unbiased=True), CIRCLE.training
    flow, seen = TangentFlow(points_per_decade=4), []
    path = flow.run(model, problem, progress=lambda done, text: seen.append(done))
    end = flow.end(model, problem)
    assert path.outcome.ok
    assert end.outcome.ok
    assert end.loss <= 1e-9 * np.sum(problem.y**2)
    assert rms(path.predictions, end.predictions) < 1e-4
    assert rms(outputs(model, path.parameters), outputs(model, end.parameters)) < 5e-3
    np.testing.assert_allclose(end.predictions, model.predict(end.parameters, problem.X))
    loss = path.dataset.loss.values
    assert (np.diff(loss) < 0).all()
    assert len(loss) > 5
    assert path.dataset.t.values[0] == 0
    assert (np.diff(path.dataset.t.values) > 0).all()
    assert min(seen) >= 0
    assert max(seen) == 1
    assert path.dataset.kernel_distance.values[-1] > 0


def test_equal_functions_are_compiled_once():
    calls = []

    class Counted:
        def __call__(self, parameters, X):
            calls.append(1)
            return X @ parameters**2

    function = Counted()
    problem = Regression(np.eye(2), [1.0, 2.0])
    ends = [TangentFlow().end(FunctionModel(function, [a, a]), problem) for a in (0.1, 1.0, 3.0)]
    assert all(end.outcome.ok for end in ends)
    first = len(calls)
    TangentFlow(rtol=1e-2).end(FunctionModel(function, [0.5, 2.0]), problem)
    assert len(calls) == first
    assert function_of(FunctionModel(function, [1.0])) is function
    model = DiagonalNet(2, alpha=1.0)
    assert function_of(model) == model.predict


def test_a_sample_that_nothing_sees_stalls():
    model = FunctionModel(seen_by_first, [0.1, 0.5])
    end = TangentFlow().end(model, Regression(np.eye(2), [1.0, 2.0]))
    assert end.outcome.kind is Kind.STALLED
    assert "cannot move what is left" in str(end.outcome)
    assert end.loss == pytest.approx(4.0)  # all of the sample that is not seen
    saddle = TangentFlow().end(relu_net(2, 3, 1.0, seed=0), Regression([[0.0, 0.0]], [1.0]))
    assert saddle.outcome.kind is Kind.STALLED
    assert "saddle" in str(saddle.outcome)


def seen_by_first(parameters, X):
    return X[:, 0] * parameters.sum()


def test_budgets_are_said():
    model, problem = relu_net(2, 5, 0.5, unbiased=True), CIRCLE.training
    few = TangentFlow(max_steps=3).end(model, problem)
    assert few.outcome.kind is Kind.BUDGET_SPENT
    assert "raise max_steps" in str(few.outcome)
    short = TangentFlow(t_max=1e-3).run(model, problem)
    assert short.outcome.kind is Kind.BUDGET_SPENT
    assert short.t == 1e-3
    done = TangentFlow().end(LinearPredictor(), Regression([[1.0]], [0.0]))
    assert "already fits" in str(done.outcome)


def test_no_sign_error_survives(monkeypatch):
    """A control: moves the wrong way must be told apart from the flow."""
    move = exponential_step.move
    monkeypatch.setattr(exponential_step, "move", lambda at, r, h: -move(at, r, h))
    compiled.cache_clear()
    end = TangentFlow(max_steps=50).end(FunctionModel(linear, [1.0, 2.0]), CIRCLE.training)
    compiled.cache_clear()
    assert not end.outcome.ok


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rtol": 0}, "rtol must be > 0"),
        ({"loss": -1}, "loss must be > 0"),
        ({"t_max": "now"}, "t_max must be a finite number"),
        ({"max_steps": 0}, "max_steps must be at least 1"),
        ({"record": [0.0]}, "record must be > 0"),
    ],
)
def test_wrong_settings_speak(settings, message):
    with pytest.raises(ValueError, match=f"TangentFlow: {message}"):
        TangentFlow(**settings)


def test_wrong_problems_speak():
    flow, labels = TangentFlow(), Classification(np.eye(2), [1, -1])
    with pytest.raises(ValueError, match=r"must be a Regression, .* use ParameterFlow"):
        flow.run(relu_net(2, 3, 1.0), labels)
    with pytest.raises(ValueError, match="must be a Model"):
        flow.run(np.tanh, sparse_regression(3, 2, 1))
    with pytest.raises(ValueError, match="one number per row of X, got shape"):
        flow.end(FunctionModel(lambda w, X: X * w, [1.0, 1.0]), sparse_regression(3, 2, 1))
    with pytest.raises(ValueError, match="beyond float64"):
        flow.end(relu_net(3, 5, 1e150, unbiased=True), CIRCLE.training)
