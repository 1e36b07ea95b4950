"""Saddles with growth times: the weighted l1 norm, exact walks, training, and wrong input."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import penchant
from fraction_walks import walk_saddles
from penchant import DiagonalNet, ParameterFlow, Regression, Time
from penchant.solvers import saddles

few = settings(max_examples=30, deadline=None)


def random_case(seed, samples, dimension):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((samples, dimension)), rng.standard_normal(samples)
    return X, y, np.exp(rng.uniform(-1, 1, (2, dimension)))


def least_weighted(X, y, growth):
    """The fit of least sum of t+ b+ and t- b-, by a general solver; inf bounds a part at zero."""
    cost = np.where(np.isinf(growth), 0.0, growth).ravel()
    bounds = [(0, 0 if math.isinf(t) else None) for t in growth.ravel()]
    solved = linprog(cost, A_eq=np.hstack([X, -X]), b_eq=y, bounds=bounds)
    return solved.x[: X.shape[1]] - solved.x[X.shape[1] :]


@few
@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(7, 14))
def test_the_end_has_the_least_weighted_norm_and_every_stay_obeys_the_rules(
    seed, samples, dimension
):
    X, y, growth = random_case(seed, samples, dimension)
    path = saddles(X, y, growth=tuple(growth))
    best = least_weighted(X, y, growth)
    assert path.norm(path.end) == pytest.approx(path.norm(best), rel=1e-9)
    np.testing.assert_allclose(X @ path.end, y, atol=1e-9)
    assert (path.dual <= growth[0] * (1 + 1e-12)).all()
    assert (path.dual >= -growth[1] * (1 + 1e-12)).all()
    bounds = np.where(path.points > 0, growth[0], -growth[1])
    np.testing.assert_allclose(path.dual[path.points != 0], bounds[path.points != 0], rtol=1e-12)


@few
@given(st.integers(0, 10**6))
def test_small_integers_are_walked_exactly(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.integers(-3, 4, (2, 4)).astype(float), rng.integers(-3, 4, 2).astype(float)
    growth = rng.integers(1, 4, (2, 4)).astype(float)
    if not (X.any(axis=0).all() and y.any()):
        return
    path = saddles(X, y, growth=growth, throw=False)
    if path.outcome.kind is not penchant.lab.Kind.SOLVED or len({*map(tuple, np.abs(X.T))}) < 4:
        return  # a choice, or columns that share their weight
    times, points = walk_saddles(X, y, growth)
    np.testing.assert_allclose(path.tau, [float(t) for t in times], rtol=1e-13)
    exact = np.array(points, dtype=float)
    # a weight that a tie brings back to zero comes out as 2e-30 at seed 94
    np.testing.assert_allclose(path.points, exact, rtol=1e-13, atol=1e-15 * np.abs(exact).max())


def test_ones_change_nothing_and_a_factor_is_a_unit_of_time():
    X, y, growth = random_case(3, 5, 9)
    plain, ones = saddles(X, y), saddles(X, y, growth=(1.0, np.ones(9)))
    np.testing.assert_array_equal(plain.tau, ones.tau)
    np.testing.assert_array_equal(plain.points, ones.points)
    once, thrice = saddles(X, y, growth=growth), saddles(X, y, growth=3 * growth)
    np.testing.assert_allclose(thrice.tau, 3 * once.tau, rtol=1e-12)
    np.testing.assert_allclose(thrice.points, once.points, rtol=1e-9, atol=1e-12)
    other = saddles(X, -y, growth=growth[::-1])
    np.testing.assert_allclose(other.points, -once.points, rtol=1e-12)
    assert np.abs(plain.end - once.end).max() > 1e-3  # growth times matter here


def test_a_weight_that_never_grows_stays_at_zero():
    X, y, growth = random_case(5, 3, 12)
    growth[1] = np.inf
    path = saddles(X, y, growth=growth)
    assert (path.points >= 0).all()
    np.testing.assert_allclose(path.end, least_weighted(X, y, growth), atol=1e-9)
    assert path.norm(-np.ones(12)) == math.inf
    # positive weights alone cannot lower this loss: nothing ever grows
    assert saddles([[1.0, 2.0]], [-1.0], growth=(1.0, np.inf)).tau.tolist() == [0.0]


def test_equal_columns_grow_at_the_least_of_their_times():
    column = np.array([[1.0], [2.0]])
    X, y = np.hstack([column, -column, column]), [1.0, 2.0]
    path = saddles(X, y, growth=([2.0, 5.0, 1.0], [3.0, 9.0, 1.0]))
    np.testing.assert_allclose(path.end, [0.0, 0.0, 1.0])
    # a negative weight of the second column acts like a positive one of the others
    path = saddles(X, y, growth=([1.0, 5.0, 2.0], [3.0, 1.0, 3.0]))
    np.testing.assert_allclose(path.end, [0.5, -0.5, 0.0])


@pytest.mark.parametrize("power", [-200, 200])
def test_units_of_growth_times_over_many_decades(power):
    X, y, growth = random_case(8, 3, 6)
    path = saddles(X, y, growth=growth * 10.0**power)
    np.testing.assert_allclose(path.tau, saddles(X, y, growth=growth).tau * 10.0**power, rtol=1e-9)
    growth[:, 0] *= 10.0**power
    path = saddles(X, y, growth=growth)
    assert (path.end[0] != 0) == (power < 0)
    np.testing.assert_allclose(X @ path.end, y, atol=1e-9)


def test_columns_too_slow_for_float64_are_walked_in_rational_numbers():
    path = saddles([[1e-300, 0.0], [0.0, 1e300]], [1.0, 1.0])
    np.testing.assert_allclose(path.tau, [0.0, 2.5e-301, 2.5e299], rtol=1e-15)
    np.testing.assert_allclose(path.end, [1e300, 1e-300], rtol=1e-15)


@pytest.mark.parametrize(("depth", "log_alpha"), [(3, -8.0), (5, -3.5)])
def test_training_from_a_direction_ends_at_its_own_norm(depth, log_alpha):
    def tells(X, y, direction):  # the end differs from that of equal starts
        end = saddles(X, y, growth=direction ** (2.0 - depth)).end
        return np.abs(end - saddles(X, y).end).max() > 0.1

    X, y, direction = next(case for seed in range(99) if tells(*(case := random_case(seed, 3, 7))))
    path = saddles(X, y, growth=direction ** (2.0 - depth), depth=depth)
    unit = math.exp(path.log_unit(log_alpha=log_alpha))
    net = DiagonalNet(depth, start=math.exp(log_alpha) * direction)
    stop = Time(6 * path.tau[-1] * unit)
    trained = penchant.train(net, Regression(X, y), ParameterFlow(), stop=stop).predictor
    np.testing.assert_allclose(trained, path.end, atol=1e-3)
    assert np.abs(trained - saddles(X, y).end).max() > 0.05  # a control


@pytest.mark.parametrize(
    ("growth", "sentence"),
    [
        (2.0, r"growth must be \(t_plus, t_minus\), a number or a vector each, got 2.0"),
        ((1.0, 2.0, 3.0), "got 3 entries"),
        ((0.0, 1.0), "t_plus of growth must be > 0, got 0.0 at index 0; .* inf"),
        (([1.0, -2.0], 1.0), "t_plus of growth must be > 0, got -2.0 at index 1"),
        ((1.0, [1.0, np.nan]), "t_minus of growth must be > 0, got nan at index 1"),
        ((1.0, [1.0, 2.0, 3.0]), r"t_minus of growth must be one time or 2, .* got shape \(3,\)"),
        (([np.inf, 1.0], np.inf), "one finite time, got inf twice at index 0; drop its column"),
        (("a", 1.0), "t_plus of growth must be numbers, got 'a'"),
    ],
)
def test_wrong_growth_times_are_named(growth, sentence):
    with pytest.raises(ValueError, match=f"saddles: .*{sentence}"):
        saddles([[1.0, 2.0]], [1.0], growth=growth)


def test_a_matrix_problem_takes_no_growth_times():
    problem = penchant.problems.low_rank_completion(samples=3, dimension=2, rank=1, seed=1)
    with pytest.raises(ValueError, match="leave out growth"):
        saddles(problem, growth=(1.0, 1.0))
