"""M-open: its status, and that a study with a wrong limit path would not survive."""

import numpy as np
import pytest

import tacit
from tacit.claims.moroshko import open_question as study
from tacit.claims.moroshko import open_question_cases as cases
from tacit.regularizers.norms import L1
from tacit.solvers.max_margin import max_margin


@pytest.mark.slow
def test_the_claim_tells_what_happens_where():
    verdict = tacit.verify("M-open")
    told = " ".join(verdict.evidence.findings)
    assert "sample 0 reaches the margin at mu = 0.03651" in told
    assert "seed 10 at depth 3 is off it" in told
    assert len(verdict.evidence.plots) == 2


def test_a_wrong_limit_path_is_refuted(monkeypatch):
    """A ratchet in which weights may fall again is the Q path, and the flow is not there."""
    monkeypatch.setattr(study, "SEEDS", {"quick": range(51, 54)})
    true = cases.ratchet_path

    def forgetful(X, y, depth=2, *, mus):
        if len(mus) < 3:  # the ends as mu -> 0 are not at issue here
            return true(X, y, depth, mus=mus)
        found = true(X, y, depth, mus=mus)
        q = cases.max_margin_path(X, y, depth, mus=mus)
        return type(found)(depth, q.mus, q.beta + 1e-3 * (found.beta - q.beta), q.dual, q.support,
                           found.changes, found.outcomes)  # fmt: skip

    monkeypatch.setattr(cases, "ratchet_path", forgetful)
    assert tacit.verify("M-open").status == "fails"


def test_a_small_net_at_small_alpha_is_not_yet_at_the_limit():
    """Control of the whole measurement: the angle to the ratchet is no rounding artefact."""
    case = cases.panel("M-F3d", 2)
    near, far = (cases.angle(case.trained(a), case.ratchet.beta).max() for a in (300.0, 1.0))
    assert near < 0.1
    assert far > 5


def test_weights_are_recovered_from_predictors_alone():
    case = cases.panel("M-F4a", 3)
    alpha = 7.0
    R = np.array([[0.1, 0.2, 0.05], [0.12, 0.2, 0.06]])
    predictors = tacit.Q(3, alpha=alpha).primal_of(R @ case.problem.signed_rows)
    found, misfit = case.weights(alpha, predictors)
    assert np.allclose(found, R, rtol=1e-9)
    assert misfit < 1e-12
    assert cases.steepest_fall(found) == pytest.approx(0.0, abs=1e-9)
    assert cases.steepest_fall(found[::-1]) == pytest.approx(-0.1)


def test_stationarity_knows_the_two_points_of_m_f4a():
    case = cases.panel("M-F4a", 3)
    l1 = max_margin(case.problem.X, case.problem.y, L1()).beta
    assert cases.stationarity(case, np.array([0, 1 / 1.4, 0])) < 1e-12
    assert cases.stationarity(case, l1) > 0.1
