"""Source N, sparse recovery and the general theorem: that a wrong theory would be caught."""

import dataclasses

import numpy as np
import pytest

import tacit
from tacit.claims.notsawo import (
    contraction,
    least_squares,
    memorization,
    rescaling,
    runs,
    sparsity,
    steps,
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


def test_the_printed_delta_is_refuted(monkeypatch):
    monkeypatch.setattr(contraction, "delta", steps.printed_delta)
    assert refuted("N-PL")


def test_the_halved_cross_term_is_refuted(monkeypatch):
    monkeypatch.setattr(contraction, "third_line", lambda one, cross: steps.third_line(one, 0.5))
    assert refuted("N-PL")


@pytest.mark.parametrize("step", [0.2, 0.9, 1.1, 1.6])
@pytest.mark.parametrize("beta", [0.05, 0.2])
def test_the_corrected_delta_is_the_least_one(step, beta):
    """Against all directions of H, on a quadratic where nothing is lost."""
    one = np.full(1, step), np.full(1, beta)
    angles = np.linspace(0, np.pi, 721)
    plane = steps.quadratic((1.0, 1.0))
    x = np.tile([1.0, 0.0], (721, 1))
    H = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    trial = steps.Trials(plane, x, H, np.full(721, step), np.full(721, beta))
    worst = (trial.after / trial.g).max()
    assert worst == pytest.approx(1 - float(steps.delta(plane, *one)[0]), rel=1e-12)
    assert worst > 1 - float(steps.printed_delta(plane, *one)[0])


def test_a_wrong_least_value_of_the_objective_is_refuted(monkeypatch):
    right, both = memorization.radial, memorization.examples
    monkeypatch.setattr(memorization, "examples", lambda: both()[1::2])  # the two that use it
    monkeypatch.setattr(memorization, "radial", lambda weight, beta: 0.99 * right(weight, beta))
    assert refuted("N-T21")


def test_the_least_values_of_the_objectives_are_least():
    from scipy.optimize import minimize

    for case in memorization.examples():
        for beta in (1e-2, 1e-3):
            best = minimize(
                lambda x, c=case, b=beta: float(c.objective.g(x) + b * c.objective.h(x)),
                [0.9, 0.9],
                method="Nelder-Mead",
                options={"xatol": 1e-9, "fatol": 1e-13, "maxiter": 4000},
            )
            assert case.f_star(beta) <= best.fun + 1e-7
            assert best.fun - case.f_star(beta) < 0.01 * beta, case.objective.name


def test_a_wrong_time_to_memorize_is_refuted(monkeypatch):
    monkeypatch.setattr(least_squares, "memorization_steps", lambda *a: 20)
    assert refuted("N-T31")


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


def test_the_chi_of_the_start_is_not_that_of_the_ball():
    """On the circle chi = 8 |x|^2 falls on the way, by hand 2 sqrt(g/chi) at (0.9, 0.8)."""
    circle = memorization.examples()[1]
    square = 0.9**2 + 0.8**2
    by_hand = 2 * np.sqrt(0.5 * (square - 1) ** 2 / (8 * square))
    assert memorization.at_start(circle) == pytest.approx(by_hand, rel=1e-6)
    assert by_hand < np.sqrt(square) - 1 <= memorization.condition(circle).zero_within


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
