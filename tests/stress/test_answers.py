"""The judges of odd calls see answers that are wrong: every kind, poisoned in every part."""

from __future__ import annotations

import dataclasses
import types

import numpy as np
import pytest

import answers
import odd_calls
import outcomes
import penchant

RIGHT = "solved and right"
GENERATOR = np.random.default_rng(11)
X = GENERATOR.normal(size=(3, 5))
Y = X @ np.array([1.0, 0.0, -2.0, 0.0, 0.5])
LABELS = np.sign(Y)
SIZES = {"dual": 1e-2}  # of the poison: a duality gap is quadratic in the dual


def with_error(answer, name, place=-1):
    """The same answer with one number off."""
    numbers = np.array(getattr(answer, name), dtype=float)
    flat = numbers.reshape(len(numbers), -1)[place] if numbers.ndim > 1 else numbers
    flat[np.abs(flat).argmax()] *= 1 + SIZES.get(name, 1e-4)
    if dataclasses.is_dataclass(answer):
        return dataclasses.replace(answer, **{name: numbers})
    return types.SimpleNamespace(**{**vars(answer), name: numbers})


CASES = {
    "saddles": (
        lambda: penchant.solvers.saddles(X, Y),
        lambda a: answers.of_saddles(X, Y, a),
        ["tau", "points"],
    ),
    "slow_flow": (
        lambda: penchant.solvers.slow_flow(X, np.arange(1.0, 6.0)),
        lambda a: answers.of_slow_flow(X, np.arange(1.0, 6.0), a),
        ["tau", "points"],
    ),
    "max_margin_path": (
        lambda: penchant.solvers.max_margin_path(X, LABELS, mus=[1.0, 1e-3]),
        lambda a: answers.of_margins(X, LABELS, 2, np.array([1.0, 1e-3]), a),
        ["beta", "dual"],
    ),
    "ratchet_path": (
        lambda: penchant.solvers.ratchet_path(X, LABELS, mus=[1.0, 1e-3]),
        lambda a: answers.of_ratchet(X, LABELS, 2, a),
        ["beta", "dual"],
    ),
    "kernel_machine of labels": (
        lambda: penchant.measures.kernel_machine(
            penchant.DiagonalNet(alpha=0.5), penchant.Classification(X, LABELS)
        ),
        lambda a: answers.of_kernel_svm(X, LABELS, a),
        ["predictor", "dual"],
    ),
    "kernel_machine of targets": (
        lambda: penchant.measures.kernel_machine(
            penchant.DiagonalNet(alpha=0.5), penchant.Regression(X, Y)
        ),
        lambda a: answers.of_kernel_interpolant(X, Y, a),
        ["predictor"],
    ),
    "max_margin Linf": (
        lambda: penchant.max_margin(X, LABELS, penchant.regularizers.Linf()),
        lambda a: answers.of_norm_margin(X, LABELS, penchant.regularizers.Linf(), a),
        ["beta", "dual"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_judge_sees_a_number_that_is_off(name):
    run, judge, parts = CASES[name]
    answer = run()
    assert judge(answer)[0] == RIGHT
    for part in parts:
        assert judge(with_error(answer, part))[0] == "wrong", part


def test_the_judges_of_walks_see_a_corner_that_is_missing():
    answer = penchant.solvers.saddles(X, Y)
    shorter = dataclasses.replace(answer, tau=answer.tau[:-1], points=answer.points[:-1])
    assert answers.of_saddles(X, Y, shorter)[0] == "wrong"
    without = dataclasses.replace(
        answer, tau=np.delete(answer.tau, 1), points=np.delete(answer.points, 1, axis=0)
    )
    assert answers.of_saddles(X, Y, without)[0] == "wrong"


@pytest.mark.parametrize(
    "norm", [penchant.regularizers.Nuclear((2, 2)), penchant.regularizers.Spectral((2, 2))], ids=str
)
def test_the_judge_of_matrix_norms_sees_the_wrong_norm(norm):
    rows, labels = X[:, :4], np.sign(X[:, :4] @ np.array([1.0, 0.3, -0.5, 2.0]))
    answer = penchant.max_margin(rows, labels, norm)
    assert answers.of_norm_margin(rows, labels, norm, answer)[0] == RIGHT
    other = penchant.max_margin(rows, labels, penchant.L2())
    assert answers.of_norm_margin(rows, labels, norm, other)[0] == "wrong"


def test_the_judge_of_greedy_ranks_sees_a_point_that_is_not_critical():
    A = GENERATOR.normal(size=(3, 2, 2))
    problem = penchant.problems.Sensing(A, A.reshape(3, 4) @ np.array([1.0, 0.5, -0.5, 2.0]))
    answer = penchant.solvers.saddles(problem)
    assert answers.of_greedy_rank(problem, None, answer)[0] == RIGHT
    for place in range(1, len(answer.points)):
        poisoned = with_error(answer, "points", place)
        assert answers.of_greedy_rank(problem, None, poisoned)[0] == "wrong"


def test_the_judge_of_local_points_sees_a_point_that_is_none():
    points = penchant.solvers.stationary_points(X, LABELS, penchant.regularizers.Lp(0.5), starts=4)
    assert answers.of_local_points(X, LABELS, 0.5, points)[0] == RIGHT
    moved = (with_error(points[0], "beta"), *points[1:])
    assert answers.of_local_points(X, LABELS, 0.5, moved)[0] == "wrong"


def test_the_judge_of_flows_sees_another_scale():
    beta = penchant.interpolate(X, Y, penchant.Q(2, alpha=0.2)).beta
    outcome = penchant.Outcome(penchant.records.Kind.SOLVED, "fitted")
    assert answers.of_flow(X, Y, penchant.Q(2, alpha=0.2), outcome, beta)[0] == RIGHT
    assert answers.of_flow(X, Y, penchant.Q(2, alpha=0.21), outcome, beta)[0] == "wrong"


def test_separation_of_what_cannot_be_separated_is_wrong():
    answer = penchant.solvers.separation(X, LABELS)
    assert answers.of_separation(X, LABELS, answer)[0] == RIGHT
    turned = dataclasses.replace(answer, direction=-answer.direction)
    assert answers.of_separation(X, LABELS, turned)[0] == "wrong"


def test_a_call_that_does_not_end_is_hung():
    def forever():
        while True:
            pass

    call = odd_calls.Call("saddles", "none", forever, lambda answer: (RIGHT, ""))
    before, outcomes.SECONDS = outcomes.SECONDS, 0.05
    try:
        assert outcomes.outcome(call)[0] == "hung"
    finally:
        outcomes.SECONDS = before


def test_a_failure_without_a_sentence_is_a_crash():
    def refuse():
        raise ValueError("array must not contain infs or NaNs")

    call = odd_calls.Call("saddles", "none", refuse, lambda answer: (RIGHT, ""))
    assert outcomes.outcome(call)[0] == "crashed"


def test_the_judge_of_kernel_machines_takes_data_that_fit_to_rounding():
    """Least squares of the rounding of the first target move the first weight by 1.7e-4."""
    small, large = 5.0731945491217779e-08, 1.1490172164699747e06
    X = np.array([[small, 0.0, large], [small, 0.0, 0.0], [0.0, 0.0, large]])
    y = np.array([-0.5478941042280561, -4.838175343629625e-14, -0.5478941042280077])
    answer = penchant.measures.kernel_machine(
        penchant.DiagonalNet(alpha=0.5), penchant.Regression(X, y)
    )
    assert answers.of_kernel_interpolant(X, y, answer)[0] == RIGHT
    turned = np.array([0.0, 1e-4 * np.abs(answer.predictor).max(), 0.0])
    longer = answer.predictor + turned
    longer = dataclasses.replace(answer, predictor=longer)
    assert answers.of_kernel_interpolant(X, y, longer)[0] == "wrong"
    missed = answer.predictor * [1 + 1e-4, 1.0, 1.0]
    missed = dataclasses.replace(answer, predictor=missed)
    assert answers.of_kernel_interpolant(X, y, missed)[0] == "wrong"


def test_the_judge_of_saddles_knows_no_rounding_of_a_row_of_zeros():
    """The weight of the second column is zero by a tie with the fourth, to 4e-31 in float64."""
    X = np.array([[0.0, 1.0, 1.0, 1.0], [1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 0.0, 1.0]])
    y = np.array([-1.0, 0.0, -0.5])
    answer = penchant.solvers.saddles(X, y, depth=5)
    assert answers.of_saddles(X, y, answer)[0] == RIGHT
    off = dataclasses.replace(answer, points=answer.points + 1e-6 * np.eye(4)[1])
    assert answers.of_saddles(X, y, off)[0] == "wrong"
