"""Claims on wide factorizations: that a wrong theory would be caught, and their own tools."""

import dataclasses

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.stats import ks_2samp

import tacit
from tacit.claims.evidence import HOLDING
from tacit.claims.woodworth import kernel_bounds, kernel_corollary, kernel_lemmas, matrices, width
from tacit.models.factorization import Factorization
from tacit.problems.matrices import Sensing, commuting_sensing
from tacit.regularizers.q import Q
from tacit.regularizers.spectral import Frobenius, Schatten
from tacit.solvers.interpolate import interpolate
from tacit.training.exact.matrices.flow import MatrixFlow
from tacit.training.train import train

REFUTED = ("fails", "inconclusive")


def kept(function, key):
    """`function` that computes once per key: what a test does not break need not run again."""
    memory = {}

    def again(*arguments):
        place = key(*arguments)
        if place not in memory:
            memory[place] = function(*arguments)
        return memory[place]

    return again


def whole_start(model, problem):
    """All that an end depends on."""
    factors = tuple(part.tobytes() for part in model.factors or ())
    return (model.width, model.alpha, model.seed, *factors, problem.measurements.tobytes(),
            problem.y.tobytes())  # fmt: skip


_end = kept(width.end, whole_start)
_course = kept(matrices.course, lambda case: (case.X.tobytes(), case.start.tobytes(),
                                              case.residual.tobytes()))  # fmt: skip


@pytest.fixture
def small(monkeypatch):
    """Fewer instances: a wrong theory shows on a few."""
    monkeypatch.setattr(width, "end", _end)
    monkeypatch.setattr(width, "WIDTHS", (100, 10_000, 1_000_000))
    monkeypatch.setitem(kernel_bounds.COUNTS, "quick", 8)
    monkeypatch.setitem(kernel_lemmas.COUNTS, "quick", 8)
    monkeypatch.setitem(kernel_lemmas.DRAWS, "quick", 1000)


def case(seed=0, **changes):
    settings = {"d": 2, "samples": 3, "spread": 2.0, "gamma_share": 0.5, "residual_share": 1.0,
                "pull": "random"}  # fmt: skip
    return matrices.lifted_case(np.random.default_rng(seed), **(settings | changes))


def as_problem(lifted):
    """The same start and data for the package's own flow and model."""
    d = lifted.X.shape[1]
    model = Factorization(factors=(lifted.start[:d], lifted.start[d:]))
    y = np.einsum("nij,ij->n", lifted.X, lifted.start[:d] @ lifted.start[d:].T)
    return model, Sensing(lifted.X, y - lifted.residual)


# --- wrong theories


def test_a_wrong_scale_of_the_spectrum_is_refuted(monkeypatch, small):
    monkeypatch.setattr(width, "schatten", lambda mu2: Schatten(Q(2, alpha=np.sqrt(2 * mu2))))
    assert tacit.verify("W-T4").status in REFUTED


def test_a_wrong_norm_of_the_spectrum_is_refuted(monkeypatch, small):
    monkeypatch.setattr(width, "schatten", lambda mu2: Frobenius())
    assert tacit.verify("W-T4").status in REFUTED


def test_half_the_bounds_of_theorem_9_are_refuted(monkeypatch, small):
    bound = kernel_bounds.start_bound
    monkeypatch.setattr(kernel_bounds, "start_bound", lambda case: bound(case) / 2)
    monkeypatch.setattr(kernel_lemmas, "start_bound", lambda case: bound(case) / 2)
    assert tacit.verify("W-T9").status in REFUTED
    assert tacit.verify("W-L12").status in REFUTED


def test_a_twin_that_is_the_model_itself_proves_nothing(monkeypatch, small):
    real = matrices.course

    def same(case):
        run = real(case)
        return dataclasses.replace(run, twin_moved=run.moved * (1 + 1e-3))

    monkeypatch.setattr(kernel_bounds, "course", same)
    assert tacit.verify("W-T9").status in REFUTED


def test_the_printed_size_of_the_measurements_does_not_mend_the_corollary(monkeypatch):
    monkeypatch.setattr(kernel_corollary.Setting, "square",
                        lambda self, printed: self.d * self.edges[1] ** 2)  # fmt: skip
    monkeypatch.setattr(kernel_corollary, "course", _course)
    assert tacit.verify("W-C10").status in REFUTED


def test_a_wrong_power_of_the_width_is_refuted(monkeypatch):
    monkeypatch.setattr(kernel_corollary, "LAW", kernel_corollary.LAW - [0.0, 0.1])
    monkeypatch.setattr(kernel_corollary, "course", _course)
    assert tacit.verify("W-C10").status in REFUTED


def test_the_printed_kernel_is_refuted(monkeypatch, small):
    real = matrices.Lifted.kernel
    monkeypatch.setattr(matrices.Lifted, "kernel", lambda self, W: real(self, W) / 2)
    assert tacit.verify("W-L11").status in REFUTED


def test_a_wrong_law_of_the_start_is_refuted(monkeypatch, small):
    real = matrices.wishart_root
    monkeypatch.setattr(kernel_lemmas, "wishart_root", lambda *args: 2 * real(*args))
    assert tacit.verify("W-L13").status in REFUTED


@pytest.mark.parametrize("name", ["W-T9", "W-L11", "W-L12", "W-L13"])
def test_few_instances_are_enough_to_agree(name, small):
    verdict = tacit.verify(name)
    assert verdict.status in HOLDING, str(verdict)
    assert not verdict.evidence.arithmetic


# --- the tools, by second routes


@pytest.mark.parametrize("seed", range(3))
def test_a_course_ends_where_the_matrix_flow_ends(seed):
    lifted = case(seed)
    run = matrices.course(lifted, fall=1e-10)
    W = lifted.start + run.moved[-1]
    model, problem = as_problem(lifted)
    end = train(model, problem, MatrixFlow()).predictor
    assert W[:2] @ W[2:].T == pytest.approx(end, abs=1e-8)
    far = dataclasses.replace(lifted, residual=1.01 * lifted.residual)
    assert np.abs(matrices.course(far).moved[-1] - run.moved[-1]).max() > 1e-5


def test_the_kernel_is_twice_that_of_the_jacobian():
    lifted = case(1)
    model, problem = as_problem(lifted)
    J = model.jacobian(model.start(problem.dimension), problem.design)
    assert lifted.kernel(lifted.start) == pytest.approx(2 * J @ J.T)


def test_the_twin_obeys_its_linear_equation():
    lifted = case(2)
    model, problem = as_problem(lifted)
    J = model.jacobian(model.start(problem.dimension), problem.design)
    n = J.shape[1]
    generator = np.zeros((n + 1, n + 1))  # w' = -2 J^T (J w + r), with a constant 1 as last entry
    generator[:n, :n], generator[:n, n] = -2 * J.T @ J, -2 * J.T @ lifted.residual
    t = np.array([0.0, 0.1, 1.0])
    moved, residual = matrices.tangent(lifted, t)
    for k, time in enumerate(t):
        w = expm(time * generator)[:n, n]
        assert moved[k].ravel() == pytest.approx(w, abs=1e-12)
        assert residual[k] == pytest.approx(lifted.residual + J @ w, abs=1e-12)


@pytest.mark.parametrize("samples", [1, 3])
def test_cases_have_the_edges_and_the_start_they_were_asked_for(samples):
    lifted = case(3, samples=samples, size=0.3, mu=2.0)
    low, high = lifted.edges
    assert (low, high) == pytest.approx((0.09, 0.09 * (2.0 if samples > 1 else 1.0)))
    off = lifted.start @ lifted.start.T - 2.0 * np.eye(4)
    assert np.linalg.norm(off, 2) == pytest.approx(lifted.gamma)
    assert lifted.gamma == pytest.approx(0.5 * 2.0 * low / (4 * high))
    assert lifted.misfit == pytest.approx(matrices.reach(2.0, lifted.gamma, low, high))


def test_wishart_roots_have_the_law_of_gaussian_factors():
    rng = np.random.default_rng(4)

    def largest(draw):
        return [np.linalg.norm(draw(), 2) for _ in range(2000)]

    gaussian = largest(lambda: rng.standard_normal((4, 20)))
    assert ks_2samp(gaussian, largest(lambda: matrices.wishart_root(rng, 4, 20))).pvalue > 0.01
    assert ks_2samp(gaussian, largest(lambda: matrices.wishart_root(rng, 4, 21))).pvalue < 1e-6


def test_diagonal_measurements_are_the_vector_problem():
    problem = commuting_sensing(samples=3, dimension=5, seed=3, rank=2, rotated=False)
    spectra = np.einsum("nii->ni", problem.measurements)
    trained = width.end(width.limit_start(5, 0.2), problem)
    beta = interpolate(spectra, problem.y, Q(2, mu=0.2)).beta
    assert trained == pytest.approx(np.diag(beta), abs=1e-7)
    wrong = interpolate(spectra, problem.y, Q(2, mu=0.2**0.5)).beta
    assert np.abs(np.diag(trained) - wrong).max() > 1e-3


def test_a_direct_start_and_a_wishart_start_are_equally_far(monkeypatch):
    problem = commuting_sensing(samples=3, dimension=5, seed=0, rank=1)

    def typical(direct):
        monkeypatch.setattr(width, "DIRECT", direct)
        models = [width.wide_start(5, 2000, 0.01, seed) for seed in range(8)]
        return np.mean([width.far(width.end(m, problem), problem, width.schatten(0.1))
                        for m in models])  # fmt: skip

    assert typical(10_000) == pytest.approx(typical(1000), rel=0.25)


def test_commutators_tell_symmetric_from_merely_commuting():
    plain, odd = commuting_sensing(samples=3, dimension=5, seed=0), width.shear()
    assert width.commutator(width.lifts(plain)) < 1e-14
    assert width.commutator(odd.measurements) == 0
    assert width.commutator(width.lifts(odd)) == 0.25
    assert width.commutator(width.turned(plain, 0).measurements) > 0.01
