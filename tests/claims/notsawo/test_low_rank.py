"""Source N, low rank, data selection and depth: that a wrong theory would be caught."""

import math

import numpy as np
import pytest

import tacit
from tacit.claims.notsawo import depth, low_rank, low_rank_memory, nuclear_runs, selection
from tacit.problems.matrices import Completion
from tacit.regularizers.norms import L1
from tacit.regularizers.spectral import Nuclear
from tacit.solvers.interpolate import interpolate


def refuted(id):
    """Whether the sabotaged experiment ran to its end and found something wrong."""
    verdict = tacit.verify(id)
    return bool(verdict.evidence.checks) and verdict.status in ("fails", "inconclusive")


def two_by_two(a, b, c):
    """[[a, b], [c, x]] with x unknown and bc/a in truth."""
    truth = np.array([[a, b], [c, b * c / a]])
    entries = np.array([[0, 0], [0, 1], [1, 0]])
    return Completion((2, 2), entries, truth.ravel()[:3], truth)


@pytest.mark.parametrize("numbers", [(2.0, 1.0, 1.0), (1.5, 0.5, 2.0), (1.1, 1.0, 1.0)])
def test_the_slow_phase_of_a_two_by_two_matrix_is_known_in_closed_form(numbers):
    problem = two_by_two(*numbers)
    x = problem.truth[1, 1]
    until = x - 0.1 * np.linalg.norm(problem.truth)
    exact = nuclear_runs.corner(*numbers, until)
    assert nuclear_runs.slow_time(problem) == pytest.approx(exact, rel=2e-3)
    assert abs(exact / np.abs(x) - 1) > 0.01  # |A_hat - A*|_op = |x| is another number


def test_the_closed_form_is_the_integral_of_one_over_the_speed():
    from scipy.integrate import quad

    def slowness(x):
        matrix = np.array([[1.5, 0.5], [2.0, x]])
        u, _, v = np.linalg.svd(matrix)
        return -1 / (u @ v)[1, 1]

    assert nuclear_runs.corner(1.5, 0.5, 2.0, 0.6) == pytest.approx(quad(slowness, 0, 0.6)[0])


def test_the_delay_has_no_constant_in_the_operator_norm():
    ratios = [nuclear_runs.corner(1 + e, 1.0, 1.0, 1 / (1 + e)) * (1 + e) for e in (1e-3, 1e-9)]
    assert ratios[1] - ratios[0] == pytest.approx(2 * math.log(1e6), rel=0.01)


def test_a_slow_phase_that_ends_elsewhere_never_arrives():
    problem = two_by_two(1.0, 1.0, 2.0)  # |x| > |a|: the least nuclear norm is not at rank 1
    assert nuclear_runs.recovered(problem) > 0.01
    assert nuclear_runs.slow_time(problem, 0.01) == math.inf


def test_the_penalized_point_satisfies_its_conditions():
    problem, beta = nuclear_runs.small()[0], 1e-2
    matrix = nuclear_runs.penalized(problem, beta)
    pull = problem.adjoint(problem.y - problem.apply(matrix)) / beta
    assert np.linalg.norm(pull, 2) <= 1 + 1e-5
    assert np.sum(pull * matrix) == pytest.approx(np.linalg.norm(matrix, "nuc"), rel=1e-5)


def test_a_wrong_time_to_memorize_is_refuted(monkeypatch):
    monkeypatch.setattr(low_rank_memory, "memorization_steps", lambda *a: 70)
    monkeypatch.setattr(low_rank_memory, "printed", nuclear_runs.small)
    assert refuted("N-T34")


@pytest.fixture
def short(monkeypatch):
    """Fewer and smaller runs of N-T35, enough to tell a wrong number."""
    monkeypatch.setattr(low_rank, "BETAS", np.array([1e-2, 1e-3]))
    monkeypatch.setattr(low_rank, "printed", nuclear_runs.small)


def test_a_slow_phase_that_is_a_tenth_too_long_is_refuted(monkeypatch, short):
    right = low_rank.slow_time
    monkeypatch.setattr(low_rank, "slow_time", lambda *a: 1.1 * right(*a))
    assert refuted("N-T35")


def test_labels_without_the_noise_that_was_asked_for_are_refuted(monkeypatch, short):
    monkeypatch.setattr(low_rank, "noisy", lambda problem, snr: problem)
    assert refuted("N-T35")


@pytest.mark.parametrize("problem", nuclear_runs.printed(), ids=lambda p: type(p).__name__)
def test_noise_has_the_power_that_was_asked_for(problem):
    noise = nuclear_runs.noisy(problem, 100.0).y - problem.y
    assert np.sum(problem.y**2) / np.sum(noise**2) == pytest.approx(100, rel=0.4)
    assert np.linalg.norm(nuclear_runs.noisy(problem, 1e8).y - problem.y) == pytest.approx(
        1e-3 * np.linalg.norm(noise)
    )


def test_the_square_of_the_norm_does_not_grok():
    problem = nuclear_runs.small()[0]
    assert low_rank.judged(problem, 1e-2, "nuclear").kind == "grok"
    seen = low_rank.judged(problem, 1e-2, "l2")
    assert seen.kind == "mirage"
    assert "floor" in seen.reason


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
