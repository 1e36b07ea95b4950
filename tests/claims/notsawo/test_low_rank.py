"""Source N, low rank, data selection and depth: that a wrong theory would be caught."""

import numpy as np
import pytest

import tacit
from tacit.claims.notsawo import depth, selection
from tacit.regularizers.norms import L1
from tacit.regularizers.spectral import Nuclear
from tacit.solvers.interpolate import interpolate


def refuted(id):
    """Whether the sabotaged experiment ran to its end and found something wrong."""
    verdict = tacit.verify(id)
    return bool(verdict.evidence.checks) and verdict.status in ("fails", "inconclusive")


def test_entries_that_do_not_feel_the_share_are_refuted(monkeypatch):
    right = selection.miss
    monkeypatch.setattr(selection, "miss", lambda seed, samples, *_: right(seed, samples, 0.0))
    monkeypatch.setattr(selection, "trained", selection.slow_time)  # not what is wrong here
    assert refuted("N-F-data")


def test_recovery_by_coherence_is_certified_by_a_dual():
    """|S| <= 1 and <S, M> = |M|_*: another route to which truths are found."""
    problem = selection.chosen(0, 70, 0.5)
    found = interpolate(problem.design.reshape(-1, 10, 10), problem.y, Nuclear())
    witness = problem.adjoint(found.dual)
    assert np.linalg.norm(witness, 2) <= 1 + 1e-8
    assert np.sum(witness * problem.truth) == pytest.approx(np.linalg.norm(problem.truth, "nuc"))


def test_a_start_that_is_not_small_is_refuted(monkeypatch):
    right = depth.bias_of

    def exact(problem, model):
        """Where the flow of the sabotaged start would end; nowhere without a second copy."""
        end = interpolate(problem.X, problem.y, depth.bias_of(model.homogeneity)).beta
        return end if getattr(model, "signed", True) else -end

    monkeypatch.setattr(depth, "bias_of", lambda d, alpha=0.3: right(d, alpha))
    monkeypatch.setattr(depth, "trained", exact)
    verdict = tacit.verify("N-F-depth")
    halves = next(c for c in verdict.evidence.checks if "median errors" in c.name)
    assert halves.misses
    assert not verdict.ok


def test_descent_goes_to_the_minimiser_of_q():
    problem = depth.problems(30, 1)[0]
    point = depth.trained(problem, depth.net(2))
    assert depth.miss(problem, point, depth.bias_of(2)) < 0.01
    assert depth.miss(problem, point, L1()) > 0.1


def test_needed_asks_for_good_errors_from_there_on():
    errors = np.full(len(depth.SAMPLES), 1e-3)
    assert depth.needed(errors) == 10
    errors[[0, 3]] = 1.0
    assert depth.needed(errors) == 50
