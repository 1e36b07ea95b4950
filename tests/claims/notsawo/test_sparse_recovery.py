"""Source N, sparse recovery and the general theorem: that a wrong theory would be caught."""

import dataclasses

import numpy as np
import pytest

import tacit
from tacit.claims.notsawo import (
    rescaling,
    runs,
    sparsity,
    understanding,
)
from tacit.regularizers.norms import L1
from tacit.solvers.delay import ridge_limit
from tacit.solvers.interpolate import interpolate


def refuted(id):
    """Whether the sabotaged experiment ran to its end and found something wrong."""
    verdict = tacit.verify(id)
    return bool(verdict.evidence.checks) and verdict.status in ("fails", "inconclusive")


def test_a_wrong_minimiser_of_the_norm_is_refuted(monkeypatch):
    right = rescaling.printed
    monkeypatch.setattr(rescaling, "printed", lambda net: (1.01 * right(net)[0], right(net)[1]))
    assert refuted("N-LU")


def test_a_net_that_is_not_homogeneous_is_refuted(monkeypatch):
    monkeypatch.setitem(rescaling.ACTIVATIONS, "relu", (1.0, np.tanh))
    assert refuted("N-LU")


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


def test_a_slow_phase_that_is_a_tenth_too_long_is_refuted(monkeypatch):
    def longer(problem):
        flow = runs.slow_phase(problem)
        return dataclasses.replace(flow, tau=1.1 * flow.tau)

    monkeypatch.setattr(sparsity, "slow_phase", longer)
    monkeypatch.setattr(sparsity, "BETAS", np.array([1e-3, 1e-4, 1e-5]))
    assert refuted("N-T33")


def test_labels_without_the_noise_that_was_asked_for_are_refuted(monkeypatch):
    monkeypatch.setattr(sparsity, "recovery", lambda seed, snr=np.inf: runs.recovery(seed))
    monkeypatch.setattr(sparsity, "BETAS", np.array([1e-3, 1e-4, 1e-5]))
    assert refuted("N-T33")


def test_noise_leaves_the_error_of_the_interpolator_of_least_l1_norm():
    """Second route: a solver of that problem, which knows no descent and no slow phase."""
    sizes = []
    for snr in (1e4, 1e2):
        problem = runs.recovery(1, snr)
        goal = interpolate(problem.X, problem.y, L1()).beta
        np.testing.assert_allclose(runs.slow_phase(problem).end, goal, atol=1e-9)
        sizes.append(np.abs(goal - runs.truth(problem)).sum())
        left = sparsity.apart(sparsity.left(problem, runs.STEP, 1e-5), runs.truth(problem))
        assert left == pytest.approx(sizes[-1], rel=0.05)
    assert sizes[1] / sizes[0] == pytest.approx(10, rel=1e-3)
    assert sparsity.blurred(runs.recovery(1, 1e2)) > runs.SOLVED  # so no t2


def test_the_lasso_point_satisfies_its_conditions():
    problem = runs.recovery(1)
    a = runs.lasso(problem, 1e-4)
    pull = problem.X.T @ (problem.y - problem.X @ a)
    assert np.abs(pull).max() <= 1e-4 * (1 + 1e-6)
    assert pull[a != 0] == pytest.approx(1e-4 * np.sign(a[a != 0]), rel=1e-5)
    other = runs.truth(problem)
    assert np.abs(a - other).sum() > 1e-5


def test_crossing_interpolates_in_logarithms():
    t = np.array([0.0, 10.0, 20.0])
    assert runs.crossing(t, np.exp(-t), np.exp(-13.0)) == pytest.approx(13.0)
    assert runs.crossing(t, np.exp(-t), 1e-20) == np.inf
    assert runs.crossing(t, np.exp(-t), 2.0) == 0.0
