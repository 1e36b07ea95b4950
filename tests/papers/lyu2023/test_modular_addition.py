"""Modular addition: what would refute the check, the picture, and the printed numbers."""

import json
import math

import numpy as np
import pytest

import penchant
from penchant import GradientDescent, Study, Time, train
from penchant.lab import all_claims
from penchant.lab.studies.sizes import merged
from penchant.measures import grokking
from penchant.models import TwoTokenNet
from penchant.problems import modular_arithmetic
from penchant.record import LogSpaced
from penchant_papers.lyu2023.modular_addition import CURVES, runs_of

SMALL = {
    "name": "small",
    "problem": {"modulus": 11, "fraction": 0.6},
    "model": {"width": 32},
    "method": {"learning_rate": 1.0, "scaled": 300.0, "weight_decay": 1e-2},
    "stop": {"t": 800.0},
    "record": {"per_decade": 8},
    "grid": {"model.alpha": [4.0, 0.5]},
}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Runs too short to understand anything."""
    study = Study(**merged(all_claims()["L-F3b"].study.at("quick").describe(), SMALL))
    found = penchant.run(study, tmp_path_factory.mktemp("cells"), "here")
    return found.assign_attrs(title="small", size="tiny", source="L", ours="")


def test_the_data_are_those_of_separate_runs(small):
    problem = modular_arithmetic(11, fraction=0.6, seed=0)
    descent = GradientDescent(1.0, scaled=300.0, weight_decay=1e-2)
    for alpha in (4.0, 0.5):
        net = TwoTokenNet(32, alpha=alpha, seed=0)
        path = train(net, problem, descent, stop=Time(800.0), record=LogSpaced(8)).dataset
        run, count = small.sel(alpha=alpha, seed=0), path.sizes["time"]
        for name in CURVES:
            np.testing.assert_array_equal(run[f"trajectory_{name}"][:count], path[name])
        found = grokking(path.t, path.train_accuracy, path.novel_accuracy, 0.95)
        assert float(run.late_t1) == found.t1
        assert str(run.late_kind.values) == found.kind


def test_runs_that_do_not_understand_are_refuted(small, refuted):
    assert refuted("L-F3b", (small,), "accuracy without mirrored pairs at the end")


def test_the_prediction_needs_no_training(small):
    large, little = runs_of(small)
    assert float(large.predicted) == pytest.approx(100 * math.log(4), rel=1e-14)
    assert math.isnan(float(little.predicted))


def test_the_picture_has_all_rows_curves_and_the_prediction(small):
    with np.errstate(all="ignore"):
        picture = all_claims()["L-F3b"].picture((small,))
    accuracy, norm, turn, kernel = picture.axes
    curves = {line.get_label(): line for line in accuracy.lines}
    large = runs_of(small)[0]
    np.testing.assert_array_equal(curves[r"test, $\alpha = 4$"].get_ydata(), large.novel_accuracy)
    for axes in (accuracy, norm, turn, kernel):
        assert sum(np.allclose(line.get_xdata(), 100 * math.log(4)) for line in axes.lines) == 1
        assert axes.get_ylabel()
    assert len(norm.lines) == len(turn.lines) == len(kernel.lines) == 3
    assert accuracy.get_title(loc="left").count("\n") == 1
    assert "139" in next(label for label in curves if label.startswith("predicted"))


def test_the_full_size_has_the_printed_numbers():
    study = all_claims()["L-F3b"].study.at("printed")
    problem, model, method = study.problem, study.model, study.method
    assert (problem["modulus"], problem["fraction"], model["width"]) == (97, 0.4, 1024)
    assert method["weight_decay"] == 1e-4
    assert max(study.axes[0].values) == 100
    # the first step from the largest start is the printed learning rate
    start = TwoTokenNet(1024, alpha=100.0).start(modular_arithmetic(97))
    assert method["scaled"] / np.sum(start.first**2) == pytest.approx(0.002, rel=0.01)
    assert json.dumps(study.describe())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda d: {"late_jump": d.late_jump * 3}, "over (1/lambda) log alpha"),
        (lambda d: {"late_t1": d.late_jump / 2}, "decades of time"),
    ],
    ids=["three times later", "training is as late"],
)
def test_a_wrong_time_is_refuted(data_of, refuted, wrong, words):
    (dataset,) = data_of("L-F3b", "quick")
    assert refuted("L-F3b", (dataset.assign(wrong(dataset)),), words)
