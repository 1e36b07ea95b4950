"""The multiplication table under decay: figure L-F3a, claim L-table, and what would refute it."""

import dataclasses
import json
import math

import numpy as np
import pytest

import tacit
from tacit import Time, store, train
from tacit.claims.lyu import table
from tacit.figures import lyu_f3_table  # noqa: F401 registers L-F3a
from tacit.figures.registry import draw, figures, make, save
from tacit.figures.table_completion import MeanLoss, limits, seen_pairs, tangent_kernel
from tacit.models.factorization import DifferenceFactorization
from tacit.problems.matrices import multiplication_table
from tacit.records import NumericalError
from tacit.regularizers.spectral import Frobenius
from tacit.training.exact import parameter
from tacit.training.exact.parameter import ParameterFlow

REFUTED = ("fails", "inconclusive")
SMALL = {"dimension": 12, "fraction": 0.4, "seed": 1, "decays": [1e-4, 1e-6], "records": 80}


@pytest.fixture(scope="module")
def made():
    calls = []
    dataset = make("L-F3a", SMALL, progress=lambda *call: calls.append(call))
    return dataset, calls


def decayed(problem, alpha, rate, t):
    """A run to time t, in the units of the sum of squares."""
    flow = ParameterFlow(rtol=1e-9, weight_decay=rate)
    return train(DifferenceFactorization(alpha=alpha), problem, flow, stop=Time(t))


# units, data and limits


def test_descent_on_the_mean_reaches_the_same_matrix():
    problem, decay, step, alpha = (
        multiplication_table(5, fraction=0.5, mirrored=False),
        1e-2,
        1e-3,
        1.0,
    )
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


def test_the_preset_s_seed_tells_the_table_and_others_need_not():
    quick = figures()["L-F3a"].presets["quick"]
    share = seen_pairs(quick["fraction"])
    told = multiplication_table(quick["dimension"], fraction=share, seed=quick["seed"])
    assert told.test_error(limits(told).nuclear) < 1e-10
    untold = multiplication_table(quick["dimension"], fraction=share, seed=9)
    found = limits(untold)
    assert untold.test_error(found.nuclear) > 1e-3
    assert found.value < np.linalg.norm(untold.truth, "nuc") - 1e-4
    assert found.certificate < 1e-8


# the figure


def test_before_the_transition_the_kernel_and_after_it_the_nuclear_norm(made):
    dataset, calls = made
    assert calls == [(1, 2), (2, 2)]
    for number in range(2):
        run = dataset.isel(decay=number)
        half = int(np.argmin(abs(run.t.values - float(run.forecast) / 4)))
        assert run.from_kernel[half] < 2e-3
        assert run.from_nuclear[half] > 0.5
        assert abs(run.norm_nuclear[-1] - 1) < 0.01
        assert run.from_kernel[-1] > 0.5
        assert float(run.forecast_low) < float(run.jump) < float(run.forecast_high)
        assert run.t1 < 1e-3 * run.t2
    assert dataset.test_error[1, -1] < 1e-4
    assert dataset.test_error[:, 0].min() > 0.3


def test_the_last_error_is_proportional_to_the_decay(made):
    dataset, _ = made
    ratio = float(dataset.test_error[0, -1] / dataset.test_error[1, -1])
    assert ratio == pytest.approx(100, rel=0.05)


def test_the_times_are_those_of_the_mean_loss(made):
    dataset, _ = made
    np.testing.assert_allclose(dataset.t[:, -1] * dataset.decay, 25, rtol=1e-9)
    np.testing.assert_allclose(dataset.theory, math.log(10) / dataset.decay, rtol=1e-12)
    np.testing.assert_allclose(dataset.steps, dataset.t / 0.1)


def test_every_variable_says_what_it_is(made):
    dataset, _ = made
    for name, variable in dataset.variables.items():
        assert variable.attrs.get("long_name"), name
        assert variable.attrs.get("units"), name
    assert "18 of 20 seeds" in dataset.attrs["constructed"]


def test_the_drawing_has_all_rows_curves_and_forecasts(made, tmp_path):
    dataset, _ = made
    save("L-F3a", dataset, tmp_path, ["png"])
    back = store.load(tmp_path / "L-F3a.nc")
    assert back.equals(dataset)
    picture = draw("L-F3a", back)
    assert len(picture.axes) == 6
    for axes in picture.axes:
        assert axes.get_ylabel()
        for time in dataset.forecast.values:
            assert sum(np.allclose(line.get_xdata(), time) for line in axes.lines
                       if len(line.get_xdata())) == 1  # fmt: skip
    curves = {line.get_label(): line for line in picture.axes[0].lines}
    run = dataset.isel(decay=1)
    np.testing.assert_array_equal(
        curves[r"test, $\lambda$ = $10^{-6}$"].get_ydata(), run.test_error[run.t > 0]
    )


def test_the_paper_s_numbers_are_the_printed_ones():
    presets = figures()["L-F3a"].presets
    paper = presets["paper"]
    assert paper.keys() == presets["quick"].keys()
    assert (paper["dimension"], paper["fraction"], paper["alpha"]) == (97, 0.05, 10.0)
    assert (paper["step"], paper["decays"][0]) == (0.1, 1e-4)
    assert json.dumps(paper)


def test_a_run_that_fails_is_an_error_with_its_sentence(monkeypatch):
    def few(**settings):
        return ParameterFlow(**settings, max_steps=5)

    monkeypatch.setattr(parameter, "ParameterFlow", few)
    with pytest.raises(NumericalError, match=r"L-F3a, decay 0\.0001: budget"):
        make("L-F3a", SMALL)


# the claim, on one small table


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(table, "cases", lambda size: [table.table(10, 0.6, 1)])
    monkeypatch.setattr(table, "ALPHAS", np.array([10.0, 1000.0]))
    monkeypatch.setattr(table, "untold", lambda size: [table.table(8, 0.4, 5)])
    return monkeypatch


def test_the_claim_holds_on_a_small_table(small):
    assert tacit.verify("L-table").status == "holds"


def test_another_norm_is_refuted(small):
    small.setattr(table, "Nuclear", Frobenius)
    assert tacit.verify("L-table").status in REFUTED


def test_a_decay_of_another_rate_is_refuted(small):
    slow = lambda model, problem, method, **rest: train(  # noqa: E731
        model, problem, dataclasses.replace(method, weight_decay=0.1 * method.weight_decay), **rest
    )
    small.setattr(table, "train", slow)
    assert tacit.verify("L-table").status in REFUTED


def test_a_transition_at_another_time_is_refuted(small):
    real = table.forecast

    class Late:
        def __init__(self, *given):
            self.transition = 2.5 * real(*given).transition

    small.setattr(table, "forecast", Late)
    assert tacit.verify("L-table").status in REFUTED


def test_a_table_that_is_not_told_decides_nothing(small):
    small.setattr(table, "cases", lambda size: [table.table(8, 0.4, 5)])
    verdict = tacit.verify("L-table")
    assert verdict.status == "inconclusive"
    assert "what was seen tells the table" in verdict.reason
