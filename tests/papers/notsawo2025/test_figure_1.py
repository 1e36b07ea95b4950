"""Figure 1: its check of right and of wrong runs; real runs."""

import math

import numpy as np
import pytest

from figure_checks import assert_readable
from penchant import L2, Adam, Steps, train
from penchant.lab import Setting
from penchant.models import TokenMLP
from penchant.problems import modular_arithmetic
from penchant.record import LogSpaced
from penchant_papers.notsawo2025.figures import figure_1
from penchant_papers.notsawo2025.figures import runs as token_runs
from penchant_papers.notsawo2025.figures.runs import cell, runs_of
from token_datasets import token_dataset

TWINS = 0.4


def fake(t1=150, t2=4000, plateau=TWINS, novel=0.01, last=1.0, **run):
    """A run whose training is solved at t1 and whose validation rises from a plateau at t2."""
    step = np.unique(np.geomspace(1, 21_000, 600).astype(int))
    curves = {
        "step": step,
        "train_accuracy": np.where(step >= t1, 1.0, 0.3),
        "test_accuracy": np.where(step >= t2, last, plateau),
        "novel_accuracy": np.where(step >= t2, last, novel),
    }
    return {**curves, "beta": 1e-5, "twins": TWINS, **run}


def judged(right=None, bare=None, ordered=None, weak=None, modulus=31):
    """Evidence from fakes: the run, those without penalty and with a tenth, the other net."""
    runs = [
        fake() if right is None else right,
        {**(bare or fake(last=TWINS)), "beta": 0.0},
        {**(weak or fake(t2=20_000)), "beta": 1e-6},
        {**(ordered or fake(plateau=0.02, t2=10**6)), "variant": "code"},
    ]
    return figure_1.check(token_dataset([{**run, "modulus": modulus} for run in runs]))


def failed(evidence):
    return [name for name, check in evidence.checks.items() if not check.passes]


def test_a_run_like_the_source_passes_and_all_controls_miss():
    evidence = judged()
    assert not failed(evidence)
    assert all(control.misses for control in evidence.controls.values())


@pytest.mark.parametrize(
    ("wrong", "caught"),
    [
        ({"t1": 900, "t2": 4500}, "$t_2/t_1$"),
        ({"t2": 700}, "$t_2/t_1$"),
        ({"t2": 5900}, "$t_2/t_1$"),
        ({"last": 0.8}, "$t_2/t_1$"),
        ({"plateau": 0.8 * TWINS}, "on mirrored pairs"),
        ({"novel": 0.2}, "without mirrored pairs"),
    ],
)
def test_a_wrong_run_is_caught(wrong, caught):
    assert any(caught in name for name in failed(judged(fake(**wrong))))


def test_the_printed_times_are_checked_at_the_size_of_the_source():
    evidence = judged(fake(560, 11_000), weak=fake(560, 15_500), modulus=97)
    assert not failed(evidence)
    assert all(control.misses for control in evidence.controls.values())
    assert evidence.controls["a tenth of the penalty"].tolerance < 1
    late, early = fake(560, 14_500), fake(330, 8000)
    for wrong, name in (
        (late, "$t_2$ from the printed 9150"),
        (early, "$t_1$ from the printed 540"),
    ):
        assert failed(judged(wrong, modulus=97)) == [
            f"largest distance of {name}, in factors of two"
        ]


def test_a_run_too_short_for_its_t1_decides_nothing():
    evidence = judged(fake(t1=700, t2=5100))
    assert not evidence.premises["the runs are longer than the largest $t_2$ allowed"].holds


def test_controls_that_behave_like_the_run_do_not_miss():
    evidence = judged(bare=fake(), ordered=fake(t2=10**6), weak=fake())
    passing = {name for name, control in evidence.controls.items() if not control.misses}
    assert passing == {
        "no penalty",
        "a tenth of the penalty",
        "no penalty classified as a grok",
        "a net that is not symmetric",
    }


def test_landmarks_are_the_first_records_that_reach_the_levels():
    run, never = runs_of(token_dataset([fake(), fake(last=0.5)]))
    found = figure_1.landmarks(run)
    assert 150 <= found["t1"] < 160
    assert 4000 <= found["t2"] < 4150
    assert found["plateau"] == TWINS
    assert math.isnan(figure_1.landmarks(never)["t2"])
    assert math.isnan(figure_1.landmarks(never)["plateau"])


def test_the_full_size_is_the_source_s_and_longer_than_every_t2_that_passes():
    given = figure_1.study.at("printed").arguments["given"]
    runs = figure_1.study.at("printed").arguments["runs"]
    assert (given["modulus"], given["fraction"], given["learning_rate"]) == (97, 0.4, 1e-3)
    first = {**token_runs.USUAL, **given, **runs[0]}
    assert (first["penalty"], first["beta"]) == ("l2^2", 1e-6)
    assert given["steps"] > 1.5 * 1.5 * figure_1.PRINTED["t2"]


def test_a_cell_is_a_run_of_adam_and_its_plateau_is_made_of_twins():
    given = {"modulus": 11, "fraction": 0.6, "width": 16, "learning_rate": 0.01, "steps": 400}
    usual = token_runs.USUAL
    found = cell(1, runs=[{}, {"seed": 3, "beta": 1e-5}], given={**usual, **given})
    problem = modular_arithmetic(11, operation="+", fraction=0.6, seed=3)
    rules = {"penalty": 1e-5 * L2(), "stop": Steps(400), "record": LogSpaced(60)}
    run = train(TokenMLP(16, 16, seed=3), problem, Adam(0.01), **rules).dataset
    for name in ("train_accuracy", "test_accuracy", "novel_accuracy", "loss", "norm_nuclear"):
        np.testing.assert_array_equal(found[f"trajectory_{name}"], run[name][1:])
    assert found["twins"] == problem.twins.sum() / problem.test.sum()
    solved = found["trajectory_train_accuracy"] == 1
    assert solved.sum() > 3
    # every twin of a training pair is right with it, so nothing else is left to explain
    expected = found["twins"] + (1 - found["twins"]) * found["trajectory_novel_accuracy"]
    np.testing.assert_allclose(found["trajectory_test_accuracy"][solved], expected[solved])


def test_a_run_that_fails_makes_the_verdict_inconclusive(monkeypatch):
    sizes = {"modulus": 5, "fraction": 0.6, "width": 4, "learning_rate": 1e30, "steps": 50}
    for key, table in token_runs.arguments([{"beta": 1e-5}], **sizes).items():
        monkeypatch.setitem(figure_1.study.quick, key, table)
    verdict = figure_1.experiment.run(Setting())
    assert verdict.status == "inconclusive"
    assert "beyond float64" in str(verdict.premises)


def test_the_picture_marks_t1_t2_and_the_twins():
    two = [fake(modulus=97, split=seed) for seed in (0, 1)]
    others = [fake(beta=0.0), fake(beta=1e-6), fake(variant="code")]
    dataset = token_dataset([*two, *others])
    picture = figure_1.experiment.picture([dataset])
    assert_readable(picture)
    labels = {line.get_label() for line in picture.axes[0].lines}
    t1 = figure_1.landmarks(runs_of(dataset)[0])["t1"]
    assert {f"$t_1$ = {t1:.0f}", "source: $t_1$ = 540", "share of mirrored pairs: 0.400"} <= labels
    assert picture.axes[0].get_title(loc="left").count("\n") == 1
