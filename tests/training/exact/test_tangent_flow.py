"""The exponential tangent-kernel flow against descent, other integrators and exact solutions."""

import functools

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from penchant import (
    Classification,
    DiagonalNet,
    FunctionModel,
    GradientDescent,
    ParameterFlow,
    Regression,
    Steps,
    Time,
    train,
)
from penchant.lab import Kind, double_precision
from penchant.measures import kernel_distance
from penchant.methods import TangentFlow
from penchant.models import LinearPredictor, relu_net, two_layer
from penchant.problems import circle_teacher, sparse_regression
from penchant.record import At, LogSpaced
from penchant.stop import Interpolated, Loss, Near
from penchant.training.exact import tangent as exponential_step
from penchant.training.exact.tangent import compiled, function_of, trial

CIRCLE = circle_teacher(samples=5, seed=1, test=200)
SMOOTH = two_layer(4, alpha=1.0, activation="tanh", seed=3)


def rms(a, b):
    return float(np.sqrt(np.mean((a - b) ** 2)))


def outputs(model, parameters):
    return model.predict(parameters, CIRCLE.test.X)


def ended(model, problem, stop=None, **settings):
    """A path of the start and the end alone."""
    return train(model, problem, TangentFlow(**settings), stop=stop, record=At(times=[]))


def steps(path):
    return int(path.dataset.integrator_steps[-1])


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
    model = relu_net(depth, 5, alpha=alpha, seed=2, unbiased=True)
    problem, t = CIRCLE.training, 3.0
    ends = [
        train(model, problem, GradientDescent(h), stop=Steps(round(t / h))).parameters
        for h in (1e-2, 1e-3)
    ]
    flow = ended(model, problem, [Time(t), Interpolated(1e-20)]).parameters
    coarse, fine = (rms(outputs(model, flow), outputs(model, w)) for w in ends)
    assert fine < 5e-4
    assert fine < coarse / 2  # descent comes to the flow as its step shrinks


@pytest.mark.parametrize("model", [SMOOTH, DiagonalNet(2, alpha=0.5)])
def test_against_the_stiff_integrator(model):
    problem = CIRCLE.training
    times = [0.5, 2.0]
    records = [LogSpaced(10), At(times=times)]
    ours = train(model, problem, TangentFlow(rtol=1e-6), stop=Time(2.0), record=records)
    other = train(model, problem, ParameterFlow(rtol=1e-9), stop=Time(2.0))
    np.testing.assert_allclose(ours.parameters, other.parameters, atol=2e-5)
    assert 0.5 in ours.dataset.t.values
    early = ours.dataset.parameters.sel(time=np.flatnonzero(ours.dataset.t.values == 0.5)[0])
    assert np.abs(early - ours.parameters).max() > 5e-4  # they were not there all along


def test_its_local_error_is_of_third_order():
    problem, steps = CIRCLE.training, np.array([5e-3, 2.5e-3, 1.25e-3])
    errors = [
        np.linalg.norm(one_step(SMOOTH, problem, h) - general(SMOOTH, problem, h)) for h in steps
    ]
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
    model, problem = relu_net(3, 5, alpha=10.0, seed=2, unbiased=True), CIRCLE.training
    end = ended(model, problem)
    J = model.jacobian(model.start(2), problem.X)
    assert end.outcome.ok
    assert steps(end) < 40
    assert end.t * np.linalg.norm(J, 2) ** 2 > 100 * steps(end)  # descent needs as many at least
    jumpy = train(model, problem, GradientDescent(0.01), stop=Steps(200))  # W's: all units die
    assert np.exp(jumpy.log_loss) > 0.9 * np.sum(problem.y**2)


def test_the_error_falls_with_rtol():
    model, problem = relu_net(2, 5, alpha=0.7, seed=1, unbiased=True), CIRCLE.training
    ends = [ended(model, problem, Time(2.0), rtol=rtol) for rtol in (1, 1e-3, 1e-5)]
    truth = outputs(model, ends[-1].parameters)
    loose, tight = (rms(outputs(model, end.parameters), truth) for end in ends[:2])
    assert tight < 1e-3
    assert tight < loose
    assert steps(ends[0]) < steps(ends[1]) < steps(ends[2])


def test_a_run_without_records_ends_there_too_and_the_path_is_whole():
    model, problem = relu_net(2, 5, alpha=0.5, seed=3, unbiased=True), CIRCLE.training
    flow, seen = TangentFlow(), []
    report = lambda done, text: seen.append(done)  # noqa: E731
    path = train(model, problem, flow, record=LogSpaced(4), progress=report)
    end = ended(model, problem)
    assert path.outcome.ok
    assert end.outcome.ok
    assert end.dataset.loss.values[-1] <= 1e-9 * np.sum(problem.y**2)
    assert end.dataset.t.values.tolist() == [0.0, end.t]
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
    J = [model.jacobian(w, problem.X) for w in (model.start(2), path.parameters)]
    apart = kernel_distance(*(one @ one.T for one in J))
    assert path.dataset.kernel_distance.values[-1] == pytest.approx(apart, rel=1e-9) != 0


def test_equal_functions_are_compiled_once():
    calls = []

    class Counted:
        def __call__(self, parameters, X):
            calls.append(1)
            return X @ parameters**2

    function = Counted()
    problem = Regression(np.eye(2), [1.0, 2.0])
    ends = [ended(FunctionModel(function, [a, a]), problem) for a in (0.1, 1.0, 3.0)]
    assert all(end.outcome.ok for end in ends)
    first = len(calls)
    ended(FunctionModel(function, [0.5, 2.0]), problem, rtol=1e-2)
    assert len(calls) == first
    assert function_of(FunctionModel(function, [1.0])) is function
    model = DiagonalNet(2, alpha=1.0)
    assert function_of(model) == model.predict


def test_a_sample_that_nothing_sees_stalls():
    model = FunctionModel(seen_by_first, [0.1, 0.5])
    end = ended(model, Regression(np.eye(2), [1.0, 2.0]))
    assert end.outcome.kind is Kind.STALLED
    assert "cannot reduce the remaining residual" in str(end.outcome)
    assert np.exp(end.log_loss) == pytest.approx(4.0)  # all of the sample that is not seen
    saddle = ended(relu_net(2, 3, alpha=1.0, seed=0), Regression([[0.0, 0.0]], [1.0]))
    assert saddle.outcome.kind is Kind.STALLED
    assert "saddle" in str(saddle.outcome)


def seen_by_first(parameters, X):
    return X[:, 0] * parameters.sum()


def test_spent_budgets_are_reported():
    model, problem = relu_net(2, 5, alpha=0.5, unbiased=True), CIRCLE.training
    few = ended(model, problem, max_steps=3)
    assert few.outcome.kind is Kind.BUDGET_SPENT
    assert "raise max_steps" in str(few.outcome)
    short = ended(model, problem, [Time(1e-3), Interpolated()])
    assert short.outcome.kind is Kind.BUDGET_SPENT
    assert "by Time" in str(short.outcome)
    assert ended(model, problem, Time(1e-3)).outcome.kind is Kind.SOLVED
    assert short.t == 1e-3
    done = ended(LinearPredictor(), Regression([[1.0]], [0.0]))
    assert "already fits" in str(done.outcome)


def square(parameters, X):
    return X[:, 0] * parameters[0] * parameters[0]


@pytest.mark.parametrize("record", [At(times=[]), LogSpaced(2)])
def test_a_flow_whose_time_becomes_infinite_ends(monkeypatch, record):
    """No float64 has the square 2, so a loss of 4^2 eps^2 stays, and the steps grow for ever.

    Without an end every round records one more moment; the bound keeps them from the memory.
    """
    at, asked = exponential_step.TangentIntegrator.at, []

    def counted(flow, t):
        asked.append(t)
        assert len(asked) < 5_000, "the flow records moments for ever"
        return at(flow, t)

    monkeypatch.setattr(exponential_step.TangentIntegrator, "at", counted)
    model, problem = FunctionModel(square, [1.0]), Regression([[1.0]], [2.0])
    path = train(model, problem, TangentFlow(), stop=Loss(1e-100), record=record)
    assert path.outcome.kind is Kind.STALLED
    assert str(path.outcome) == "stalled: the time of the flow is beyond float64"
    assert path.t == np.inf
    assert path.parameters[0] == pytest.approx(np.sqrt(2), rel=1e-15)


def test_no_sign_error_survives(monkeypatch):
    """A control: moves the wrong way must be told apart from the flow."""
    move = exponential_step.move
    monkeypatch.setattr(exponential_step, "move", lambda at, r, h: -move(at, r, h))
    compiled.cache_clear()
    end = ended(FunctionModel(linear, [1.0, 2.0]), CIRCLE.training, max_steps=50)
    compiled.cache_clear()
    assert not end.outcome.ok


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rtol": 0}, "rtol must be > 0"),
        ({"rtol": 2}, "rtol must be between 1e-13 and 1"),
        ({"max_steps": 0}, "max_steps must be at least 1"),
    ],
)
def test_wrong_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=f"TangentFlow: {message}"):
        TangentFlow(**settings)


def test_wrong_problems_are_refused():
    flow, labels = TangentFlow(), Classification(np.eye(2), [1, -1])
    with pytest.raises(ValueError, match=r"must be a Regression, .* use ParameterFlow"):
        train(relu_net(2, 3, alpha=1.0), labels, flow)
    with pytest.raises(ValueError, match="must be a Model"):
        train(np.tanh, sparse_regression(3, 2, sparsity=1), flow)
    with pytest.raises(ValueError, match="one number per row of X, got shape"):
        ended(FunctionModel(lambda w, X: X * w, [1.0, 1.0]), sparse_regression(3, 2, sparsity=1))
    with pytest.raises(ValueError, match="beyond float64"):
        ended(relu_net(3, 5, alpha=1e150, unbiased=True), CIRCLE.training)
    with pytest.raises(ValueError, match=r"Near does not apply .* use Interpolated, Loss"):
        ended(SMOOTH, CIRCLE.training, Near([1.0, 0.0], 1.0))
    with pytest.raises(ValueError, match=r"no weight decay, got a rate of 0\.1; use ParameterFlow"):
        ended(SMOOTH, CIRCLE.training, weight_decay=0.1)
