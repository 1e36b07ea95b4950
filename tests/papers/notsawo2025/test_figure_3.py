"""Figure 3: that wrong curves would be caught, and its measures of a norm after t2."""

import math

import numpy as np
import pytest

from figure_checks import assert_can_be_read
from penchant.lab.evidence.evidence import judge
from penchant_papers.notsawo2025.figures import figure_3
from penchant_papers.notsawo2025.figures.runs import change, generalized, memorized, runs_of
from token_datasets import token_dataset

T1 = 60.0
AFTER = {1e-3: 400.0, 3e-4: 900.0, 0.0: math.inf}  # t2 - t1 by beta


def curves(penalty, beta, rise=0.2, dip=0.9, delays=AFTER, solves=True):
    """An invented run of 6000 steps, whose l2 norm under l1 falls after t2 and then rises."""
    steps = np.unique(np.geomspace(1, 6000, 400).astype(int))
    t2 = T1 + delays[beta]
    test = np.where(steps >= t2, 1.0, np.where(steps < T1, 0.1, 0.6))
    fall = np.where(steps < t2, 1.0, np.maximum(0.6, (t2 / steps) ** 0.5))
    after = np.log(np.maximum(steps / t2, 1)) / math.log(6000 / min(t2, 5999))
    grown = np.interp(after, [0, 0.3, 1], [1, dip, 1 + rise]) if penalty == "l1" else fall
    return {
        "step": steps,
        "train_accuracy": np.where(steps >= T1, 1.0, 0.5),
        "test_accuracy": test if solves else np.minimum(test, 0.8),
        "norm_l1": 100 * fall,
        "norm_l2": 10 * grown,
        "norm_nuclear": 50 * fall,
        "penalty": penalty,
        "beta": beta,
        "modulus": 31,
    }


def invented(**wrong):
    """The runs as claimed; `wrong` says how they differ."""
    cases = [(name, beta) for name in ("l1", "l2^2", "nuclear") for beta in (1e-3, 3e-4)]
    return token_dataset([curves(*case, **wrong) for case in (*cases, ("l2^2", 0.0))])


def test_a_norm_that_falls_first_passes_as_corrected():
    assert judge(figure_3.check(invented()))[0] == "holds as corrected"
    # 5% above its least value, and 5% below that at t2
    assert judge(figure_3.check(invented(rise=-0.05)))[0] == "holds as corrected"


def test_a_norm_that_rises_from_t2_on_is_what_the_caption_says():
    assert judge(figure_3.check(invented(dip=1.0)))[0] == "holds"


def test_an_l2_norm_that_does_not_rise_under_l1_is_refuted():
    status, reason = judge(figure_3.check(invented(rise=-0.2)))
    assert (status, r"least rise of the $\ell_2$ norm" in reason) == ("fails", True)


def test_a_rise_within_the_run_s_own_fluctuation_is_refuted():
    data = invented(rise=0.01)
    noise = 0.05 * np.random.default_rng(0).standard_normal(data.trajectory_norm_l2.shape)
    status, reason = judge(
        figure_3.check(data.assign(trajectory_norm_l2=data.trajectory_norm_l2 * np.exp(noise)))
    )
    assert status in ("fails", "inconclusive")
    assert r"$\ell_2$ norm" in reason


def test_runs_that_do_not_generalize_or_not_later_for_a_smaller_beta_are_refuted():
    assert judge(figure_3.check(invented(solves=False)))[0] in ("fails", "inconclusive")
    status, reason = judge(figure_3.check(invented(delays={**AFTER, 3e-4: 400.0})))
    assert status in ("fails", "inconclusive")
    assert "beta" in reason


def test_the_measures_of_a_norm_after_t2():
    values = {
        "step": np.array([1, 10, 100, 1000]),
        "train_accuracy": [0, 1, 1, 1],
        "test_accuracy": [0, 0.5, 1, 1],
        "norm_l1": [9, 9, 8, 4],
        "norm_l2": [1, 5, 2, 4],
    }
    run, never = runs_of(
        token_dataset(
            [{**values, "beta": 1.0, "test_accuracy": [0, 0.5, last, last]} for last in (1, 0.8)]
        )
    )
    assert (memorized(run), generalized(run)) == (10, 100)
    assert (change(run, "l2"), change(run, "l1")) == (2.0, 0.5)
    assert figure_3.dip(run) == 1.0
    assert math.isnan(figure_3.rise(run))  # two records have no fluctuation
    assert (figure_3.spread(run, 0), figure_3.spread(run, -1)) == (16.0, 1.0)
    assert math.isnan(generalized(never))
    assert math.isnan(figure_3.dip(never))
    assert math.isnan(change(never, "l2"))


def test_a_rise_is_counted_in_deviations_from_the_mean_of_the_neighbours():
    steps, logs = np.arange(1, 8), np.array([0.0, 0.3, 0.0, 0.1, 0.0, 0.1, 0.4])
    one = {"step": steps, "train_accuracy": np.ones(7), "test_accuracy": np.ones(7), "beta": 1.0}
    (run,) = runs_of(token_dataset([{**one, "norm_l2": np.exp(logs)}]))
    apart = [logs[k] - (logs[k - 1] + logs[k + 1]) / 2 for k in range(1, 6)]
    assert figure_3.fluctuation(run) == pytest.approx(np.std(apart))
    assert figure_3.rise(run) == pytest.approx(0.4 / np.std(apart))
    assert figure_3.fall(run) == 0
    (run,) = runs_of(token_dataset([{**one, "norm_l2": np.exp(-logs)}]))
    assert figure_3.fall(run) == pytest.approx(0.4 / np.std(apart))


@pytest.mark.parametrize(("rise", "word"), [(0.2, "norm rises"), (-0.2, "does not rise")])
def test_the_words_of_the_panels_follow_the_numbers(rise, word):
    picture = figure_3.experiment.picture([invented(rise=rise)])
    assert_can_be_read(picture)
    below = picture.axes[len(figure_3.DRAWN)]
    assert word in below.get_title(loc="left")
    lines = {line.get_label(): line for line in below.lines}
    assert f"$t_1$ = {memorized(runs_of(invented())[0]):.0f}" in lines
    assert lines[r"$\ell_2$"].get_ydata()[-1] == pytest.approx(1 + rise, abs=0.01)
