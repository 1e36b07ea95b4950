"""Source W: that a wrong theory would be caught, and the mended proof of Theorem 2."""

import numpy as np
import pytest

import tacit
from tacit.claims.woodworth.theorem_2 import Case, Proof, equal_columns, reached
from tacit.regularizers.q import Q


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


@pytest.mark.parametrize("id", ["W-T1", "W-T2", "W-T3", "W-L5", "W-L6", "W-L7", "W-L8", "W-C10"])
def test_no_control_is_arithmetic(id):
    evidence = tacit.verify(id).evidence
    assert not evidence.arithmetic
    assert evidence.guarded


# --- the proof of Theorem 2


def random_case(rng):
    """A problem of which only d, eps < d and |b*|_1 matter, over many orders of magnitude."""
    d = int(rng.integers(1, 2000))
    norm = 10 ** rng.uniform(-4, 6)
    return Case(np.ones((1, d)), np.array([norm]), d * 10 ** rng.uniform(-4, 0), norm, 1.0)


def test_the_theorems_own_condition_is_enough_for_the_mended_proof():
    rng = np.random.default_rng(0)
    cases = [random_case(rng) for _ in range(20_000)]
    spare = np.array([Proof(c).spare for c in cases])
    eps = np.array([c.eps for c in cases])
    small = np.exp([2 * c.log_small for c in cases]) / [c.l1 for c in cases]
    assert small.max() < 1  # alpha² < |b*|_1, which the proof uses
    # the excess that the docstring of `spare` derives, of which the least is 0
    derived = np.log(2 * (1 + eps) / (1 + small)) + (1 + eps) * np.log((2 + 2 * eps) / (2 + eps))
    assert (derived > 0).all()
    assert (spare * eps - derived).min() > -1e-9 * np.abs(spare * eps).max()
    assert (spare > 0).all()


def test_less_than_the_condition_of_the_theorem_is_not_enough():
    """What the mended proof needs is no triviality: a tenth of the exponent breaks it."""
    rng = np.random.default_rng(1)
    cases = [random_case(rng) for _ in range(2000)]
    weaker = [Proof(c).spare + 1.8 * c.log_small < 0 for c in cases]
    assert np.mean(weaker) > 0.1


def test_the_first_line_of_eq_46_fails_on_two_equal_columns():
    """By hand: X = (1, 1), y = 2/3, eps = 1.9, so that the endpoint is (1/3, 1/3)."""
    case = equal_columns()[0]
    beta, eps = np.full(2, 1 / 3), 1.9
    np.testing.assert_allclose(reached(case, case.log_small), beta)
    log_alpha = min(-3.9 / 3.8 * np.log(2 * 2.9 * 2 / 3), -2 / (1.9 * 2 / 3))
    assert case.log_small == pytest.approx(log_alpha)
    z, square = beta / np.exp(2 * log_alpha), np.exp(2 * log_alpha)
    value = square * np.sum(2 - np.sqrt(4 + z**2) + z * np.arcsinh(z / 2))
    printed = value / (-2 * log_alpha) / (1 - eps / (2 + eps))  # what (46) has above |b|_1
    assert printed < 0.81 * beta.sum()
    assert Proof(case).first_lines()[0] == pytest.approx(beta.sum() / printed)
    assert np.abs(reached(case, case.log_small)).sum() <= (1 + eps) * case.l1  # the theorem


def test_both_lines_of_the_proof_are_named():
    evidence = tacit.verify("W-T2").evidence
    shares = {check.name[:8]: check.measured for check in evidence.proof[:2]}
    assert shares == {"eq. (44)": pytest.approx(0.47), "eq. (46)": pytest.approx(0.615)}
