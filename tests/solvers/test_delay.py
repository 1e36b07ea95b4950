"""Limits, rates, floors and delays of source N, each against descent itself or another solver."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp
from scipy.optimize import minimize

import penchant
from general_solvers import least_l1
from penchant.forecasts import predicted_delay
from penchant.problems import sparse_recovery
from penchant.solvers import (
    descent_points,
    error_floor,
    held_best,
    held_ridge,
    least_squares_limit,
    memorization_steps,
    ridge_limit,
    slow_flow,
)

few = settings(max_examples=25, deadline=None, derandomize=True)


def random_data(seed, samples=4, dimension=7, rank=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(samples, dimension))
    if rank is not None:
        X = rng.normal(size=(samples, rank)) @ rng.normal(size=(rank, dimension))
    return X, rng.normal(size=samples), rng.normal(size=dimension)


def descended(X, y, step, beta, start, steps):
    a = start.copy()
    for _ in range(steps):
        a = a - step * (X.T @ (X @ a - y) + 2 * beta * a)
    return a


def largest(X):
    return np.linalg.norm(X, 2) ** 2


@pytest.mark.parametrize(("samples", "rank"), [(4, None), (9, None), (5, 2)])
def test_descent_goes_to_the_least_squares_point_nearest_to_its_start(samples, rank):
    X, y, start = random_data(0, samples, rank=rank)
    limit = least_squares_limit(X, y, 1 / largest(X), start)
    run = descended(X, y, 1 / largest(X), 0.0, start, 20000)
    assert np.abs(run - limit.point).max() < 1e-8
    if samples < 7:  # N's formula forgets the start
        assert np.abs(run - np.linalg.pinv(X) @ y).max() > 0.1


def test_the_least_squares_rate_is_the_rate_of_descent():
    X, y, start = random_data(1)
    limit = least_squares_limit(X, y, 1 / largest(X), start)
    gaps = [np.linalg.norm(descended(X, y, 1 / largest(X), 0.0, start, k) - limit.point)
            for k in (60, 61)]  # fmt: skip
    assert gaps[1] / gaps[0] == pytest.approx(limit.rate, rel=1e-3)


@pytest.mark.parametrize("samples", [4, 9])
def test_the_ridge_point_minimises_the_objective(samples):
    X, y, start = random_data(2, samples)
    limit = ridge_limit(X, y, 0.5 / largest(X), 0.3)
    found = minimize(
        lambda a: 0.5 * np.sum((X @ a - y) ** 2) + 0.3 * a @ a,
        start,
        jac=lambda a: X.T @ (X @ a - y) + 0.6 * a,
        options={"gtol": 1e-10},
    )
    assert np.abs(limit.point - found.x).max() < 1e-8
    printed = np.linalg.solve(X.T @ X + 0.3 * np.eye(7), X.T @ y)
    assert np.abs(printed - found.x).max() > 1e-3


def test_the_ridge_rate_bounds_every_step_and_is_attained():
    X, y, start = random_data(3)
    step = 0.7 / largest(X)
    limit = ridge_limit(X, y, step, 0.05)
    gaps = np.linalg.norm(
        [descended(X, y, step, 0.05, start, k) - limit.point for k in range(200)], axis=1
    )
    ratios = gaps[1:] / gaps[:-1]
    assert ratios.max() <= limit.rate * (1 + 1e-9)
    assert ratios[-1] == pytest.approx(limit.rate, rel=1e-6)


def test_the_step_bound_is_where_descent_stops_converging():
    X, y, start = random_data(4)
    bound = ridge_limit(X, y, 1e-3, 2.0).step_bound
    inside = descended(X, y, 0.99 * bound, 2.0, start, 3000)
    assert np.abs(inside - ridge_limit(X, y, 1e-3, 2.0).point).max() < 1e-8
    assert np.abs(descended(X, y, 1.01 * bound, 2.0, start, 3000)).max() > 1e10
    with pytest.raises(ValueError, match=f"learning_rate must be below {bound:.6g}"):
        ridge_limit(X, y, bound, 2.0)


@few
@given(
    seed=st.integers(0, 10**6),
    samples=st.integers(1, 9),
    share=st.floats(0.01, 0.99),
    beta=st.sampled_from([0.0, 1e-3, 0.5, 20.0]),
)
def test_the_closed_form_is_descent(seed, samples, share, beta):
    X, y, start = random_data(seed, samples)
    step = share * 2 / (largest(X) + 2 * beta)
    points = descent_points(X, y, step, beta, start, [0, 1, 2, 37])
    for k, point in zip((0, 1, 2, 37), points, strict=True):
        expected = descended(X, y, step, beta, start, k)
        assert np.abs(point - expected).max() <= 1e-9 * (1 + np.abs(expected).max())


@few
@given(seed=st.integers(0, 10**6), samples=st.integers(1, 6))
def test_no_point_of_the_row_space_is_below_the_floor(seed, samples):
    X, _, truth = random_data(seed, samples)
    floor = error_floor(X, truth)
    weights = np.random.default_rng(seed).normal(size=(50, samples))
    assert (np.sum((weights @ X - truth) ** 2, axis=1) >= floor * (1 - 1e-9)).all()
    best = np.linalg.lstsq(X.T, truth)[0]
    assert np.sum((best @ X - truth) ** 2) == pytest.approx(floor, rel=1e-8, abs=1e-12)


def test_a_square_problem_has_no_floor():
    X, _, truth = random_data(5, samples=7)
    assert error_floor(X, truth) < 1e-20


@pytest.mark.parametrize("level", [1e-2, 1e-8])
def test_memorization_steps_count_the_steps_of_descent(level):
    X, y, start = random_data(6)
    step = 0.8 / largest(X)
    t1 = memorization_steps(X, y, step, level, start)
    losses = [0.5 * np.sum((X @ descended(X, y, step, 0.0, start, k) - y) ** 2)
              for k in (t1 - 1, t1)]  # fmt: skip
    assert losses[0] > level >= losses[1]
    assert memorization_steps(X, y, step, 1e9, start) == 0


def test_labels_that_no_predictor_fits_have_a_least_level():
    X, y, _ = random_data(7, samples=12)
    least = 0.5 * np.linalg.lstsq(X, y)[1][0]
    assert memorization_steps(X, y, 1 / largest(X), least * 1.01) > 0
    with pytest.raises(ValueError, match="level must be above"):
        memorization_steps(X, y, 1 / largest(X), least * 0.99)


def test_predicted_delay_of_the_two_penalties():
    problem = sparse_recovery(30, 100, sparsity=5)
    found = predicted_delay(problem.X, problem.y, problem.truth, 0.1, 1e-5)
    gap = np.linalg.lstsq(problem.X, problem.y)[0] - problem.truth
    assert found.distance == pytest.approx(np.abs(gap).max())
    assert found.delay == pytest.approx(found.distance / 1e-6)
    assert found.error == pytest.approx(1e-6)
    matrix = predicted_delay(problem.X, problem.y, problem.truth.reshape(20, 5), 0.1, 1e-5,
                             norm="nuclear")  # fmt: skip
    top = np.linalg.svd(gap.reshape(20, 5), compute_uv=False)[0]
    assert matrix.distance == pytest.approx(top)
    assert matrix.t1 == found.t1
    assert matrix.floor == pytest.approx(found.floor)


@few
@given(seed=st.integers(0, 10**6), samples=st.integers(1, 6))
def test_the_slow_flow_ends_at_the_least_l1_norm(seed, samples):
    X, _, start = random_data(seed, samples)
    flow = slow_flow(X, start)
    assert np.abs(flow.points @ X.T - X @ start).max() < 1e-9
    lengths = np.abs(flow.points).sum(axis=1)
    assert (np.diff(lengths) < 1e-12).all()
    assert lengths[-1] == pytest.approx(np.abs(least_l1(X, X @ start)).sum(), rel=1e-8)
    assert (np.diff(flow.tau) > 0).all()


@few
@given(seed=st.integers(0, 10**6))
def test_the_slow_flow_is_the_limit_of_small_proximal_steps(seed):
    """Implicit steps of the l1 norm on the affine set, by a quadratic programme each."""
    cvxpy = pytest.importorskip("cvxpy")
    X, _, start = random_data(seed, 2, 4)
    flow = slow_flow(X, start)
    if flow.time < 0.05:
        return
    a, size = start, flow.time / 20
    for _ in range(10):
        z = cvxpy.Variable(4)
        objective = cvxpy.sum_squares(z - a) / (2 * size) + cvxpy.norm1(z)
        cvxpy.Problem(cvxpy.Minimize(objective), [X @ z == X @ start]).solve(solver="CLARABEL")
        a = z.value
    # implicit steps are first order in their size; a path at another pace is off by far more
    assert np.abs(a - flow.at(10 * size)).max() < 3 * size
    assert np.abs(flow.at(0.0) - start).max() < 1e-12


@pytest.mark.parametrize("epsilon", [0.5, 0.1, 0.01])
def test_the_slow_flow_of_two_coordinates_by_hand(epsilon):
    X = np.array([[1.0, epsilon - 1]])
    flow = slow_flow(X, np.linalg.pinv(X) @ [-1.0])
    assert flow.time == pytest.approx((1 - epsilon) / epsilon, rel=1e-10)
    assert flow.end == pytest.approx([-1.0, 0.0], abs=1e-10)


def test_reaches_finds_the_first_time_within_an_error():
    problem = sparse_recovery(10, 30, sparsity=2, snr=np.inf)
    flow = slow_flow(problem.X, np.linalg.pinv(problem.X) @ problem.y)
    tau = flow.reaches(problem.truth, 0.05)
    errors = np.linalg.norm(flow.at(np.linspace(0, tau, 500)) - problem.truth, axis=1)
    assert errors[-1] == pytest.approx(0.05, rel=1e-9)
    assert (errors[:-1] > 0.05).all()
    assert flow.reaches(problem.truth, 1e3) == 0.0
    assert flow.reaches(problem.truth + 10, 0.05) == np.inf


def test_a_start_that_is_already_least_stays():
    flow = slow_flow([[1.0, 0.5]], [1.0, 0.0])
    assert flow.time == 0.0
    assert (flow.end == [1.0, 0.0]).all()
    assert slow_flow(np.eye(3), [1.0, -2.0, 0.0]).time == 0.0


def test_the_slow_flow_predicts_the_descent():
    problem = sparse_recovery(10, 30, sparsity=2, snr=np.inf)
    hat = np.linalg.pinv(problem.X) @ problem.y
    flow = slow_flow(problem.X, hat)
    step, beta = 0.1, 1e-3
    a, half = hat.copy(), round(0.5 * flow.time / (step * beta))
    for _ in range(half):
        a = a - step * (problem.X.T @ (problem.X @ a - problem.y) + beta * np.sign(a))
    assert np.abs(a - flow.at(half * step * beta)).max() < 0.05 * np.abs(hat - flow.end).max()
    assert np.abs(a - flow.at(0.7 * flow.time)).max() > 0.05 * np.abs(hat - flow.end).max()


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda X, y: least_squares_limit(X, y, 0.0), "learning_rate must be > 0"),
        (lambda X, y: least_squares_limit(X, y, 1e3), "learning_rate must be below"),
        (lambda X, y: least_squares_limit(0 * X, y, 1e-3), "X must not be all zero"),
        (lambda X, y: predicted_delay(X, y, np.zeros(7), 1e-3, 0.0), "beta must be > 0"),
        (lambda X, y: predicted_delay(X, y, [1.0], 1e-3, 1e-3), "truth must have one entry per"),
        (lambda X, y: predicted_delay(X, y, np.zeros(7), 1e-3, 1e-3, level=0.0), "level must be >"),
        (lambda X, y: predicted_delay(X, y, np.zeros(7), 1e-3, 1e-3, norm="l2"), "unknown norm"),
        (lambda X, y: predicted_delay(X, y, np.zeros(7), 1e-3, 1e-3, norm="nuclear"),
         "truth must have 2 dim"),
        (lambda X, y: slow_flow(X, [1.0]), "start must have one entry per"),
        (lambda X, y: slow_flow(X, np.zeros(7)).reaches(np.zeros(7), 0.0), "error must be > 0"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_in_a_sentence(call, sentence):
    X, y, _ = random_data(8)
    with pytest.raises(ValueError, match=sentence):
        call(X, y)


# near dependence, steps near one, any units: each against 60 digits


def in_digits(X, y, penalty):
    """The least |X a - y|^2 + penalty |a|^2 of independent rows, rounded once."""
    with mp.workdps(120):
        A = mp.matrix(X.tolist())
        dual = mp.lu_solve(A * A.T + penalty * mp.eye(len(X)), mp.matrix(y.tolist()))
        return np.array([float(v) for v in A.T * dual])


@given(
    st.integers(0, 10**6),
    st.sampled_from([0.0, 1e-30, 1e-16, 1e-8, 1e-3]),
    st.floats(-14, 0),
    st.integers(-400, 400),
)
@few
def test_points_of_rows_that_nearly_agree_are_right_or_refused(seed, beta, distance, power):
    """The normal equations gave points 27% off at beta = 1e-16, also of rows far apart."""
    X, y, other = random_data(seed, 3, 5)
    X[2] = X[0] + 10.0**distance * other[:5]
    X, beta = np.ldexp(X, power), np.ldexp(beta, 2 * power)
    step = 0.5 / largest(X)
    try:
        point = (ridge_limit(X, y, step, beta) if beta else least_squares_limit(X, y, step)).point
    except penchant.NumericalError:
        if distance < -6:
            return
        raise
    if beta or 10.0**distance > 1e-13:  # closer ones depend on each other to rounding
        true = in_digits(X, y, 2 * mp.mpf(beta))
        assert np.abs(point - true).max() <= 1e-7 * np.abs(true).max()


def test_a_small_penalty_on_plain_rows_is_seen():
    X, y, _ = random_data(6, 3, 5)
    for beta in (1e-16, 1e-30, 1e-200):
        point = ridge_limit(X, y, 0.01, beta).point
        np.testing.assert_allclose(point, in_digits(X, y, 2 * mp.mpf(beta)), rtol=1e-13)


@pytest.mark.parametrize("part", [1e-3, 1e-9, 1e-14])
def test_long_times_of_small_steps_are_those_of_many_digits(part):
    """1 - 1e-14 in float64 is off by a percent of what a step moves."""
    X, y, start = random_data(7)
    step, count = part / largest(X), round(2 / part)
    with mp.workdps(50):
        A = mp.matrix(X.tolist())
        rates, basis = mp.eigsy(A.T * A)
        pull, begin = basis.T * A.T * mp.matrix(y.tolist()), basis.T * mp.matrix(start.tolist())
        where = []
        for rate, force, at in zip(rates, pull, begin, strict=True):
            curvature = rate + 2 * mp.mpf(0.01)
            left = (1 - mp.mpf(step) * curvature) ** count
            where.append(left * at + (1 - left) * force / curvature)
        true = np.array([float(v) for v in basis * mp.matrix(where)])
    point = descent_points(X, y, step, 0.01, start, [count])[0]
    np.testing.assert_allclose(point, true, rtol=1e-11)


def test_steps_to_a_level_are_counted_at_any_rate():
    """One row of length one: the loss after t steps is (1 - rate)^(2t)/2."""
    for rate in (0.3, 1e-5, 1e-11):
        with mp.workdps(40):
            true = mp.ceil(mp.log(2e-6) / (2 * mp.log1p(-mp.mpf(rate))))
        counted = memorization_steps([[0.6, 0.8]], [1.0], rate, 1e-6)
        assert abs(counted - int(true)) <= 1e-14 * int(true)


def test_a_level_that_takes_forever_is_refused():
    """It was said to take 2^62 steps."""
    with pytest.raises(
        ValueError, match=r"^memorization_steps: level 1e-06 is not reached in 2\^62"
    ):
        memorization_steps([[0.6, 0.8]], [1.0], 1e-19, 1e-6)


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_units_beyond_squares_are_named_and_projections_do_not_need_them(size):
    X, y, start = random_data(8)
    X, rule = size * X, "X must have squares within float64"
    calls = {
        "least_squares_limit": lambda: least_squares_limit(X, y, 0.1),
        "ridge_limit": lambda: ridge_limit(X, y, 0.1, 0.1),
        "descent_points": lambda: descent_points(X, y, 0.1, 0.1, start, [3]),
        "memorization_steps": lambda: memorization_steps(X, y, 0.1, 1e-3),
        "held_ridge": lambda: held_ridge(X, y, 1.0, free=start),
    }
    for name, call in calls.items():
        with pytest.raises(ValueError, match=f"^{name}: {rule}"):
            call()
    assert error_floor(X, start) == pytest.approx(error_floor(X / size, start), rel=1e-12)
    assert held_best(X, start, y.sum() + start**2) == pytest.approx(
        held_best(X / size, start, y.sum() + start**2), rel=1e-12
    )


def test_rows_of_doubtful_rank_are_refused():
    X, y, start = random_data(9)
    X[3] = X[0] + 1e-11 * start
    for call in (
        lambda: error_floor(X, start),
        lambda: held_best(X, start, start),
        lambda: descent_points(X, y, 1e-3, 0.0, start, [10]),
        lambda: memorization_steps(X, y, 1e-3, 1.0),
        lambda: held_ridge(X, y, 1.0),
    ):
        with pytest.raises(penchant.NumericalError, match="float64 does not tell whether the rows"):
            call()
