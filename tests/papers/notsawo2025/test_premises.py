"""N-ball, N-premises and N-drift: wrong numbers are caught, and their pieces by a second route."""

import itertools
import math

import numpy as np
import pytest

from penchant.lab.evidence.evidence import judge
from penchant_papers.notsawo2025 import dominance, drift, smoothness


@pytest.mark.parametrize("wrong", ["far_right", "slower"])
def test_a_run_that_leaves_the_corrected_bounds_is_caught(data_of, wrong):
    dataset, *others = data_of("N-ball")
    changed = dataset.assign({wrong: dataset[wrong] + 1})
    assert judge(dominance.check(changed, *others))[0] == "fails"


def test_the_opposing_penalty_is_a_gradient_and_convex():
    """Against differences of the function in the docstring, and monotone between points."""
    case = dominance.family("opposing", 3, seed=5)
    rng = np.random.default_rng(0)
    x, y = case.start + 0.3 * rng.normal(size=(2, *case.start.shape))
    H = case.H(x)
    assert (np.sum((case.H(y) - H) * (y - x), axis=1) >= -1e-12).all()
    h, eps = np.zeros(3), 1e-5
    for direction in np.eye(x.shape[1]):
        # the line integral of a gradient around a small square vanishes
        side = rng.normal(size=x.shape[1])
        corners = [x, x + eps * direction, x + eps * (direction + side), x + eps * side, x]
        for one, other in itertools.pairwise(corners):
            h = h + np.sum(case.H((one + other) / 2) * (other - one), axis=1)
    np.testing.assert_allclose(h, 0, atol=1e-12)
    ratio = np.linalg.norm(case.H(case.start), axis=1) / np.linalg.norm(case.G(case.start), axis=1)
    np.testing.assert_allclose(ratio, dominance.CLOSE, rtol=1e-12)


def test_nothing_moves_where_the_penalty_cancels_the_loss():
    assert dominance.still(0.3, 50) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize(
    ("place", "wrong", "by"),
    [(0, "defect", 1e-6), (1, "forth", 0.2), (1, "back", -0.1), (2, "wrong", 1), (3, "implied", 1)],
)
def test_a_wrong_premise_is_caught(data_of, place, wrong, by):
    data = list(data_of("N-premises"))
    data[place] = data[place].assign({wrong: data[place][wrong] + by})
    assert judge(smoothness.check(*data))[0] in ("fails", "inconclusive")


def test_the_hessian_of_the_waves_against_differences_of_their_slope():
    phi = smoothness.waves(np.random.default_rng(3))
    x, eps = np.array([[0.3, -0.2, 0.9]]), 1e-6
    columns = [
        (smoothness.slope_of(phi, x + eps * e) - smoothness.slope_of(phi, x - eps * e)) / (2 * eps)
        for e in np.eye(3)
    ]
    hessian = np.concatenate(columns)
    values, _ = smoothness.curvatures(phi, x)
    np.testing.assert_allclose(np.linalg.eigvalsh(hessian), values[0], atol=1e-8)


def test_the_largest_beta_solves_a_quadratic_equation():
    loss = smoothness.quadratic((0.5, 2.0))
    step, a = 0.3, 0.6
    # mu alpha ((2 - a)(1 + b) + a b^2) = 2
    roots = np.roots([a, 2 - a, (2 - a) - 2 / (0.5 * step)])
    assert smoothness.most_beta(loss, step) == pytest.approx(max(roots.real))


def test_a_norm_at_t2_that_is_not_that_of_the_truth_is_caught(data_of):
    (dataset,) = data_of("N-drift")
    changed = dataset.assign(norm_t2=1.3 * dataset.norm_t2)
    assert judge(drift.check(changed))[0] == "fails"


def test_the_norm_of_the_truth_is_the_least_over_its_rescalings():
    """sqrt(|a|_1) for u^2 - v^2 = a, by a search over the free part of u and v."""
    a = np.array([0.7, -0.2])
    sizes = [
        math.sqrt(np.sum(np.maximum(a, 0) + np.maximum(-a, 0) + 2 * w)) for w in (0.0, 0.1, 1.0)
    ]
    assert min(sizes) == pytest.approx(math.sqrt(np.abs(a).sum()))
