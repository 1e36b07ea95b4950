"""Source W: that a wrong theory would be caught."""

import pytest

import tacit
from tacit.bias.q import Q


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
