"""Multiplication tables under decay: verdicts, what would refute them, and second routes."""

import math

import numpy as np
import pytest

import penchant
from penchant import NumericalError, ParameterFlow
from penchant.lab import all_claims
from penchant.models import DifferenceFactorization
from penchant.problems import multiplication_table
from penchant_papers.lyu2023 import multiplication_table as theorems
from penchant_papers.lyu2023 import table_completion
from penchant_papers.lyu2023.multiplication_table import table
from penchant_papers.lyu2023.table_completion import MeanLoss, runs_of, seen_pairs, tangent_kernel

SMALL = {"dimension": 10, "fraction": 0.6, "rate": 1e-5, "determined": True}  # the tiny size


# units, data and limits


def decayed(problem, alpha, rate, t):
    """A run to time t, in the units of the sum of squares."""
    flow = ParameterFlow(rtol=1e-9, weight_decay=rate)
    return penchant.train(
        DifferenceFactorization(alpha=alpha), problem, flow, stop=penchant.Time(t)
    )


def test_descent_on_the_mean_reaches_the_same_matrix():
    problem = multiplication_table(5, fraction=0.5, mirrored=False)
    decay, step, alpha = 1e-2, 1e-3, 1.0
    mean = MeanLoss(problem.samples, decay)
    U = V = alpha * np.eye(5)
    i, j = problem.entries.T
    for _ in range(round(4 / step)):
        G = np.zeros((5, 5))
        G[i, j] = 2 * ((U @ U.T - V @ V.T)[i, j] - problem.y) / len(problem.y)
        U, V = (U - step * ((G + G.T) @ U + decay * U), V + step * ((G + G.T) @ V - decay * V))
    path = decayed(problem, alpha, mean.rate, 4 / mean.samples)
    assert mean.time(path.t) == pytest.approx(4.0, rel=1e-12)
    np.testing.assert_allclose(U @ U.T - V @ V.T, path.predictor, atol=5e-4)
    # without the conversion it is another matrix
    wrong = decayed(problem, alpha, decay, 4.0).predictor
    assert np.abs(wrong - path.predictor).max() > 5e-3


def test_a_share_of_entries_shows_this_share_of_pairs():
    rng, shares = np.random.default_rng(0), []
    for _ in range(300):
        seen = np.zeros(900, dtype=bool)
        seen[rng.choice(900, 135, replace=False)] = True
        seen = seen.reshape(30, 30)
        shares.append((seen | seen.T)[np.triu_indices(30, 1)].mean())
    assert np.mean(shares) == pytest.approx(seen_pairs(0.15), abs=3e-3)


@pytest.mark.parametrize("share", [0.3, 3.0])
def test_the_kernel_from_the_matrix_is_that_of_the_parameters(share):
    problem, alpha, rate = multiplication_table(6, fraction=0.6, seed=2, mirrored=False), 2.0, 1e-2
    path = decayed(problem, alpha, rate, share / rate)
    J = DifferenceFactorization(alpha=alpha).jacobian(path.parameters, problem.design)
    product = alpha**2 * math.exp(-2 * share)
    found = tangent_kernel(problem, path.predictor, product)
    np.testing.assert_allclose(found, J @ J.T, rtol=1e-5, atol=1e-5 * np.abs(J @ J.T).max())
    assert np.abs(tangent_kernel(problem, path.predictor, 2 * product) - J @ J.T).max() > 0.01


@pytest.mark.slow  # at the size of the figure
def test_the_seed_of_the_figure_determines_the_table_and_others_need_not():
    study = all_claims()["L-F3a"].study.at("printed")
    dimension, share = study.arguments["dimension"], seen_pairs(study.arguments["fraction"])
    problem, limits = table(dimension, share, study.seed_values[0])
    assert problem.test_error(limits.nuclear) < 1e-10
    problem, limits = table(dimension, share, 9)
    assert problem.test_error(limits.nuclear) > 1e-3
    assert limits.value < np.linalg.norm(problem.truth, "nuc") - 1e-4
    assert limits.certificate < 1e-8


# the theorems on one small table


def with_cells(dataset):
    """The runs of the small table computed again."""
    found = [theorems.cell(alpha, 0, **SMALL) for alpha in dataset.alpha.values]
    return dataset.assign(
        {name: (("alpha", "seed"), [[row[name]] for row in found]) for name in found[0]}
    )


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda d: {"from_kernel": d.from_nuclear}, "kernel interpolant"),
        (lambda d: {"last_excess": d.kernel_excess}, "nuclear norm over the least"),
        (lambda d: {"last_error": d.kernel_error}, r"test error at $\alpha"),
        (lambda d: {"kkt": d.early_kkt}, "KKT residual"),
        (lambda d: {"second": 0 * d.second}, r"exponent in $\alpha$ ($c = 1$)"),
    ],
    ids=["nuclear first", "kernel last", "its error", "no KKT point", "no certificate"],
)
def test_a_wrong_theory_is_refuted(data_of, refuted, wrong, words):
    runs, other = data_of("L-table")
    assert refuted("L-table", (runs.assign(wrong(runs)), other), words)


def test_a_decay_of_another_rate_is_refuted(faster, data_of, refuted):
    runs, other = data_of("L-table")
    faster(theorems, 0.1)
    assert refuted("L-table", (with_cells(runs), other), "nuclear norm over the least")


def test_a_transition_at_another_time_is_refuted(monkeypatch, data_of, refuted):
    real = theorems.forecast

    class Late:
        def __init__(self, *given):
            self.transition = 2.5 * real(*given).transition

    runs, other = data_of("L-table")
    monkeypatch.setattr(theorems, "forecast", Late)
    assert refuted("L-table", (with_cells(runs), other), "kernel interpolant")


def test_a_table_that_is_not_determined_decides_nothing(data_of, judged):
    runs, other = data_of("L-table")
    assert float(other.off_truth.max()) > 1e-3
    verdict = judged("L-table", (runs.assign(off_truth=runs.off_truth + 1e-3), other))
    assert verdict.status == "inconclusive"
    assert "the observed entries determine the table" in verdict.reason


# the figure


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda d: {"trajectory_from_kernel": d.trajectory_from_nuclear}, "kernel interpolant"),
        (lambda d: {"trajectory_norm_nuclear": d.trajectory_norm_nuclear * 1.1}, "nuclear norm"),
        (lambda d: {"trajectory_test_error": d.trajectory_test_error + 0.01}, "test error at"),
        (lambda d: {"forecast": d.theory}, "predicted time"),
        (lambda d: {"t2": 10 * d.t1}, "least number of decades"),
    ],
    ids=["nuclear first", "another norm", "not completed", r"$\log \alpha$", "at once"],
)
def test_a_wrong_figure_is_refuted(data_of, refuted, wrong, words):
    (dataset,) = data_of("L-F3a")
    assert refuted("L-F3a", (dataset.assign(wrong(dataset)),), words)


def test_the_fall_lies_in_the_interval_and_the_times_are_those_of_the_mean_loss(data_of):
    for run in runs_of(data_of("L-F3a")[0]):
        assert float(run.forecast_low) < float(run.jump) < float(run.forecast_high)
        assert float(run.t[-1] * run.decay) == pytest.approx(25, rel=1e-9)
        assert float(run.theory * run.decay) == pytest.approx(math.log(10), rel=1e-12)
        np.testing.assert_allclose(run.steps, run.t / 0.1)


def test_the_picture_has_all_rows_curves_and_forecasts(data_of):
    data = data_of("L-F3a")
    picture, runs = all_claims()["L-F3a"].picture(data), runs_of(data[0])
    assert len(picture.axes) == 6
    for axes in picture.axes:
        places = [line.get_xdata()[0] for line in axes.lines if len(line.get_xdata())]
        for run in runs:
            assert places.count(float(run.forecast)) == 1
    curves = {line.get_label(): line for line in picture.axes[0].lines}
    shown = runs[-1].isel(time=runs[-1].t.values > 0)
    np.testing.assert_array_equal(
        curves[r"test, $\lambda = 10^{-6}$"].get_ydata(), shown.test_error
    )


def test_the_full_size_has_the_printed_numbers():
    study = all_claims()["L-F3a"].study.at("printed")
    given = [study.arguments[name] for name in ("dimension", "fraction", "alpha", "step")]
    assert given == [97, 0.05, 10.0, 0.1]
    assert study.axes[0].values[0] == 1e-4


def test_a_run_that_fails_is_an_error_with_its_sentence(monkeypatch):
    few = lambda **settings: ParameterFlow(**settings, max_steps=5)  # noqa: E731
    monkeypatch.setattr(table_completion, "ParameterFlow", few)
    given = all_claims()["L-F3a"].study.at("tiny").arguments
    with pytest.raises(NumericalError, match=r"budget spent: .* by 5 integrator steps"):
        table_completion.cell(1e-4, 1, **given)
