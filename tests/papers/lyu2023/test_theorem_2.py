"""Theorem 2 of L: its status, theories that its check refutes, and the KKT residual by hand."""

import math

import numpy as np
import pytest

import tacit
from tacit.models.diagonal import DiagonalNet
from tacit.papers.lyu2023 import runs, theorem_2
from tacit.problems.classification import Classification


@pytest.fixture
def data(data_of):
    return data_of("L-T2")


def test_the_theorem_holds(verdict_of):
    assert verdict_of("L-T2").status == "holds"


def test_the_kernel_limit_in_place_of_the_rich_one_is_refuted(data, refuted):
    wrong = data[0].assign(to_rich=data[0].to_kernel)
    assert refuted("L-T2", (wrong, *data[1:]), "angle to the l1")


def with_cells(dataset, **arguments):
    """The dataset with its cells of the exact flow computed again."""
    found = [theorem_2.cell(0, a, **arguments) for a in dataset.log_alpha.values]
    return dataset.assign(
        {name: (("problem", "log_alpha"), [[row[name] for row in found]]) for name in found[0]}
    )


def test_the_time_before_the_jump_is_refuted(data, refuted):
    assert refuted("L-T2", (with_cells(data[0], z=0.5), *data[1:]), "angle to the l1")


@pytest.mark.parametrize(
    "wrong",
    [
        lambda beta, a, z: np.concatenate([np.maximum(beta, 0), np.maximum(-beta, 0)]),
        lambda beta, a, z, right=theorem_2.parameters_of: right(beta, 0.0, -1.0),
    ],
    ids=["no root", "a start that never decays"],
)
def test_the_kkt_residual_of_other_parameters_is_refuted(monkeypatch, data, refuted, wrong):
    monkeypatch.setattr(theorem_2, "parameters_of", wrong)
    changed = with_cells(data[0], z=1.5), *data[1:]
    assert refuted("L-T2", changed, "exponent of the KKT residual")


@pytest.mark.parametrize(("place", "words"), [(1, "trained parameters"), (2, "quadratic units")])
def test_parameters_trained_for_too_short_are_refuted(data, refuted, place, words):
    early = data[place].isel(moment=[theorem_2.BEFORE, theorem_2.BEFORE])
    assert refuted("L-T2", (*data[:place], early, *data[place + 1 :]), words)


def test_the_kkt_residual_of_quadratic_units_by_hand():
    """theta = sum nu_n grad(y_n f_n) by least squares leaves less, and a start much more."""
    problem, net = runs.points(0)[0], runs.network(4.0, 0)
    theta = runs.trained(problem, net, 4.0, 1.5)
    found = theorem_2.kkt_residual(problem, net, theta)
    margins = problem.y * net.predict(theta, problem.X)
    scaled = theta / margins.min() ** (1 / 3)
    slopes = problem.y[:, None] * net.jacobian(scaled, problem.X)
    left = scaled - slopes.T @ np.linalg.lstsq(slopes.T, scaled)[0]
    assert np.linalg.norm(left) / np.linalg.norm(scaled) < found < 0.5
    other = theorem_2.kkt_residual(problem, net, net.start(6) + 0.05 * theta)
    assert other > 1.0


@pytest.mark.parametrize("z", [0.5, 3.0, 5.0])
def test_parameters_follow_from_the_predictor(z):
    problem = runs.data_set(0)
    net = DiagonalNet(2, log_alpha=3.0)
    theta = runs.trained(problem, net, 3.0, z / 3.0)
    beta = net.predictor(theta)
    assert theorem_2.parameters_of(beta, 3.0, z) == pytest.approx(theta, rel=1e-4, abs=1e-6)
    assert theorem_2.parameters_of(beta, 3.0, z + 0.1) != pytest.approx(theta, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("depth", [2, 3, 5])
def test_the_kkt_residual_vanishes_where_one_multiplier_serves_all(depth):
    """Orthogonal rows of one length share their multiplier, so that equal margins are KKT."""
    signs = np.array([1.0, -1.0, 1.0])
    problem = Classification(np.diag([2.0, 2.0, 2.0]), signs, "logistic")
    net, root = DiagonalNet(depth, alpha=1.0), 3 ** (1 / depth)
    theta = root * np.concatenate([signs > 0, signs < 0])
    assert theorem_2.kkt_residual(problem, net, theta) == pytest.approx(0, abs=1e-14)
    assert theorem_2.kkt_residual(problem, net, 1.5 * theta) == pytest.approx(0, abs=1e-14)
    for n in range(3):
        off = np.where(np.arange(6) == n + 3 * (signs[n] < 0), 1.1, 1.0) * theta
        assert theorem_2.kkt_residual(problem, net, off) > 0.01
    assert theorem_2.kkt_residual(problem, net, theta + 0.3) > 0.05
    assert theorem_2.kkt_residual(problem, net, np.roll(theta, 3)) == math.inf


@pytest.mark.parametrize("seed", range(3))
def test_the_kkt_residual_tends_to_zero_at_the_l1_point(seed):
    """With margins c - log(nu_n) the loss pulls with nu: what is left is complementarity, 1/c."""
    problem, net = runs.data_set(seed), DiagonalNet(2, alpha=1.0)
    found = tacit.max_margin(problem.X, problem.y, tacit.L1())
    on, tight = np.abs(found.beta) > 1e-9, found.dual > 1e-9
    nu = found.dual[tight] / found.dual.max()
    shift = np.zeros(8)
    shift[on] = np.linalg.lstsq(problem.signed_rows[np.ix_(tight, on)], -np.log(nu))[0]
    for c in (2000.0, 8000.0):
        beta = c * found.beta + shift
        theta = np.sqrt(np.concatenate([np.maximum(beta, 0), np.maximum(-beta, 0)]))
        left = float(nu @ -np.log(nu) / nu.sum() / c)
        assert theorem_2.kkt_residual(problem, net, theta) == pytest.approx(left, rel=1e-6)
    l2 = 100 * tacit.max_margin(problem.X, problem.y, tacit.L2()).beta
    theta = np.sqrt(np.concatenate([np.maximum(l2, 0), np.maximum(-l2, 0)]))
    assert theorem_2.kkt_residual(problem, net, theta) > 0.1
