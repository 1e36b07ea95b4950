"""Every row of source W: its status, its controls, and that a wrong theory would be caught."""

import pytest

import tacit
from tacit.bias.q import Q

EXPECTED = {
    "W-K": "holds as corrected",
    "W-T1": "holds as corrected",
    "W-GA": "holds",
    "W-T2": "holds",
    "W-L5": "holds",
    "W-L6": "holds as corrected",
    "W-L7": "holds",
    "W-A": "holds as corrected",
    "W-R": "holds as corrected",
    "W-T3": "holds as corrected",
    "W-L8": "holds",
    "W-C": "holds as corrected",
}
every_claim = pytest.mark.parametrize(("id", "status"), EXPECTED.items(), ids=EXPECTED.keys())


@every_claim
def test_status(id, status):
    verdict = tacit.verify(id)
    assert verdict.status == status, str(verdict)
    assert verdict.controls
    assert all(control.misses for control in verdict.evidence.controls.values())


@pytest.mark.slow
@every_claim
def test_status_at_full_size(id, status):
    verdict = tacit.verify(id, full=True)
    assert verdict.status == status, str(verdict)


def test_the_ledger_lists_every_row():
    from tacit.claims.registry import ledger

    assert {claim.id for claim in ledger.select("W")} == set(EXPECTED)


@pytest.mark.parametrize("id", ["W-T1", "W-T3"])
def test_a_wrong_regularizer_is_refuted(id, monkeypatch):
    """The theorem with mu three times too large must not survive the same experiment."""
    true = Q.log_mu.fget
    weight = Q.log_weight.fget
    monkeypatch.setattr(Q, "log_mu", property(lambda self: true(self) + 1.1))
    monkeypatch.setattr(Q, "log_weight", property(lambda self: weight(self) + 1.1))
    assert tacit.verify(id).status in ("fails", "inconclusive")


@pytest.mark.parametrize("id", ["W-L5", "W-L7", "W-A", "W-R"])
def test_a_wrong_value_is_refuted(id, monkeypatch):
    """Q three times as large must break every statement about its size."""
    true = Q.terms
    monkeypatch.setattr(Q, "terms", lambda self, beta: 3 * true(self, beta))
    assert tacit.verify(id).status in ("fails", "inconclusive")
