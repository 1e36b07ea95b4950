"""Excess norms by linear programs, by vertices, and where they are not defined."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

from penchant import L1, L2
from penchant.measures import excess_norm, least_norm
from penchant.problems import separable_points, three_points
from penchant.regularizers import Lp


@pytest.mark.parametrize("seed", range(3))
def test_the_least_l1_norm_by_a_linear_program(seed):
    problem = separable_points(4, 5, margin=0.3, seed=seed)
    Z = problem.signed_rows
    lp = linprog(np.ones(10), A_ub=-np.hstack([Z, -Z]), b_ub=-np.ones(4))
    assert least_norm(problem, L1()) == pytest.approx(lp.fun, rel=1e-8)
    beta = lp.x[:5] - lp.x[5:]
    assert excess_norm(problem, 3 * beta, L1()) == pytest.approx(0, abs=1e-8)
    assert excess_norm(problem, 3 * beta, L2()) > 1e-3


@pytest.mark.parametrize("name", ["3b", "3c", "4a", "4b"])
@pytest.mark.parametrize("p", [2 / 3, 0.2])
def test_the_least_quasi_norm_is_at_a_vertex(name, p):
    """Below p = 1 the quasi-norm is concave in every orthant, so its least value is at a vertex."""
    problem = three_points(name)
    planes = np.vstack([problem.signed_rows, np.eye(3)])
    heights, best = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0]), np.inf
    for chosen in itertools.combinations(range(6), 3):
        matrix = planes[list(chosen)]
        if abs(np.linalg.det(matrix)) > 1e-9:
            vertex = np.linalg.solve(matrix, heights[list(chosen)])
            vertex[np.abs(vertex) < 1e-12] = 0.0  # whose small powers are not small
            if (problem.signed_rows @ vertex).min() > 1 - 1e-9:
                best = min(best, (np.abs(vertex) ** p).sum() ** (1 / p))
    assert least_norm(problem, Lp(p)) == pytest.approx(best, rel=1e-7)


def test_many_predictors_at_once_and_a_margin_of_their_own():
    problem = three_points("3b")
    beta = np.array([[[3.0, 1.0, 1.0], [1e-300, 0.0, 0.0]], [[-1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]])
    margins = (beta @ problem.signed_rows.T).min(axis=-1)
    sizes = np.abs(beta).sum(axis=-1)
    found = excess_norm(problem, beta, L1(), least=2.0)
    assert found.shape == (2, 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = np.where(margins > 0, sizes / margins / 2 - 1, np.nan)
    np.testing.assert_allclose(found, expected)
    own = excess_norm(problem, beta[0], L1(), margin=[1.0, -1.0], least=2.0)
    np.testing.assert_allclose(own, [1.5, np.nan])


def test_a_norm_of_another_kind_is_refused():
    problem = three_points("3b")
    with pytest.raises(ValueError, match=r"^excess_norm: norm must be L1\(\), L2\(\) or Lp"):
        excess_norm(problem, np.ones(3), L2(weights=[1.0, 2.0, 3.0]))
    with pytest.raises(ValueError, match=r"^excess_norm: margin must have one entry per predictor"):
        excess_norm(problem, np.ones((2, 3)), L1(), margin=[1.0])
    with pytest.raises(ValueError, match=r"^least_norm: problem must be a Classification"):
        least_norm(None, L1())
