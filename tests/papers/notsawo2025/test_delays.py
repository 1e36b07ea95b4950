"""Theorems 3.3 and 3.5 (ii): the delay, the final error and that due to noise, by second routes."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize

from penchant.problems import Completion
from penchant.solvers import slow_flow
from penchant_papers.notsawo2025 import delays, theorem_3_3
from penchant_papers.notsawo2025.recoveries import (
    SPARSE,
    LowRankRecovery,
    log_steps,
    reached,
    recoverable,
    recovery,
)
from recoveries_by_hand import descend, judged

TINY = {"samples": 6, "dimension": 9, "few": 1, "seed": 1}
MATRIX = {"samples": 17, "dimension": 5, "few": 1, "seed": 3}


@pytest.mark.parametrize("id", ["N-T33", "N-T35"])
@pytest.mark.parametrize("name", ["tau", "scaled"])
def test_a_slow_phase_that_is_a_tenth_too_long_is_caught(data_of, id, name):
    wrong = [dataset.assign({name: 1.1 * dataset[name]}) for dataset in data_of(id)]
    assert judged(id, wrong) == "fails"


@pytest.mark.parametrize("id", ["N-T33", "N-T35"])
def test_labels_without_noise_are_caught(data_of, id):
    data = list(data_of(id))
    clean = data[-2].to_truth.isel(noise=0)
    data[-2] = data[-2].assign(to_truth=data[-2].to_truth * 0 + clean)
    assert judged(id, data) in ("fails", "inconclusive")


@pytest.mark.parametrize("id", ["N-T33", "N-T35"])
def test_an_error_that_is_proportional_to_beta_at_small_beta_only_is_caught(data_of, id):
    dataset, *others = data_of(id)
    strong = dataset.beta == dataset.beta.max()
    wrong = dataset.assign(to_truth=dataset.to_truth.where(~strong, 3 * dataset.to_truth))
    assert judged(id, [wrong, *others]) == "fails"


def test_iterates_that_converge_to_the_truth_are_caught(data_of):
    data = [d.assign(to_point=d.to_truth, above_point=d.above_truth) for d in data_of("N-T33")]
    assert judged("N-T33", data) == "fails"
    data = [d.assign(above_point=d.above_truth) for d in data_of("N-norm")]
    assert judged("N-norm", data) == "fails"


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_exponent_of_the_shrinkage_needs_a_truth_of_least_norm(seed):
    """A truth with another interpolator of less norm is off by far; drawn ones are exact."""

    def power(case):
        norm = case.norms(case.truth[None])[0]
        left = [norm - case.norms(case.penalized(beta)[None])[0] for beta in (1e-3, 1e-4)]
        return math.log10(abs(left[0] / left[1]))

    few = {"samples": 30, "dimension": 100, "few": 15}
    assert abs(power(recovery("sparse", seed=seed, **few)) - 1) > 0.3
    assert power(recoverable(seed=seed, **SPARSE)[0]) == pytest.approx(1, abs=0.05)


def test_a_cell_against_a_loop_by_hand():
    given = {"level": 0.01, "relative": False}
    found = delays.cell(1e-3, 0.1, kind="sparse", noise=1e-8, **TINY, **given)
    case, _ = recoverable("sparse", noise=1e-8, **TINY)
    last = math.ceil(1.5 * case.path.time / 1e-4 + 3000)
    points = descend(case, 0.1, 1e-3, 1e-6, last, "l1")
    left, norms = np.abs(points - case.truth).sum(axis=1), np.abs(points).sum(axis=1)
    t2 = int(np.argmax(np.linalg.norm(points - case.truth, axis=1) <= 0.01))
    assert found["t2"] == pytest.approx(t2, rel=0.02)
    assert found["to_truth"] == pytest.approx(np.mean(left[-delays.LAST :]), rel=1e-6)
    above = np.mean(norms[-delays.LAST :]) - np.abs(case.truth).sum()
    assert found["above_truth"] == pytest.approx(above, rel=1e-6)
    hat = np.linalg.lstsq(case.X, case.y, rcond=None)[0]
    assert found["gap"] == pytest.approx(np.abs(hat - case.truth).max(), rel=1e-9)
    assert np.mean(left[-delays.LAST :]) < 0.5 * left[t2 // 2]  # the control: not converged before


def test_noise_leaves_the_error_of_the_interpolator_of_least_l1_norm(data_of):
    """Second route: a solver of that problem, without descent and without a slow phase."""
    _, noise, _ = data_of("N-T33")
    weakest = noise.isel(beta=-1, seed=0, noise=slice(1, None))
    assert weakest.to_truth.values == pytest.approx(weakest.noise_error.values, rel=0.05)
    ratio = float(weakest.noise_error[1] / weakest.noise_error[0])
    assert ratio == pytest.approx(math.sqrt(10), rel=1e-2)
    assert (np.isnan(weakest.t2) == (weakest.last_error > 0.01)).all()
    case, _ = recoverable(seed=int(weakest.seed), noise=1e-4, **SPARSE)
    np.testing.assert_allclose(case.path.end, case.least, atol=1e-9)


# ---- the minimiser of g + beta h ----


def test_the_lasso_point_against_a_general_solver():
    case, beta = recovery("sparse", noise=1e-8, **TINY), 0.02

    def objective(z):
        r = case.X @ (z[:9] - z[9:]) - case.y
        pull = case.X.T @ r
        return 0.5 * r @ r + beta * z.sum(), np.concatenate([pull, -pull]) + beta

    z = minimize(
        objective,
        np.full(18, 0.1),
        jac=True,
        bounds=[(0, None)] * 18,
        method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-12, "maxiter": 5000},
    ).x
    found = case.penalized(beta)
    assert found == pytest.approx(z[:9] - z[9:], abs=1e-6)
    assert np.abs(case.penalized(2 * beta) - found).max() > 1e-3  # the control


@pytest.mark.parametrize("beta", [1e-6, 1e-4, 1e-1])
def test_the_lasso_point_is_optimal_at_every_strength(beta):
    case = recovery("sparse", seed=0, noise=1e-8)
    a = case.penalized(beta)
    pull = case.X.T @ (case.X @ a - case.y) / beta
    assert np.abs(pull).max() < 1 + 1e-4
    assert -pull[a != 0] == pytest.approx(np.sign(a[a != 0]), abs=1e-4)
    if a.any():  # the control: the point of another strength
        other = case.X.T @ (case.X @ case.penalized(beta / 2) - case.y) / beta
        assert np.abs(other).max() < 0.6


@pytest.mark.parametrize("beta", [1e-3, 1e-1])
def test_the_penalized_matrix_is_certified_by_its_gradient(beta):
    case = recovery("completion", **MATRIX)

    def gap(A, strength):
        """How far -gradient/strength is from a subgradient of the nuclear norm at A."""
        pull = (case.y - case.X @ A) @ case.X / strength
        return np.linalg.norm(pull.reshape(5, 5), 2) - 1, pull @ A / case.norms(A[None])[0] - 1

    A = case.penalized(beta)
    assert gap(A, beta) == pytest.approx((0, 0), abs=1e-6)
    assert min(gap(A, 1.05 * beta)) < -0.04  # the control
    assert abs(gap(case.least, beta)[1]) > 0.5


# ---- the slow phase of a matrix ----


def two_by_two(a, b, c):
    """[[a, b], [c, x]] with x unknown and bc/a in truth."""
    truth = np.array([[a, b], [c, b * c / a]])
    entries = np.array([[0, 0], [0, 1], [1, 0]])
    return LowRankRecovery(Completion((2, 2), entries, truth.ravel()[:3], truth))


@pytest.mark.parametrize("a", [2.0, 1.1, 0.5])
def test_the_certificate_of_a_two_by_two_matrix_is_known_in_closed_form(a):
    """u u^T - (1/a^2) w w^T, u and w along (a, 1) and (1, -a), vanishes at the unknown corner."""
    assert two_by_two(a, 1.0, 1.0).certificate == pytest.approx(a**-2)
    assert two_by_two(a, 1.0, 1.0).suitable == (a > 1.05)


def test_a_matrix_that_its_data_do_not_determine_has_no_certificate():
    """Nothing is known of the last row: U V^T is not in the row space of X on the tangent space."""
    truth = np.outer([1.0, 2.0, 3.0], [1.0, 1.0, 1.0])
    entries = np.array([[i, j] for i in (0, 1) for j in range(3)])
    case = LowRankRecovery(Completion((3, 3), entries, truth.ravel()[:6], truth))
    assert case.certificate == math.inf


def test_strengths_and_errors_of_matrices_have_the_unit_of_the_truth():
    """Ten times the matrix with ten times beta takes the same steps."""
    small, large = (two_by_two(size * 2.0, size * 1.0, size * 1.0) for size in (1.0, 10.0))
    assert large.unit == pytest.approx(10 * small.unit)
    ends = [case.run(0.5, 0.01 * case.unit, [200], 0.0).predictor[-1] for case in (small, large)]
    np.testing.assert_allclose(ends[1], 10 * ends[0], rtol=1e-9)


@pytest.mark.parametrize("numbers", [(2.0, 1.0, 1.0), (1.5, 0.5, 2.0), (1.1, 1.0, 1.0)])
def test_the_slow_phase_of_a_two_by_two_matrix_is_known_in_closed_form(numbers):
    case = two_by_two(*numbers)
    x, error = case.truth[-1], 0.1 * np.linalg.norm(case.truth)
    exact = theorem_3_3.corner(*numbers, x - error)
    assert case.path.reaches(case.truth, error) == pytest.approx(exact, rel=2e-3)
    assert abs(exact / abs(x) - 1) > 0.01  # |A_hat - A*|_op = |x| is another number
    slow = slow_flow(case.X, case.memorized().reshape(2, 2), learning_rate=1e-4)
    assert slow.reaches(case.truth, error) == pytest.approx(exact, abs=5e-4)


def test_the_closed_form_is_the_integral_of_one_over_the_speed():
    def slowness(x):
        u, _, v = np.linalg.svd(np.array([[1.5, 0.5], [2.0, x]]))
        return -1 / (u @ v)[1, 1]

    assert theorem_3_3.corner(1.5, 0.5, 2.0, 0.6) == pytest.approx(quad(slowness, 0, 0.6)[0])


def test_the_delay_has_no_constant_in_the_operator_norm():
    ratios = [theorem_3_3.corner(1 + e, 1.0, 1.0, 1 / (1 + e)) * (1 + e) for e in (1e-3, 1e-9)]
    assert ratios[1] - ratios[0] == pytest.approx(2 * math.log(1e6), rel=0.01)


def test_a_slow_phase_that_ends_elsewhere_never_reaches_the_truth():
    case = two_by_two(1.0, 1.0, 2.0)  # |x| > |a|: the least nuclear norm is not at rank 1
    assert np.linalg.norm(case.least - case.truth) > 0.01
    assert case.path.reaches(case.truth, 0.01) == math.inf


def test_the_slow_phase_ends_in_the_fit_of_least_nuclear_norm():
    ends = []
    for seed in (0, 2):  # one where that is the truth, and one where it is not
        case = recovery("completion", samples=16 + 4 * seed, dimension=6, few=1, seed=seed)
        assert case.X @ case.path.end == pytest.approx(case.y, abs=1e-9)
        begin, end, least = case.norms(np.array([case.path.points[0], case.path.end, case.least]))
        assert least == pytest.approx(end, rel=5e-3)
        assert begin > 1.05 * end
        ends.append(np.linalg.norm(case.path.end - case.truth))
    assert ends[0] > 0.5 > 0.02 > ends[1]


# ---- times ----


def test_a_level_is_reached_in_logarithms():
    t = np.array([0.0, 10.0, 20.0])
    assert reached(t, np.exp(-t), np.exp(-13.0)) == pytest.approx(13.0)
    assert np.isnan(reached(t, np.exp(-t), 1e-20))


def test_recorded_steps_are_whole_increasing_and_reach_the_end():
    steps = log_steps(2000, 10)
    assert (steps[0], steps[-1]) == (1, 2000)
    assert (steps == np.round(steps)).all()
    assert (np.diff(steps) > 0).all()
