"""Source N, the Goldilocks zone: that a wrong picture would be caught."""

import dataclasses

import numpy as np
import pytest

from tacit.claims.notsawo import goldilocks, held_runs
from tacit.claims.notsawo.runs import recovery, truth
from tacit.claims.registry import ledger


@pytest.fixture(scope="module")
def runs():
    """One teacher with its student, and one sparse recovery at both held norms."""
    problem = recovery(4)
    norms = [held_runs.recovered(problem, norm) for norm in ("l2", "l1")]
    return held_runs.net(0)[1], *norms


def missed(checks):
    return [check.name for check in checks if check.misses]


def test_the_claim_holds_on_one_net_and_one_sparse_recovery(monkeypatch):
    monkeypatch.setattr(goldilocks, "NETS", {"quick": 1})
    monkeypatch.setattr(goldilocks, "SPARSE", {"quick": (4,)})
    verdict = ledger.select("N-F2")[0].run("quick")
    assert verdict.status == "holds", str(verdict)
    assert len(verdict.controls) == 10
    assert not any("Warning" in line for line in verdict.findings)


def test_a_bound_that_is_too_high_is_refuted(runs, monkeypatch):
    _, l2, l1 = runs
    size, error = goldilocks.best(l2)
    monkeypatch.setattr(goldilocks, "best", lambda run: (size, 1.05 * error))
    assert missed(goldilocks.sparse([l2], [l1], 1e-3)) == ["the same over its exact lower bound"]


def test_the_l_and_the_u_are_seen_and_their_absence_too(runs):
    curves, *_ = runs
    assert not missed(goldilocks.shape([curves]))
    flat = dataclasses.replace(curves, test=np.minimum(curves.test, curves.test.min() * 2))
    assert any("ratio" in name for name in missed(goldilocks.shape([flat])))
    wavy = dataclasses.replace(curves, test=curves.test * np.where(np.arange(19) == 12, 5, 1))
    assert any("median" in name for name in missed(goldilocks.shape([wavy])))
    shifted = dataclasses.replace(curves, test=np.roll(curves.test, 2), train=curves.train)
    assert any("doublings" in name for name in missed(goldilocks.shape([shifted])))
    memorized = dataclasses.replace(curves, train=0.01 * curves.train)
    assert any("w_c/2" in name for name in missed(goldilocks.shape([memorized])))
    stuck = dataclasses.replace(curves, train=np.maximum(curves.train, 0.1))
    assert any("w >= w_c" in name for name in missed(goldilocks.shape([stuck])))


def test_shuffled_labels_have_no_zone(runs):
    case = held_runs.net(0)[0]
    mixed = held_runs.taught(held_runs.shuffled(case), runs[0].sizes)
    assert sorted(held_runs.shuffled(case).training.y) == sorted(case.training.y)
    assert len(missed(goldilocks.shape([mixed]))) >= 3


def test_a_net_that_is_stretched_rather_than_rescaled_does_not_keep_its_test_loss(monkeypatch):
    assert goldilocks.moved(0) < 2

    def stretched(theta, inner, size):
        return theta * (size / np.linalg.norm(theta))

    monkeypatch.setattr(goldilocks, "rescale_layers", stretched)
    assert goldilocks.moved(0) > 2


def test_l2_in_the_place_of_l1_is_refuted(runs):
    _, l2, l1 = runs
    assert not missed(goldilocks.sparse([l2], [l1], 1e-3))
    assert any("|a*|_1" in name for name in missed(goldilocks.sparse([l2], [l2], 1e-3)))
    assert any("any held l2" in name for name in missed(goldilocks.sparse([l1], [l1], 1e-3)))


def test_a_run_that_has_not_come_to_rest_is_no_evidence(runs):
    _, l2, l1 = runs
    assert goldilocks.rest([l2, l1])[0]
    assert not goldilocks.rest([l2, dataclasses.replace(l1, fall=l1.fall + 1e-5)])[0]


def test_a_wrong_ridge_is_refuted(runs, monkeypatch):
    _, l2, l1 = runs
    right = goldilocks.held_ridge
    monkeypatch.setattr(goldilocks, "held_ridge", lambda X, y, w, u: right(X, y, 1.001 * w, u))
    assert any("closed form" in name for name in missed(goldilocks.sparse([l2], [l1], 1e-3)))


def test_a_penalty_that_stays_on_the_shell_is_refuted(runs, monkeypatch):
    _, l2, l1 = runs
    size = goldilocks.best(l2)[0]
    monkeypatch.setattr(goldilocks, "penalized", lambda problem, beta: (size, 0.5))
    assert len(missed(goldilocks.sparse([l2], [l1], 1e-3))) == 2


def test_the_error_below_least_squares_is_what_the_data_do_not_see_and_more(runs):
    """The second route to the bound: no ridge point is nearer to the truth than X^+ y."""
    _, l2, _ = runs
    target = truth(l2.problem)
    a_hat = np.linalg.pinv(l2.problem.X) @ l2.problem.y
    below = l2.sizes < np.linalg.norm(a_hat)
    unseen = np.sum((a_hat - target) ** 2) / (target @ target)
    assert below.any()
    assert (l2.error[below] >= unseen - 1e-9).all()
    assert goldilocks.best(l2)[1] <= unseen
    # the end lies in the row space below, and its unseen part is along the start's above
    start = l2.start - np.linalg.pinv(l2.problem.X) @ (l2.problem.X @ l2.start)
    for end, inside in zip(l2.ends, below, strict=True):
        part = end - np.linalg.pinv(l2.problem.X) @ (l2.problem.X @ end)
        if inside:
            assert np.linalg.norm(part) < 1e-6 * np.linalg.norm(end)
        else:
            cosine = part @ start / (np.linalg.norm(part) * np.linalg.norm(start))
            assert cosine == pytest.approx(1, abs=1e-9)


def test_the_silent_start_computes_zero():
    x = np.random.default_rng(0).normal(size=(5, held_runs.INPUTS))
    student = held_runs.student()
    assert np.abs(student.predict(held_runs.silent(), x)).max() < 1e-12
    assert np.abs(student.predict(student.start(held_runs.INPUTS), x)).max() > 0.01
