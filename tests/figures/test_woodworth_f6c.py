"""W-F6c: its cells against the runs, what its dataset says, and its drawing; on digits here."""

import numpy as np
import pytest

from figure_checks import assert_axes_named, assert_captioned, assert_data_speak
from tacit.claims.woodworth import wide_net_runs
from tacit.claims.woodworth.digit_images import digits
from tacit.figures import woodworth_f6c
from tacit.figures.registry import draw, make

SMALL = {"train": 128, "width": 24, "batch": 32, "epochs": 60, "alphas": [1.0, 20.0, 80.0],
         "steps": [0.5, 0.1], "output_epochs": 20}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def small_images():
    """Digits in the place of MNIST, which a test may not ask for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wide_net_runs, "load_images",
                      lambda name, train, seed, flat: digits(seed, train=train))  # fmt: skip
        wide_net_runs._loaded.cache_clear()
        yield
    wide_net_runs._loaded.cache_clear()


@pytest.fixture(scope="module")
def dataset():
    return make("W-F6c", SMALL)


def test_the_data_speak(dataset, tmp_path):
    assert_data_speak("W-F6c", dataset, tmp_path, "learning rates")
    assert dataset.error.shape == (3, 2)
    for words in ("1.4% at alpha <= 2", "2.4% at alpha >= 50", "2.7%", "output layer alone"):
        assert words in dataset.summary


def test_cells_are_the_runs(dataset):
    scene = wide_net_runs.Scene("mnist", 128, 24, 32)
    run = wide_net_runs.trained(scene, wide_net_runs.Course(20.0, 0.1, epochs=60), 0)
    cell = dataset.sel(alpha=20.0, step=0.1)
    for name in ("error", "train_accuracy", "turned", "epochs"):
        assert float(cell[name]) == pytest.approx(getattr(run, name))
    kernel = wide_net_runs.trained(scene, wide_net_runs.kernel_course(80.0, 0.5, 60), 0)
    assert float(dataset.kernel_error.sel(alpha=80.0)) == pytest.approx(kernel.error)
    assert float(dataset.kernel_turned.sel(alpha=80.0)) == pytest.approx(kernel.turned)


def test_only_without_the_start_s_outputs_do_large_starts_keep_their_features(dataset):
    assert dataset.kernel_turned.values[-1] < 1e-3
    assert dataset.turned.sel(alpha=80.0).min() > 10 * dataset.kernel_turned.values[-1]


def test_the_step_is_chosen_among_those_that_fit():
    errors = np.array([[0.1, 0.2], [0.1, 0.2], [0.3, 0.2], [0.1, 0.2]])
    accuracies = np.array([[1.0, 1.0], [0.99, 1.0], [1.0, 1.0], [0.99, 0.98]])
    found = woodworth_f6c.chosen(errors, accuracies, np.array([0.5, 0.1]))
    np.testing.assert_array_equal(found, [0.5, 0.1, 0.1, np.nan])


def test_an_alpha_that_no_step_fits_is_a_gap_and_named(dataset):
    gone = dataset.copy(deep=True)
    gone.train_accuracy[:] = 1.0
    gone.train_accuracy[1] = 0.99
    variables = {name: gone[name] for name in gone.data_vars if name != "chosen"}
    again = woodworth_f6c._labelled(variables, gone.alpha.values, gone.step.values)
    found = woodworth_f6c.at_chosen(again, "error")
    assert np.isnan(found).tolist() == [False, True, False]
    np.testing.assert_array_equal(found[[0, 2]], dataset.error.values[[0, 2]].min(axis=1))
    assert "no step fits every training image at alpha = 20" in again.summary


def test_a_small_start_is_not_given_a_longer_step_than_one():
    parameters = {**woodworth_f6c.PRESETS["quick"], "alphas": [0.1, 10.0]}
    kernels = [course for course in woodworth_f6c.courses(parameters) if course.unbiased]
    assert [course.step for course in kernels] == pytest.approx([0.5, 0.005])


def test_progress_runs_from_the_first_part_to_the_last():
    told = []
    parameters = {**SMALL, "alphas": [1.0], "steps": [0.5], "epochs": 2, "output_epochs": 2}
    make("W-F6c", parameters, lambda done, total: told.append((done, total)))
    done, total = (list(part) for part in zip(*told, strict=True))
    assert set(total) == {3 * woodworth_f6c.PER_RUN}
    assert done == sorted(done)
    assert done[-1] == total[0]
    assert done[0] < woodworth_f6c.PER_RUN


def test_without_mnist_it_says_how_to_get_it(monkeypatch, tmp_path):
    from tacit.problems.images.load import load_images

    monkeypatch.setenv("TACIT_CACHE", str(tmp_path))
    monkeypatch.setattr(wide_net_runs, "load_images", load_images)
    wide_net_runs._loaded.cache_clear()
    with pytest.raises(FileNotFoundError, match="`tacit data mnist` tells how to get it"):
        make("W-F6c", "paper")


def test_the_drawing(dataset):
    picture = draw("W-F6c", dataset)
    assert_captioned("W-F6c", picture)
    assert_axes_named(picture)
    a, b = picture.axes
    lines = {line.get_label(): line for line in a.get_lines()}
    np.testing.assert_allclose(lines["as printed"].get_ydata(),
                               100 * woodworth_f6c.at_chosen(dataset, "error"))  # fmt: skip
    np.testing.assert_allclose(a.get_lines()[1].get_ydata(), 100 * dataset.kernel_error)
    np.testing.assert_allclose(lines["output layer alone"].get_ydata(),
                               [100 * float(dataset.output_error)] * 2)  # fmt: skip
    np.testing.assert_allclose(b.get_lines()[1].get_ydata(), dataset.kernel_turned)
    assert set(woodworth_f6c.PRESETS) == {"quick", "paper"}
    assert woodworth_f6c.PRESETS["paper"].keys() == woodworth_f6c.PRESETS["quick"].keys()
