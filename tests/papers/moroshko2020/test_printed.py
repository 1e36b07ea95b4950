"""The printed sentences of the proofs and of the text: wrong theories, and numbers by hand."""

import numpy as np
import pytest

from penchant import Classification, DiagonalNet
from penchant.problems import separable_points, three_points
from penchant_papers.moroshko2020 import footnote_3, logistic_loss
from penchant_papers.moroshko2020.figures.figure_3 import between
from penchant_papers.moroshko2020.lemmas import kernel_proof, multipliers
from penchant_papers.moroshko2020.lemmas.runs import Case
from penchant_papers.moroshko2020.stopping import shortest_weights

WRONG = {
    "twice log t in kappa": ("M-E", {"factor": 2.0}),
    "a smoothed margin that grows faster": ("M-kernel", {"factor": 1.2}),
    "an accuracy that is not superlinear": ("M-rich", {"power": 1.0}),
    "another accuracy for each square": ("M-small", {"stretch": 3.0}),
    "a late time that is not in the kernel regime": ("M-eq2", {"scale": 10.0}),
}


@pytest.mark.parametrize("theory", WRONG)
def test_a_wrong_theory_is_refuted(theory, verdict_with):
    id, arguments = WRONG[theory]
    assert verdict_with(id, **arguments).status == "fails"


def test_the_counterexample_of_footnote_3_by_hand():
    """x = (1, 2): u = (1, 0) is KKT, its second weight has no gradient; l1 is least at (0, 1/2)."""
    residual, slope = footnote_3.by_hand()
    assert residual < 1e-12
    assert slope == pytest.approx(1.0)
    one = Classification([[1.0, 2.0]], [1])
    assert footnote_3.least_power(one, 1.0) == pytest.approx(0.5)
    assert footnote_3.least_square(one, 2, 3, 0) == pytest.approx(0.5, rel=1e-6)


def test_the_shortest_weights_have_the_predictor_and_its_power_as_their_square():
    beta = np.array([0.5, -2.0, 0.0])
    for depth in (2, 3, 5):
        u = shortest_weights(beta, depth)
        np.testing.assert_allclose(DiagonalNet(depth, alpha=1.0).predictor(u), beta)
        assert u @ u == pytest.approx((np.abs(beta) ** (2 / depth)).sum())


@pytest.mark.parametrize("depth", [2, 3])
def test_multipliers_are_recovered_from_the_predictor(depth):
    problem = separable_points(3, 5, margin=0.3, seed=0)
    case, nu = Case("", problem, depth, 1.3), np.array([0.3, 0.1, 0.2])
    z = nu @ case.rows * (1.0 if depth == 2 else 0.1)
    law = 2 * np.sinh(z) if depth == 2 else (1 - z) ** -3.0 - (1 + z) ** -3.0
    found = multipliers.weights(case, case.mu * law)
    np.testing.assert_allclose(found, nu * (1.0 if depth == 2 else 0.1), rtol=1e-6)


def test_the_bracket_of_the_kernel_proof_vanishes_with_the_factor_alone():
    case = Case("", three_points("3b"), 2, 1e4)
    printed, mended = kernel_proof.brackets(case, 1e4)
    assert printed == pytest.approx(1e4, rel=1e-2)
    assert abs(mended) < 1e-3


def test_curves_are_compared_as_curves():
    line = np.stack([np.linspace(0, 10, 20), np.zeros(20)], axis=-1)
    assert between(line, line[::3]) < 1.1
    assert between(line, line + np.array([0.0, 2.0])) == pytest.approx(2.0, abs=1e-3)


def test_sets_for_the_logistic_loss_keep_their_support_vectors():
    problem = logistic_loss.set_of(0)
    assert logistic_loss.steady(problem)
    assert not logistic_loss.steady(three_points("3d"))
