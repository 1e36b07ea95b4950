"""The least of the loss plus the variation of the slope, against a general convex solver."""

import cvxpy
import numpy as np
import pytest

from penchant import Regression
from penchant.problems import zigzag
from penchant_papers.woodworth2020.figures.weight_decay import (
    LITTLE,
    MORE,
    is_plain,
    penalized,
    points,
)


def general(problem, decay):
    """The same least by cvxpy: over the values at the data, with the slope constant between."""
    order = np.argsort(problem.X[:, 0])
    x, y = problem.X[order, 0], problem.y[order]
    values = cvxpy.Variable(len(x))
    slopes = cvxpy.multiply(1 / np.diff(x), values[1:] - values[:-1])
    bends = cvxpy.norm1(slopes[1:] - slopes[:-1])
    program = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(values - y) + 2 * decay * bends))
    program.solve(solver="CLARABEL")
    return program.value, values.value[np.argsort(order)]


@pytest.mark.parametrize("decay", [LITTLE, MORE])
@pytest.mark.parametrize("number", range(5))
def test_the_least_of_all_functions(number, decay):
    problem, _ = points(number, 3)
    best = penalized(problem, decay)
    value, values = general(problem, decay)
    assert best.holds
    assert best.objective == pytest.approx(value, rel=1e-5)
    np.testing.assert_allclose(best.values, values, atol=1e-4)


def test_the_order_of_the_points_does_not_matter():
    problem, turn = zigzag(), [3, 0, 4, 1, 2]
    other = penalized(Regression(problem.X[turn], problem.y[turn]), MORE)
    np.testing.assert_allclose(other.values, penalized(problem, MORE).values[turn], atol=1e-12)


def test_a_decay_that_takes_a_bend_away_is_noticed():
    problem = zigzag()
    assert penalized(problem, MORE).holds
    assert not penalized(problem, 1.0).holds
    off = penalized(problem, 1.0).objective / general(problem, 1.0)[0]
    assert abs(off - 1) > 0.01  # and the formula is wrong there
    steep = Regression([[-0.02], [0.0], [0.02]], [0.0, 1.0, 0.0])
    assert not is_plain(steep)


def test_no_net_is_below_it():
    rng, problem = np.random.default_rng(0), zigzag()
    least = penalized(problem, MORE).objective
    for _ in range(200):
        w, v, b = rng.normal(size=(3, 8)) * rng.uniform(0.2, 2, (3, 1))
        outputs = np.maximum(problem.X * w + b, 0) @ v
        misfit = outputs - problem.y
        misfit -= misfit.mean()  # the output bias is free
        assert misfit @ misfit + MORE * np.sum(w**2 + v**2) > least
