"""Claims on wide factorizations: that a wrong theory would be caught, and their own tools."""

import dataclasses

import numpy as np
import pytest

from penchant import Q, interpolate
from penchant.lab import Setting, all_claims
from penchant.lab.evidence.evidence import HOLDING, judge
from penchant.problems import Sensing, commuting_sensing
from penchant.regularizers import Frobenius, Nuclear, Schatten
from penchant_papers.instances import slack_of
from penchant_papers.woodworth2020 import (
    completion_samples,
    corollary_10,
    deep_factorization,
    lifted,
    lifted_dynamics,
    theorem_4,
    theorem_9,
)


def holds(id):
    """Whether a run holds whose cells are computed anew and stored nowhere."""
    return all_claims()[id].run(Setting("tiny")).ok


def case(seed=0, **changes):
    settings = {"d": 2, "samples": 3, "spread": 2.0, "gamma_share": 0.5, "residual_share": 1.0}
    rng = np.random.default_rng(seed)
    return lifted.lifted_case(rng, **({"pull": "random"} | settings | changes))


# --- wrong theories


@pytest.mark.parametrize(
    "wrong",
    [lambda mu2: Schatten(Q(2, alpha=np.sqrt(2 * mu2))), lambda mu2: Frobenius()],
    ids=["scale", "norm"],
)
def test_a_wrong_regularizer_of_the_spectrum_is_refuted(monkeypatch, wrong):
    monkeypatch.setattr(theorem_4, "schatten", wrong)
    assert not holds("W-T4")


@pytest.mark.parametrize("id", ["W-T9", "W-L12"])
def test_half_the_bound_of_theorem_9_is_refuted(monkeypatch, id):
    bound = lifted.kernel_regime

    def half(misfit, **edges):
        real = bound(misfit, **edges)
        return dataclasses.replace(real, from_start=real.from_start / 2)

    monkeypatch.setattr(lifted, "kernel_regime", half)
    assert not holds(id)


def test_a_twin_that_is_the_model_itself_proves_nothing(monkeypatch):
    real = lifted.followed

    def same(case):
        run = real(case)
        return dataclasses.replace(run, twin_moved=run.moved * (1 + 1e-3))

    monkeypatch.setattr(theorem_9, "followed", same)
    assert not holds("W-T9")


def test_the_printed_size_of_the_measurements_does_not_mend_the_corollary(monkeypatch):
    monkeypatch.setattr(
        corollary_10.Wide, "square", lambda self, printed: self.d * self.edges[1] ** 2
    )
    assert not holds("W-C10")


def test_a_wrong_power_of_the_width_is_refuted(monkeypatch, data_of):
    monkeypatch.setattr(corollary_10, "LAW", corollary_10.LAW - [0.0, 0.1])
    assert judge(corollary_10.check(*data_of("W-C10")))[0] not in HOLDING


def test_the_printed_kernel_is_refuted(monkeypatch):
    real = lifted.Lifted.kernel
    monkeypatch.setattr(lifted.Lifted, "kernel", lambda self, W: real(self, W) / 2)
    assert not holds("W-L11")


def test_a_product_that_differs_by_a_hundredth_is_refuted(monkeypatch):
    real = deep_factorization.difference
    monkeypatch.setattr(deep_factorization, "difference", lambda M: 1.01 * real(M))
    assert not holds("W-DF")


def test_a_gradient_of_half_the_size_is_refuted(monkeypatch, data_of):
    data = data_of("W-LD")
    wrong = data[0].assign(rule=data[0].rule + 0.5)
    assert judge(lifted_dynamics.check(data[0], *data[1:]))[0] in HOLDING
    assert judge(lifted_dynamics.check(wrong, *data[1:]))[0] not in HOLDING


def test_as_many_entries_as_the_kernel_regime_needs_are_refuted(data_of):
    sizes, ranks, *rest = data_of("W-MC")
    many = sizes.assign(entries=sizes.entries * 0 + sizes.d**3)
    assert judge(completion_samples.check(many, ranks, *rest))[0] not in HOLDING


# --- the tools, by second routes


def test_nested_problems_share_their_matrix():
    problem_of = completion_samples.nested(5, 2, seed=1)
    few, many = problem_of(8), problem_of(20)
    np.testing.assert_array_equal(few.truth, many.truth)
    np.testing.assert_array_equal(few.entries, many.entries[:8])
    assert np.linalg.matrix_rank(few.truth) == 2
    entries = completion_samples.fewest(problem_of, lambda p: p.truth * (p.samples >= 13), 0.1, 5)
    assert entries == 13


def test_doubled_measurements_see_the_difference_of_both_halves():
    problem = commuting_sensing(samples=2, dimension=3, seed=0)
    rng = np.random.default_rng(0)
    one, two = rng.standard_normal((2, 3, 3))
    whole = np.block([[one, rng.standard_normal((3, 3))], [rng.standard_normal((3, 3)), two]])
    seen = deep_factorization.doubled(problem).apply(whole)
    np.testing.assert_allclose(seen, problem.apply(one - two))
    np.testing.assert_allclose(deep_factorization.difference(whole), one - two)


def test_the_kernel_is_twice_that_of_the_jacobian():
    one = case(1)
    model, problem = one.model, one.problem
    J = model.jacobian(model.start(problem.dimension), problem.design)
    assert one.kernel(one.start) == pytest.approx(2 * J @ J.T)


@pytest.mark.parametrize("samples", [1, 3])
def test_cases_have_the_edges_and_the_start_they_were_asked_for(samples):
    one = case(3, samples=samples, size=0.3, mu=2.0)
    low, high = one.edges
    assert (low, high) == pytest.approx((0.09, 0.09 * (2.0 if samples > 1 else 1.0)))
    off = one.start @ one.start.T - 2.0 * np.eye(4)
    assert np.linalg.norm(off, 2) == pytest.approx(one.gamma)
    assert one.gamma == pytest.approx(0.5 * 2.0 * low / (4 * high))
    assert one.misfit == pytest.approx(one.regime.largest_misfit)
    begin = one.problem.apply(one.model.matrix(one.model.start(4)))
    assert begin - one.problem.y == pytest.approx(one.residual)


def test_diagonal_measurements_are_the_vector_problem():
    problem = commuting_sensing(samples=3, dimension=5, seed=3, rank=2, rotated=False)
    spectra = np.einsum("nii->ni", problem.measurements)
    trained = theorem_4.end(theorem_4.limit_start(5, 0.2), problem)
    beta = interpolate(spectra, problem.y, Q(2, mu=0.2)).beta
    assert trained == pytest.approx(np.diag(beta), abs=1e-7)
    wrong = interpolate(spectra, problem.y, Q(2, mu=0.2**0.5)).beta
    assert np.abs(np.diag(trained) - wrong).max() > 1e-3


def test_a_direct_start_and_a_wishart_start_are_equally_far():
    problem = commuting_sensing(samples=3, dimension=5, seed=0, rank=1)

    def typical(direct):
        models = [theorem_4.wide_start(5, 2000, 0.01, seed, direct) for seed in range(8)]
        ends, target = [theorem_4.end(m, problem) for m in models], theorem_4.schatten(0.1)
        return np.mean([theorem_4.far(end, problem, target) for end in ends])

    assert typical(10_000) == pytest.approx(typical(1000), rel=0.25)


def test_commutators_tell_symmetric_from_merely_commuting():
    plain, odd = commuting_sensing(samples=3, dimension=5, seed=0), theorem_4.shear()
    assert theorem_4.commutator(theorem_4.lifts(plain)) < 1e-14
    assert theorem_4.commutator(odd.measurements) == 0
    assert theorem_4.commutator(theorem_4.lifts(odd)) == 0.25
    turned = theorem_4.problem_of("turned", 0)
    assert theorem_4.commutator(turned.measurements) > 0.01
    assert theorem_4.commutator(theorem_4.lifts(turned)) < 1e-14


def test_the_slack_is_that_of_the_certificate_and_the_power_of_the_distance():
    problem = Sensing(np.array([np.diag([1.0, 0.5])]), np.ones(1))  # the certificate is this matrix
    least = interpolate(problem, Nuclear())
    assert slack_of(problem, least) == pytest.approx(0.5, abs=1e-9)
    ends = [
        theorem_4.apart(theorem_4.end(theorem_4.limit_start(2, mu2), problem), least.matrix)
        for mu2 in (1e-8, 1e-12)
    ]
    assert np.log(ends[0] / ends[1]) / np.log(1e4) == pytest.approx(0.5, abs=0.01)
