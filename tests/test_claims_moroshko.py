"""The limit theorems of source M: that a wrong theory would be caught."""

import tacit
from tacit.bias.norms import L1
from tacit.bias.q import Q
from tacit.claims.moroshko import condition, depth, kernel_prefix, long_time, regimes

REFUTED = ("fails", "inconclusive")


def test_a_wrong_scale_of_q_is_refuted(monkeypatch):
    monkeypatch.setattr(regimes, "Q", lambda depth, mu: Q(depth, mu=2 * mu))
    assert tacit.verify("M-T6").status in REFUTED


def test_a_wrong_limit_norm_is_refuted(monkeypatch):
    monkeypatch.setattr(regimes, "L2", L1)
    assert tacit.verify("M-T4").status in REFUTED


def test_a_twin_that_is_the_model_itself_proves_nothing(monkeypatch):
    monkeypatch.setattr(kernel_prefix, "Linearized", lambda model: model)
    assert tacit.verify("M-T1").status in REFUTED


def test_a_wrong_exponent_of_the_quasi_norm_is_refuted(monkeypatch):
    monkeypatch.setattr(long_time, "stationary_points",
                        lambda X, y, reg: (tacit.max_margin(X, y, tacit.L2()),))  # fmt: skip
    assert tacit.verify("M-T2").status in REFUTED


def test_the_wrong_support_vectors_are_refuted(monkeypatch):
    def kernel(problem, depth, mu):
        return problem.signed_rows @ tacit.max_margin(problem.X, problem.y, tacit.L2()).beta

    monkeypatch.setattr(condition, "limit_margins", kernel)
    assert tacit.verify("M-C5").status in REFUTED


def test_the_wrong_depth_is_refuted(monkeypatch):
    monkeypatch.setattr(depth, "Q", lambda D, mu: Q(D + 1, mu=mu))
    assert tacit.verify("M-depth").status in REFUTED
