"""The open question: its verdict, and that a wrong limit path would not survive."""

import numpy as np
import pytest

import tacit
from tacit.papers.moroshko2020.open_question import Case, stationarity, steepest_fall


def test_the_verdict_says_what_happens_where(verdict_of):
    verdict = verdict_of("M-open")
    assert verdict.status == "holds"
    findings = " ".join(verdict.evidence.findings)
    assert "sample 0 reaches the margin at mu = 0.03651" in findings
    assert "seed 10 at depth 3 is off it" in findings
    assert len(verdict.evidence.plots) == 2


def test_a_wrong_limit_path_is_refuted(verdict_with):
    """A ratchet in which weights may fall again is the Q path, and the flow is not there."""
    assert verdict_with("M-open", forgets=0.999).status == "fails"


def test_a_small_net_at_small_alpha_is_not_yet_at_the_limit():
    """Control of the whole measurement: the angle to the ratchet is no rounding artefact."""
    case = Case("3d")
    goal = case.ratchet(2).beta
    near, far = (tacit.angle(case.trained(a), goal).max() for a in (300.0, 1.0))
    assert near < 0.1
    assert far > 5


def test_weights_are_recovered_from_predictors_alone():
    case = Case("4a")
    alpha = 7.0
    R = np.array([[0.1, 0.2, 0.05], [0.12, 0.2, 0.06]])
    predictors = tacit.Q(3, alpha=alpha).primal_of(R @ case.problem.signed_rows)
    found, misfit = case.weights(alpha, predictors)
    assert np.allclose(found, R, rtol=1e-9)
    assert misfit < 1e-12
    assert steepest_fall(found) == pytest.approx(0.0, abs=1e-9)
    assert steepest_fall(found[::-1]) == pytest.approx(-0.1)


def test_stationarity_knows_the_two_points_of_m_f4a():
    case = Case("4a")
    l1 = tacit.max_margin(case.problem.X, case.problem.y, tacit.L1()).beta
    assert stationarity(case, np.array([0, 1 / 1.4, 0])) < 1e-12
    assert stationarity(case, l1) > 0.1
