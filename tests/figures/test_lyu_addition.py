"""L-F3b: its data against the run they come from, its drawing, and the file it is saved in."""

import json
import math

import numpy as np
import pytest

from tacit import store
from tacit.figures import lyu_f3_addition  # noqa: F401 registers L-F3b
from tacit.figures.registry import draw, figures, make, save
from tacit.measures.grokking import grokking
from tacit.models.two_token_net import TwoTokenNet
from tacit.problems.arithmetic import modular_addition
from tacit.records import NumericalError
from tacit.training.descent.methods import GradientDescent
from tacit.training.record import LogSpaced
from tacit.training.stop import Time
from tacit.training.train import train

SMALL = {"modulus": 11, "fraction": 0.6, "width": 32, "alphas": [4.0, 0.5], "weight_decay": 1e-2,
         "learning_rate": 1.0, "scaled": 300.0, "t": 800.0, "per_decade": 8}  # fmt: skip


@pytest.fixture(scope="module")
def made():
    calls = []
    dataset = make("L-F3b", SMALL, progress=lambda *call: calls.append(call))
    return dataset, calls


def test_the_data_are_those_of_separate_runs(made):
    dataset, calls = made
    assert calls == [(1, 2), (2, 2)]
    problem = modular_addition(11, fraction=0.6, seed=0)
    descent = GradientDescent(1.0, scaled=300.0, weight_decay=1e-2)
    for number, alpha in enumerate(SMALL["alphas"]):
        net = TwoTokenNet(32, alpha=alpha, seed=0)
        path = train(net, problem, descent, stop=Time(800.0), record=LogSpaced(8))
        run, count = dataset.isel(alpha=number), path.dataset.sizes["time"]
        for name in ("t", "step", "train_accuracy", "novel_accuracy", "turn", "kernel_distance"):
            np.testing.assert_array_equal(run[name][:count], path.dataset[name])
            assert np.isnan(run[name][count:]).all()
        found = grokking(
            path.dataset.t, path.dataset.train_accuracy, path.dataset.novel_accuracy, 0.95
        )
        assert float(run.t1) == found.t1
        assert float(run.t2) == found.t2
        assert str(run.kind.values) == found.kind
    assert float(dataset.twins) == problem.twins.sum() / problem.test.sum()


def test_the_prediction_needs_no_training(made):
    dataset, _ = made
    np.testing.assert_allclose(dataset.predicted, [100 * math.log(4), np.nan], rtol=1e-14)


def test_every_variable_says_what_it_is(made):
    dataset, _ = made
    for name, variable in dataset.variables.items():
        assert variable.attrs.get("long_name"), name
        assert variable.attrs.get("units"), name
    assert "one-hot" in dataset.attrs["constructed"]


def test_the_drawing_has_all_rows_curves_and_the_prediction(made):
    dataset, _ = made
    picture = draw("L-F3b", dataset)
    accuracy, norm, turn, kernel = picture.axes
    curves = {line.get_label(): line for line in accuracy.lines}
    large = dataset.isel(alpha=0)
    np.testing.assert_array_equal(
        curves[r"test, $\alpha = 4$"].get_ydata(), large.novel_accuracy[large.t > 0]
    )
    for axes in (accuracy, norm, turn, kernel):
        assert sum(np.allclose(line.get_xdata(), 100 * math.log(4)) for line in axes.lines) == 1
        assert axes.get_ylabel()
    assert len(norm.lines) == len(turn.lines) == len(kernel.lines) == 3
    assert accuracy.get_title(loc="left").count("\n") == 1
    assert "139" in next(label for label in curves if label.startswith("predicted"))


def test_the_files_come_back_as_they_went_in(made, tmp_path):
    dataset, _ = made
    written = save("L-F3b", dataset, tmp_path, ["png"])
    assert {path.suffix for path in written} == {".png", ".nc"}
    back = store.load(tmp_path / "L-F3b.nc")
    assert back.equals(dataset)
    assert draw("L-F3b", back).axes


def test_the_paper_s_numbers_are_the_printed_ones():
    entry = figures()["L-F3b"]
    paper = entry.presets["paper"]
    assert paper.keys() == entry.presets["quick"].keys()
    assert (paper["modulus"], paper["fraction"], paper["width"]) == (97, 0.4, 1024)
    assert paper["weight_decay"] == 1e-4
    assert max(paper["alphas"]) == 100
    # the first step from the largest start is the printed learning rate
    start = TwoTokenNet(1024, alpha=100.0).start(modular_addition(97))
    assert paper["scaled"] / np.sum(start.first**2) == pytest.approx(0.002, rel=0.01)
    assert json.dumps(paper)


def test_a_run_that_fails_is_an_error_with_its_sentence():
    parameters = {**SMALL, "alphas": [1e10], "learning_rate": 1e15, "t": 1e17, "scaled": None}
    sentence = r"L-F3b: (diverged|stalled): .* take a smaller learning rate"
    with pytest.raises(NumericalError, match=sentence):
        make("L-F3b", {**parameters, "weight_decay": 0.0})
