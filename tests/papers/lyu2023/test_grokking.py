"""Grokking and misgrokking: verdicts, theories that are refuted, and a general integrator."""

import numpy as np
import pytest
import xarray
from scipy.optimize import linprog, nnls

from papers.lyu2023.by_hand import descend
from penchant.lab import all_claims
from penchant.problems import majority
from penchant_papers.lyu2023 import grokking

IDS = ["L-F1", "L-F2"]
LITTLE = {"samples": 30, "dimension": 60, "norm": 20.0, "rate": 1e-2, "rtol": 1e-8}


@pytest.mark.parametrize(("id", "kind"), [("L-F1", "grok"), ("L-F2", "misgrok")])
def test_the_detector_agrees(data_of, id, kind):
    assert str(grokking.run_of(data_of(id)[0]).kind.values) == kind


@pytest.mark.parametrize("id", IDS)
@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda d: {"accuracy_l2": d.accuracy_l1}, r"minus that of the $\ell_2$ max margin"),
        (lambda d: {"accuracy_l1": d.accuracy_l2}, r"minus that of the $\ell_1$ max margin"),
        (lambda d: {"trajectory_share_l2": d.trajectory_share_l1}, r"$\ell_2$ margin at half"),
        (lambda d: {"trajectory_share_l1": d.trajectory_share_l2}, r"$\ell_1$ margin at the end"),
        (lambda d: {"forecast": d.forecast * 3}, "time predicted"),
    ],
    ids=["l1 first", "l2 last", "l1 margin first", "l2 margin last", "three times later"],
)
def test_a_wrong_theory_is_refuted(data_of, refuted, id, wrong, words):
    dataset = data_of(id)[0]
    assert refuted(id, (dataset.assign(wrong(dataset)),), words)


@pytest.mark.parametrize(
    ("id", "words"), [("L-F1", "test accuracy at the end"), ("L-F2", "fall of the test")]
)
def test_a_test_curve_that_stays_is_refuted(data_of, refuted, id, words):
    dataset = data_of(id)[0]
    still = dataset.trajectory_test_accuracy.isel(time=0) + 0 * dataset.trajectory_test_accuracy
    still = still.transpose(*dataset.trajectory_test_accuracy.dims)
    assert refuted(id, (dataset.assign(trajectory_test_accuracy=still),), words)


@pytest.mark.parametrize("id", IDS)
def test_a_run_that_is_not_trained_decides_nothing(data_of, judged, id):
    dataset = data_of(id)[0]
    wrong = dataset.assign(trajectory_train_accuracy=dataset.trajectory_train_accuracy - 0.1)
    assert judged(id, (wrong,)).status == "inconclusive"


@pytest.mark.parametrize("id", IDS)
def test_the_parameters_shrink_first_and_turn_later(data_of, id):
    run = grokking.run_of(data_of(id)[0])
    half, last = float(run.forecast) / 2, float(run.t[-1])
    assert grokking.at(run, "turn", half) < 10
    assert grokking.at(run, "kernel_distance", half) < 1e-3
    assert grokking.at(run, "turn", last) > 75
    assert float(max(run.share_l1.max(), run.share_l2.max())) <= 1 + 1e-9
    low, high = (grokking.at(run, "turn", float(run[f"forecast_{end}"])) for end in ("low", "high"))
    assert low < 45 < high  # what is predicted is where start and displacement meet


def little_run():
    given = {**grokking.grok.at().arguments, **LITTLE}
    found = grokking.cell(seed=0, **given)
    curves = {name: ("time", found[f"trajectory_{name}"]) for name in grokking.CURVES}
    return xarray.Dataset(curves)


def test_the_run_against_a_general_integrator():
    """The first experiment at a size that a general integrator can follow."""
    little = little_run()
    problem = majority(LITTLE["samples"], LITTLE["dimension"])
    Z, K0 = problem.signed_rows, problem.X @ problem.X.T
    picks = np.searchsorted(little.t.values, [0.1, 10.0, 250.0, 600.0, 1199.0])
    thetas = descend(Z, LITTLE["norm"], LITTLE["rate"], little.t.values[picks])
    start = np.ones(2 * LITTLE["dimension"])
    for pick, theta in zip(picks, thetas, strict=True):
        row, pair = little.isel(time=pick), theta.reshape(2, -1)
        beta = pair[0] ** 2 - pair[1] ** 2
        cosine = theta @ start / np.linalg.norm(theta) / np.linalg.norm(start)
        K = (problem.X * (pair**2).sum(axis=0)) @ problem.X.T
        apart = 1 - np.sum(K * K0) / np.linalg.norm(K) / np.linalg.norm(K0)
        margins = Z @ beta
        assert float(row.parameter_norm) == pytest.approx(np.linalg.norm(theta), rel=1e-5)
        assert float(row.turn) == pytest.approx(np.degrees(np.arccos(cosine)), rel=1e-4)
        assert float(row.kernel_distance) == pytest.approx(apart, rel=1e-3, abs=1e-9)
        assert float(row.train_accuracy) == np.mean(margins > 0)
        assert float(row.test_accuracy) == pytest.approx(
            problem.population.accuracy(beta), abs=1e-5
        )
        l1, l2 = largest_margins(Z)
        assert float(row.share_l1) == pytest.approx(margins.min() / np.abs(beta).sum() / l1, 1e-4)
        assert float(row.share_l2) == pytest.approx(margins.min() / np.linalg.norm(beta) / l2, 1e-4)
    other = descend(Z, LITTLE["norm"], 0.9 * LITTLE["rate"], little.t.values[picks])[-2]
    miss = np.linalg.norm(other) / float(little.parameter_norm[picks[-2]])
    assert abs(miss - 1) > 1e-3  # the control: another decay


def largest_margins(Z):
    """The largest margins at unit l1 and l2 norm: a linear program, and the dual by nnls."""
    ones = np.ones(2 * Z.shape[1])
    least_l1 = linprog(ones, A_ub=-np.hstack([Z, -Z]), b_ub=-np.ones(len(Z))).fun
    root = np.linalg.cholesky(Z @ Z.T)
    weights = nnls(root.T, np.linalg.solve(root, np.ones(len(Z))))[0]
    return 1 / least_l1, 1 / np.linalg.norm(weights @ Z)


@pytest.mark.parametrize("id", IDS)
def test_the_rows_share_their_time_and_every_row_shows_the_predicted_time(data_of, id):
    data = data_of(id)
    picture, run = all_claims()[id].picture(data), grokking.run_of(data[0])
    assert len({axes.get_xlim() for axes in picture.axes}) == 1
    for axes in picture.axes:
        places = [float(line.get_xdata()[0]) for line in axes.lines if len(line.get_xdata()) == 2]
        assert float(run.forecast) in places
        assert float(run.theory_norm) in places


def test_the_full_size_has_the_printed_numbers():
    one, two = (all_claims()[id].study.at("printed") for id in IDS)
    assert (one.arguments["samples"], one.arguments["dimension"]) == (256, 100_000)
    assert (two.arguments["samples"], two.arguments["gamma"]) == (32, 25.0)
    assert one.axes[0].values == two.axes[0].values == (128.0,)
