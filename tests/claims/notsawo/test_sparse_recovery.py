"""Source N, sparse recovery and the general theorem: that a wrong theory would be caught."""

import tacit
from tacit.claims.notsawo import (
    runs,
    understanding,
)
from tacit.solvers.delay import ridge_limit


def refuted(id):
    """Whether the sabotaged experiment ran to its end and found something wrong."""
    verdict = tacit.verify(id)
    return bool(verdict.evidence.checks) and verdict.status in ("fails", "inconclusive")


def test_the_printed_ridge_point_is_refuted(monkeypatch):
    def printed(X, y, step, beta):
        return ridge_limit(X, y, step, beta / 2)

    monkeypatch.setattr(understanding, "ridge_limit", printed)
    assert refuted("N-GWU")


def test_the_mirage_and_the_grok_are_told_apart_with_the_same_settings():
    problem = runs.recovery(3)
    slow = understanding.judged(
        problem, understanding.STEPS, understanding.course(problem, understanding.BEGINS["norm 10"])
    )
    assert slow.kind == "mirage"
    assert "floor" in slow.reason
    assert slow.t1 < slow.begins
    steps, points = understanding.sparse_course(problem)
    assert understanding.judged(problem, steps, points).kind == "grok"
