"""N-F1: its data against separate runs, the share of the twins in its plateau, its drawing."""

import math

import numpy as np
import pytest
import xarray

from tacit import store
from tacit.claims.notsawo.addition import landmarks
from tacit.figures.notsawo_f1 import SUMMARY
from tacit.figures.registry import draw, figures, make, save
from tacit.models.token_mlp import TokenMLP
from tacit.problems.operations import modular_arithmetic
from tacit.records import NumericalError
from tacit.regularizers.norms import L2
from tacit.training.descent.methods import Adam
from tacit.training.record import LogSpaced
from tacit.training.stop import Steps
from tacit.training.train import train

SMALL = {"modulus": 11, "fraction": 0.6, "seeds": [0, 3], "embedding": 16, "width": 32,
         "step": 0.01, "steps": 500, "points_per_decade": 10, "printed_t1": 77}  # fmt: skip


@pytest.fixture(scope="module")
def made():
    calls = []
    return make("N-F1", SMALL, progress=lambda *call: calls.append(call)), calls


def test_the_data_are_those_of_separate_runs(made):
    dataset, calls = made
    assert calls == [(1, 2), (2, 2)]
    problem = modular_arithmetic(11, operation="+", fraction=0.6, seed=3)
    rules = {"penalty": 1e-5 * L2(), "stop": Steps(500), "record": LogSpaced(10)}
    path = train(TokenMLP(16, 32, seed=3), problem, Adam(0.01), **rules)
    run = dataset.sel(seed=3)
    for name in ("train_accuracy", "test_accuracy", "novel_accuracy", "loss", "norm_nuclear"):
        np.testing.assert_array_equal(run[name], path.dataset[name])
        assert not np.array_equal(dataset[name][0], path.dataset[name])  # the other seed
    assert float(run.twins) == problem.twins.sum() / problem.test.sum()


def test_the_plateau_is_the_share_of_the_twins_once_training_is_solved(made):
    dataset, _ = made
    for number in range(2):
        run = dataset.isel(seed=number)
        solved = run.isel(record=np.flatnonzero(run.step.values >= float(run.t1)))
        solved = solved.isel(record=np.flatnonzero(solved.train_accuracy.values == 1))
        assert solved.sizes["record"] > 3
        # every twin of a training pair is right with it, so nothing else is left to explain
        expected = run.twins + (1 - run.twins) * solved.novel_accuracy
        np.testing.assert_allclose(solved.test_accuracy, expected, rtol=1e-12)


def test_what_is_printed_has_a_line_for_every_seed_and_one_for_the_source(made):
    dataset, _ = made
    *lines, source = dataset.attrs["summary"].splitlines()
    assert source == "source: t1 = 77"
    for number, line in enumerate(lines):
        assert f"seed {SMALL['seeds'][number]}: " in line
        assert f"{float(dataset.t1[number]):.0f}" in line
        assert "$" not in line
    assert len(lines) == 2


def test_the_summary_reads_t1_t2_and_what_lies_between():
    steps = np.array([0, 1, 10, 100, 1000, 10000])
    curves = {"train_accuracy": [0, 0.5, 1, 1, 1, 1], "test_accuracy": [0, 0, 0.3, 0.4, 0.9, 0.99],
              "novel_accuracy": [0, 0, 0, 0.01, 0.8, 0.98]}  # fmt: skip
    run = xarray.Dataset({name: ("record", values) for name, values in curves.items()},
                         {"step": ("record", steps)})  # fmt: skip
    found = landmarks(run, 0.99)
    assert (found["t1"], found["t2"]) == (10, 10000)
    assert (found["plateau"], found["novel_plateau"]) == (0.9, 0.8)
    never = landmarks(run, 0.995)
    assert math.isnan(never["t2"])
    assert math.isnan(never["plateau"])
    assert landmarks(run, 0.9)["plateau"] == 0.4


def test_the_drawing_has_curves_marks_and_the_share_of_the_twins(made):
    dataset, _ = made
    picture = draw("N-F1", dataset)
    accuracy, losses, norms = picture.axes
    labels = {line.get_label(): line for line in accuracy.lines}
    run = dataset.isel(seed=0)
    np.testing.assert_array_equal(
        labels["validation without twins"].get_ydata(), run.novel_accuracy[run.step > 0]
    )
    assert f"$t_1$ = {float(run.t1):.0f}" in labels
    assert "source: $t_1$ = 77" in labels
    share = labels[f"share of twins: {float(run.twins):.3f}"]
    assert np.allclose(share.get_ydata(), float(run.twins))
    assert accuracy.get_title(loc="left").count("\n") == 1
    for panel in (accuracy, losses, norms):
        assert panel.get_ylabel()
        assert panel.get_legend()


def test_every_variable_says_what_it_is_and_files_come_back(made, tmp_path):
    dataset, _ = made
    assert set(SUMMARY) < set(dataset.data_vars)
    for name, variable in dataset.variables.items():
        assert variable.attrs.get("long_name"), name
        assert variable.attrs.get("units"), name
    written = save("N-F1", dataset, tmp_path, ["png"])
    assert {path.suffix for path in written} == {".png", ".nc"}
    assert store.load(tmp_path / "N-F1.nc").equals(dataset)


def test_the_paper_s_numbers_are_the_printed_ones():
    entry = figures()["N-F1"]
    paper = entry.presets["paper"]
    assert paper.keys() == entry.presets["quick"].keys()
    assert (paper["modulus"], paper["fraction"], paper["step"]) == (97, 0.4, 1e-3)
    assert (paper["penalty"], paper["beta"]) == ("l2^2", 1e-6)
    assert (paper["printed_t1"], paper["printed_t2"]) == (540, 9150)


def test_a_run_that_fails_is_an_error_with_its_sentence():
    with pytest.raises(NumericalError, match=r"N-F1: diverged: .* take a smaller learning"):
        make("N-F1", {**SMALL, "step": 1e30, "steps": 50})
