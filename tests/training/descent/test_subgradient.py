"""Subgradient and proximal descent against loops written by hand, closed forms and CVXPY."""

import dataclasses
import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penchant import L1, L2, GradientDescent, Regression, Steps, train
from penchant.lab import Kind
from penchant.methods import Proximal
from penchant.models import LinearMatrix, LinearPredictor
from penchant.problems import Sensing, low_rank_completion, separable_points
from penchant.record import At
from penchant.regularizers import Custom, Nuclear
from penchant.stop import Accuracy, Below
from refusals import refusals


def data(samples=6, dimension=10, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((samples, dimension)) / np.sqrt(samples)
    truth = np.zeros(dimension)
    truth[:2] = 0.3, -0.2
    return Regression(X, X @ truth, truth, loss="half squares")


PROBLEM = data()
TOP = float(np.linalg.eigvalsh(PROBLEM.X @ PROBLEM.X.T)[-1])  # sigma_max(X^T X) by another route


def end(model, problem, method, steps, penalty=None, **more):
    """The path of so many steps."""
    return train(model, problem, method, penalty=penalty, stop=Steps(steps), **more)


def by_hand(X, y, a, step, steps, beta, slope):
    for _ in range(steps):
        a = a - step * (X.T @ (X @ a - y) + beta * slope(a))
    return a


def compact(shape):
    def slope(a):
        u, s, v = np.linalg.svd(a.reshape(shape))
        rank = int((s > 1e-14 * max(s[0], 1e-300)).sum())
        return (u[:, :rank] @ v[:rank]).ravel()

    return slope


SLOPES = [
    (L1(), np.sign),
    (L2(), lambda a: 2 * a),
    (L2(squared=False), lambda a: a / np.linalg.norm(a)),
    (Nuclear((2, 5)), compact((2, 5))),
]


@pytest.mark.parametrize(("penalty", "slope"), SLOPES, ids=lambda p: type(p).__name__)
def test_subgradient_descent_is_the_loop_written_by_hand(penalty, slope):
    path = end(
        LinearPredictor(0.1), PROBLEM, GradientDescent(0.1, subgradient=True), 300, 1e-2 * penalty
    )
    wanted = by_hand(PROBLEM.X, PROBLEM.y, np.full(10, 0.1), 0.1, 300, 1e-2, slope)
    np.testing.assert_allclose(path.predictor, wanted, atol=1e-12)
    other = by_hand(PROBLEM.X, PROBLEM.y, np.full(10, 0.1), 0.1, 301, 1e-2, slope)
    assert np.abs(path.predictor - other).max() > 1e-9  # one step more can be told


@settings(deadline=None, derandomize=True, max_examples=30)
@given(seed=st.integers(0, 10**6), share=st.floats(0.05, 0.95), beta=st.floats(0, 0.3))
def test_any_data_step_and_beta_give_the_loop_written_by_hand(seed, share, beta):
    problem = data(seed=seed)
    step = share * 2 / np.linalg.norm(problem.X, 2) ** 2
    start = np.random.default_rng(seed).standard_normal(10)
    path = end(
        LinearPredictor(start),
        problem,
        GradientDescent(step, subgradient=True),
        50,
        beta * L1(),
        record=At([50]),
    )
    wanted = by_hand(problem.X, problem.y, start, step, 50, beta, np.sign)
    assert np.abs(path.predictor - wanted).max() < 1e-11


@pytest.mark.parametrize("kind", ["completion", "sensing"])
def test_matrix_problems_are_the_same_loop_on_their_design(kind):
    problem = low_rank_completion(samples=11, dimension=4, rank=1, seed=1, loss="half squares")
    if kind == "sensing":
        stack = problem.design.reshape(-1, 4, 4)
        problem = Sensing(stack, problem.y, problem.truth, loss="half squares")
    start = np.arange(16.0).reshape(4, 4) / 50
    model = LinearMatrix(start=start)
    path = end(model, problem, GradientDescent(0.5, subgradient=True), 200, 1e-2 * Nuclear((4, 4)))
    wanted = by_hand(problem.design, problem.y, start.ravel(), 0.5, 200, 1e-2, compact((4, 4)))
    np.testing.assert_allclose(path.predictor.ravel(), wanted, atol=1e-12)
    last = path.dataset.isel(time=-1)
    apart = path.predictor - problem.truth
    hidden = np.ones((4, 4), bool)
    if kind == "completion":
        hidden[tuple(problem.entries.T)] = False
    assert last.test_error == pytest.approx(np.sqrt((apart[hidden] ** 2).mean()))
    relative = np.linalg.norm(apart) / np.linalg.norm(problem.truth)
    assert last.relative_error == pytest.approx(relative)
    assert last.norm_nuclear == pytest.approx(np.linalg.norm(path.predictor, "nuc"))
    assert last.norm_l2 == pytest.approx(np.linalg.norm(path.predictor))


def test_the_records_are_what_their_names_say():
    beta = 1e-2
    path = end(
        LinearPredictor(0.1), PROBLEM, GradientDescent(0.1, subgradient=True), 200, beta * L1()
    )
    found = path.dataset
    assert list(found.step.values[:4]) == [0, 1, 2, 3]
    assert found.step[-1] == 200
    np.testing.assert_allclose(found.t, 0.1 * found.step)
    for row in (0, 5, -1):
        now = found.isel(time=row)
        a = now.predictor.values
        r = PROBLEM.X @ a - PROBLEM.y
        assert now.loss == pytest.approx(0.5 * r @ r)
        assert np.exp(now.log_loss) == pytest.approx(float(now.loss))
        assert now.norm_l1 == pytest.approx(np.abs(a).sum())
        assert now.penalty == pytest.approx(beta * np.abs(a).sum())
        assert now.objective == pytest.approx(0.5 * r @ r + beta * np.abs(a).sum())
        assert now.gradient_norm == pytest.approx(np.linalg.norm(PROBLEM.X.T @ r))
        size = np.sqrt(np.count_nonzero(a))
        assert now.penalty_gradient_norm == pytest.approx(beta * size)
        assert now.test_error == pytest.approx(((a - PROBLEM.truth) ** 2).sum())
        assert now.relative_error == pytest.approx(np.sqrt(now.test_error / (0.09 + 0.04)))
    description = json.loads(found.attrs["description"])
    assert description["penalty"] == {"is": "L1", "times": 0.01}
    assert description["method"]["learning_rate"] == 0.1
    assert all(variable.attrs["long_name"] for variable in found.variables.values())


def test_it_stops_at_the_first_record_that_is_good_enough():
    whole = end(
        LinearPredictor(), PROBLEM, GradientDescent(0.1, subgradient=True), 3000, 1e-3 * L1()
    )
    errors = whole.dataset.test_error.values
    level = errors[20]
    assert level < errors[:20].min()
    path = train(
        LinearPredictor(),
        PROBLEM,
        GradientDescent(0.1, subgradient=True),
        penalty=1e-3 * L1(),
        stop=[Steps(3000), Below("test_error", level)],
    )
    assert path.outcome.kind is Kind.SOLVED
    assert path.steps == int(whole.dataset.step[20])
    np.testing.assert_array_equal(path.dataset.loss, whole.dataset.loss[:21])
    hard = [Steps(30), Below("test_error", 1e-9)]
    short = train(LinearPredictor(), PROBLEM, GradientDescent(0.1, subgradient=True), stop=hard)
    assert short.outcome.kind is Kind.BUDGET_SPENT
    assert "above 1e-09; allow more steps" in short.outcome.sentence


@pytest.mark.parametrize("name", ["loss", "penalty", "objective", "gradient_norm"])
def test_every_recorded_number_can_be_the_goal(name):
    given = {"penalty": 1e-2 * L1(), "record": At(range(200))}
    start = LinearPredictor(1.0)
    every = train(start, PROBLEM, GradientDescent(0.1, subgradient=True), stop=Steps(200), **given)
    values = every.dataset[name].values
    level = values[150]
    rule = Below(name, level)
    path = train(
        start, PROBLEM, GradientDescent(0.1, subgradient=True), stop=[Steps(199), rule], **given
    )
    assert path.steps == int(np.argmax(values <= level))
    assert 1 < path.steps <= 150


def test_ridge_ends_where_the_gradient_vanishes_and_not_at_the_source_s_point():
    beta, gram = 0.1, PROBLEM.X.T @ PROBLEM.X
    path = end(
        LinearPredictor(1.0), PROBLEM, GradientDescent(0.2, subgradient=True), 3000, beta * L2()
    )
    ridge = np.linalg.solve(gram + 2 * beta * np.eye(10), PROBLEM.X.T @ PROBLEM.y)
    np.testing.assert_allclose(path.predictor, ridge, atol=1e-12)
    # N prints X^T X + beta I for f = g + beta |a|^2, whose gradient has 2 beta
    printed = np.linalg.solve(gram + beta * np.eye(10), PROBLEM.X.T @ PROBLEM.y)
    assert np.abs(path.predictor - printed).max() > 1e-3


def test_the_bound_of_the_learning_rate_is_that_of_the_loss_of_the_problem():
    start, whole = LinearPredictor(1.0), dataclasses.replace(PROBLEM, loss="squares")
    with pytest.raises(ValueError, match=f"= {1 / TOP:.6g}"):  # the loss of the problem decides
        end(start, whole, GradientDescent(1.01 / TOP, subgradient=True), 10)
    assert end(start, whole, GradientDescent(0.99 / TOP, subgradient=True), 3000).log_loss < -40


def test_the_ridge_bound_counts_two_betas():
    # between 2/(sigma_max + 2 beta) and N's printed 2/(sigma_max + beta) descent diverges
    beta, start = TOP, LinearPredictor(1.0)
    with pytest.raises(ValueError, match=f"curvature of the objective.* = {2 / (3 * TOP):.6g}"):
        end(start, PROBLEM, GradientDescent(2.02 / (3 * TOP), subgradient=True), 10, beta * L2())
    printed = GradientDescent(1.9 / (TOP + beta), check=False, subgradient=True)
    path = end(start, PROBLEM, printed, 20_000, beta * L2())
    assert path.outcome.kind is Kind.DIVERGED
    method = GradientDescent(1.98 / (3 * TOP), subgradient=True)
    assert end(LinearPredictor(), PROBLEM, method, 3000, beta * L2()).outcome.ok


def test_a_run_that_diverges_keeps_what_it_recorded_and_names_the_step():
    method = GradientDescent(2.5 / TOP, check=False, subgradient=True)
    path = end(LinearPredictor(1.0), PROBLEM, method, 10_000)
    assert path.outcome.kind is Kind.DIVERGED
    assert not path.outcome.ok
    assert np.isfinite(path.predictor).all()
    assert 1 < path.steps < 10_000
    bad = int(re.search(r"after (\d+) steps", path.outcome.sentence)[1])
    assert path.steps < bad
    for steps, good in ((path.steps, True), (bad - 1, True), (bad, False)):
        again = end(LinearPredictor(1.0), PROBLEM, method, steps)
        assert again.outcome.ok is good
    assert path.dataset.attrs["outcome"] == "diverged"


def test_a_penalty_that_returns_nan_is_named_with_the_step():
    import jax.numpy as jnp

    def cut(a):  # undefined below -0.05 in its first coordinate
        return jnp.where(a[0] < -0.05, jnp.nan, 1.0) * jnp.sum(a)

    a, good = np.zeros(10), 0
    while a[0] >= -0.05:
        a, good = by_hand(PROBLEM.X, PROBLEM.y, a, 0.1, 1, 0.05, np.ones_like), good + 1
    given = 1000, 0.05 * Custom(cut)
    with pytest.raises(ValueError, match=f"GradientDescent: .* penalty is nan at step {good},"):
        end(
            LinearPredictor(),
            PROBLEM,
            GradientDescent(0.1, subgradient=True),
            *given,
            record=At([1000]),
        )
    broken = Custom(lambda a: jnp.sum(a), prox=lambda a, w: a + jnp.nan)
    with pytest.raises(ValueError, match=r"Proximal: the proximal map .* at step 0"):
        end(LinearPredictor(), PROBLEM, Proximal(0.1), 10, 0.05 * broken)
    silent = Custom(lambda a: jnp.sum(a) * jnp.nan, subgradient=jnp.sign)
    with pytest.raises(ValueError, match="value of the penalty is nan at step 0"):
        end(LinearPredictor(), PROBLEM, GradientDescent(0.1, subgradient=True), 10, 0.05 * silent)


def test_a_classification_trains_on_its_mean_loss():
    problem = separable_points(12, 3, seed=2, loss="logistic")
    a = np.full(3, 0.2)
    path = end(LinearPredictor(0.2), problem, GradientDescent(0.1, subgradient=True), 200)
    for _ in range(200):
        margins = problem.y * (problem.X @ a)
        a = a + 0.1 * problem.X.T @ (problem.y / (1 + np.exp(margins))) / 12
    np.testing.assert_allclose(path.predictor, a, atol=1e-13)
    margins = problem.y * (problem.X @ a)
    assert np.exp(path.log_loss) == pytest.approx(np.log1p(np.exp(-margins)).mean())
    assert path.dataset.train_accuracy[-1] == (margins > 0).mean()


def test_an_orthogonal_design_has_the_soft_threshold_as_its_lasso():
    Q = np.linalg.qr(np.random.default_rng(3).standard_normal((8, 5)))[0]
    y = np.random.default_rng(4).standard_normal(8)
    problem = Regression(Q, y, loss="half squares")
    path = end(LinearPredictor(2.0), problem, Proximal(1.0), 1, 0.3 * L1())
    z = Q.T @ y
    np.testing.assert_allclose(path.predictor, np.sign(z) * np.maximum(np.abs(z) - 0.3, 0))


@pytest.mark.parametrize("accelerated", [False, True])
def test_the_lasso_has_cvxpy_s_objective(accelerated):
    import cvxpy

    a = cvxpy.Variable(10)
    cost = 0.5 * cvxpy.sum_squares(PROBLEM.X @ a - PROBLEM.y) + 0.02 * cvxpy.norm1(a)
    wanted = cvxpy.Problem(cvxpy.Minimize(cost)).solve(solver="CLARABEL")
    method = Proximal(1 / TOP, accelerated)
    path = end(LinearPredictor(1.0), PROBLEM, method, 4000, 0.02 * L1())
    assert float(path.dataset.objective[-1]) == pytest.approx(wanted, abs=1e-8)
    assert float(path.dataset.objective[10]) > wanted + 1e-5  # it was not there from the start
    np.testing.assert_allclose(path.predictor, a.value, atol=1e-4)


def test_nuclear_completion_has_cvxpy_s_objective():
    import cvxpy

    problem = low_rank_completion(samples=11, dimension=4, rank=1, seed=1, loss="half squares")
    M = cvxpy.Variable((4, 4))
    residual = problem.design @ cvxpy.vec(M, order="C") - problem.y
    cost = 0.5 * cvxpy.sum_squares(residual) + 0.1 * cvxpy.normNuc(M)
    wanted = cvxpy.Problem(cvxpy.Minimize(cost)).solve(solver="CLARABEL")
    for nuclear in (Nuclear((4, 4)), Nuclear()):  # which takes the shape of the problem's matrix
        path = end(LinearMatrix(), problem, Proximal(1.0, accelerated=True), 3000, 0.1 * nuclear)
        assert float(path.dataset.objective[-1]) == pytest.approx(wanted, abs=1e-7)


def test_acceleration_and_plain_steps_are_the_loops_written_by_hand():
    X, y, step, weight = PROBLEM.X, PROBLEM.y, 0.9 / TOP, 0.02

    def near(z):
        z = z - step * X.T @ (X @ z - y)
        return np.sign(z) * np.maximum(np.abs(z) - step * weight, 0)

    plain = a = z = np.ones(10)
    t = 1.0
    for _ in range(60):
        plain = near(plain)
        new, grown = near(z), (1 + np.sqrt(1 + 4 * t * t)) / 2
        a, z, t = new, new + (t - 1) / grown * (new - a), grown
    for accelerated, wanted in ((False, plain), (True, a)):
        path = end(LinearPredictor(1.0), PROBLEM, Proximal(step, accelerated), 60, weight * L1())
        np.testing.assert_allclose(path.predictor, wanted, atol=1e-13)
    assert np.abs(plain - a).max() > 1e-3


def test_linear_models_start_at_the_given_point():
    np.testing.assert_array_equal(LinearPredictor().start(3), np.zeros(3))
    np.testing.assert_array_equal(LinearPredictor(0.5).start(3), [0.5] * 3)
    np.testing.assert_array_equal(LinearPredictor([1, 2]).start(2), [1, 2])
    matrix = LinearMatrix((2, 3), start=2.0)
    assert matrix.matrix(matrix.start(6)).shape == (2, 3)
    with pytest.raises(ValueError, match=r"LinearPredictor: start must have shape \(3,\)"):
        LinearPredictor([1, 2]).start(3)
    with pytest.raises(ValueError, match=r"LinearMatrix: start must have shape \(2, 3\)"):
        LinearMatrix((2, 3), start=np.ones((3, 2)))


@pytest.mark.parametrize("model", [LinearPredictor(), LinearMatrix((2, 5))])
def test_linear_models_have_the_data_as_their_jacobian(model):
    theta, residual = np.arange(10.0), np.arange(6.0)
    np.testing.assert_allclose(model.predict(theta, PROBLEM.X), PROBLEM.X @ theta)
    np.testing.assert_allclose(model.jacobian(theta, PROBLEM.X), PROBLEM.X)
    wanted = model.jacobian(theta, PROBLEM.X).T @ residual
    np.testing.assert_allclose(model.pullback(theta, PROBLEM.X, residual), wanted)


def run(method=GradientDescent(0.1, subgradient=True), **more):  # noqa: B008
    plain = Regression(PROBLEM.X, PROBLEM.y)
    return train(LinearPredictor(), plain, method, **{"stop": Steps(9), **more})


test_wrong_input_is_refused = refusals(
    (lambda: run(penalty=0.1), r"number times a regularizer, such as 1e-3 \* L1\(\), got 0.1"),
    (lambda: run(penalty="l1"), "number times a regularizer"),
    (lambda: run(stop=[Steps(9), Below("accuracy", 1)]), "accuracy, which is not recorded"),
    (lambda: run(stop=[Steps(9), Below("test_error", 1)]), "test_error, which is not recorded"),
    (lambda: run(stop=[Steps(9), Below("penalty", 1)]), "penalty, which is not recorded"),
    (
        lambda: run(stop=[Steps(9), Accuracy(train=1.0)]),
        "train_accuracy, which is not recorded",
    ),
    (lambda: run(method=Proximal(0.1), penalty=0.1 * Custom(abs)), "has no proximal map"),
    (lambda: run(method=GradientDescent(0.1), penalty=0.1 * L1()), "has kinks"),
)
