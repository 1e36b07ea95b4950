"""W-F6d and W-F8: their data against the runs, what they say, and their drawings."""

import dataclasses

import numpy as np
import pytest

from figure_checks import assert_axes_named, assert_captioned, assert_data_speak
from tacit.claims.woodworth import conv_net_runs
from tacit.claims.woodworth.conv_net_runs import Trained, steady
from tacit.figures import woodworth_f6d, woodworth_f8
from tacit.figures.registry import draw, make

SMALL = {"images": "digits", "train": 40, "test": 20, "classes": [], "alphas": [0.5, 1.0, 2.0],
         "epochs": 8}  # fmt: skip
IDS = ("W-F6d", "W-F8")


def invented(scene, course, seed, progress=None):
    """Runs that reach 100% the sooner the larger alpha, but for the largest and the output."""
    if progress is not None:
        progress(0.5, "half")
    stuck = course.output or (course.alpha == 2 and not course.unbiased)
    at = np.arange(2 + int(8 / course.alpha))
    right = np.linspace(0.1, 0.6 if stuck else 1.0, len(at))
    turned = 0.003 if course.unbiased else 0.7
    guesses = np.zeros(20, int)
    errors = np.linspace(0.9, 0.1 * course.alpha, len(at))
    return Trained(errors[-1], right[-1], turned, guesses, guesses, at,
                   np.linspace(2.3, 0.1, len(at)), right, errors, 0.1 * at)  # fmt: skip


@pytest.fixture
def told(monkeypatch):
    """What was asked of the runs."""
    seen = []

    def watched(scene, course, seed, progress=None):
        seen.append((scene, course, seed))
        return invented(scene, course, seed, progress)

    monkeypatch.setattr(conv_net_runs, "trained", watched)
    return seen


@pytest.mark.parametrize("id", IDS)
def test_the_data_speak(id, told, tmp_path):
    shares = []
    dataset = make(id, SMALL, lambda done, all: shares.append(done / all))
    assert_data_speak(id, dataset, tmp_path, "the alphas")
    assert dataset.error.shape == (3,)
    assert shares == pytest.approx([0.1, 0.3, 0.5, 0.7, 0.9])
    scene, course, seed = told[0]
    assert (scene.images, scene.train, course.alpha, seed) == ("digits", 40, 0.5, 0)


def test_the_runs_are_the_asked_ones(told):
    make("W-F6d", SMALL)
    courses = [course for _, course, _ in told]
    assert [course.alpha for course in courses] == [0.5, 1.0, 2.0, 1.0, 3.0]
    step = woodworth_f6d.PRESETS["quick"]["step"]
    assert [course.step for course in courses[:3]] == [steady(a, step) for a in (0.5, 1.0, 2.0)]
    assert [course.output for course in courses] == [False, False, False, True, False]
    assert [course.unbiased for course in courses] == [False] * 4 + [True]
    assert all(course.curve for course in courses)
    told.clear()
    make("W-F8", SMALL)
    assert {course.step for _, course, _ in told[:3]} == {step}  # one for all


def test_the_paper_preset_is_as_printed():
    for presets in (woodworth_f6d.PRESETS, woodworth_f8.CURVES):
        paper = presets["paper"]
        assert (paper["batch"], paper["step"], paper["epochs"]) == (128, 1e-4, 2000)
        assert (paper["output_step"], paper["slimmer"], paper["train"]) == (1e-3, 1, 0)
        assert (paper["even"], paper["whole"], paper["classes"]) == (False, True, [])
        assert presets["quick"].keys() == paper.keys()


def test_curves_end_where_their_runs_ended(told):
    dataset = make("W-F8", SMALL)
    first, last = dataset.sel(alpha=0.5), dataset.sel(alpha=2.0)
    assert int(first.epoch.count()) == 18
    assert int(last.epoch.count()) == 6
    assert float(first.accuracy.max()) == 1.0
    np.testing.assert_allclose(last.loss.values[:6], np.linspace(2.3, 0.1, 6))
    found = woodworth_f8.memorized(dataset)
    np.testing.assert_array_equal(found, [17, 9, np.nan])
    assert "17 (0.5), 9 (1), never (2)" in dataset.summary


def test_a_run_is_that_of_the_claim(monkeypatch):
    """One true run of a tiny net in place of W's."""
    from tacit.models.image_net import conv_net

    def tiny(alpha, slimmer, seed, unbiased):
        return conv_net("M-M-M-2-FC", alpha=alpha, seed=seed, unbiased=unbiased)

    monkeypatch.setattr(conv_net_runs, "conv_net", tiny)
    parameters = {**woodworth_f6d.PRESETS["quick"], **SMALL, "alphas": [1.0], "epochs": 2}
    course = woodworth_f6d.courses(parameters)[0]
    scene = conv_net_runs.Scene("digits", 40, 20, 16, 20)
    run = conv_net_runs.trained(scene, course, 0)
    others = [invented(scene, dataclasses.replace(course, output=o), 0) for o in (True, False)]
    planned = [course] * 3
    dataset = woodworth_f6d.labelled(parameters, planned, [run, *others])
    assert float(dataset.error[0]) == run.error
    np.testing.assert_allclose(dataset.loss.values[0, :3], run.losses)
    assert float(dataset.output_error) == others[0].error
    assert float(dataset.kernel_grad_distance) == others[1].turned


def test_the_drawing_of_the_ends(told):
    dataset = make("W-F6d", SMALL)
    picture = draw("W-F6d", dataset)
    assert_captioned("W-F6d", picture)
    assert_axes_named(picture)
    a, b = picture.axes
    np.testing.assert_allclose(a.get_lines()[0].get_ydata(), dataset.error)
    np.testing.assert_allclose(b.get_lines()[0].get_ydata(), dataset.grad_distance)
    labels = [text.get_text() for text in a.get_legend().get_texts()]
    assert any("60% of the training images right" in label for label in labels)
    assert any("not at 100%" in label for label in labels)  # alpha = 2
    assert "digits" in a.get_title(loc="left")


def test_the_drawing_of_the_curves(told):
    dataset = make("W-F8", SMALL)
    picture = draw("W-F8", dataset)
    assert_captioned("W-F8", picture)
    assert_axes_named(picture)
    for axes, name in zip(picture.axes, ("loss", "accuracy", "curve_error"), strict=True):
        np.testing.assert_allclose(axes.get_lines()[1].get_ydata(), dataset.sel(alpha=1.0)[name])
        np.testing.assert_allclose(axes.get_lines()[3].get_ydata(), dataset[f"output_{name}"])
