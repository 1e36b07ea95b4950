"""N-F-ts: its data against separate runs, its exponents, its drawing."""

import dataclasses

import numpy as np
import pytest

from figure_checks import assert_axes_named, assert_captioned, assert_data_speak
from tacit.claims.notsawo.courses import Course
from tacit.figures import notsawo_teacher
from tacit.figures.notsawo_lessons import derivatives, fitted, lesson, times
from tacit.figures.registry import draw, figures, make
from tacit.models.student import student
from tacit.problems.teacher import teacher_student
from tacit.regularizers.norms import L1
from tacit.training.descent.methods import Adam
from tacit.training.record import LogSpaced
from tacit.training.stop import Steps
from tacit.training.train import train

SMALL = {"samples": 20, "sizes": [6, 8, 2], "units": 1, "reads": 1, "sobolev_samples": 12,
         "sobolev_sizes": [3, 4, 1], "width": 12, "betas": [0.3, 0.1], "step": 0.02, "steps": 400,
         "other_step": 0.01, "descent": [[0.01, 0.3], [0.005, 0.3]], "reach": 1.0,
         "level": 0.1}  # fmt: skip


@pytest.fixture(scope="module")
def made():
    calls = []
    return make("N-F-ts", SMALL, progress=lambda *call: calls.append(call)), calls


def test_the_data_are_those_of_separate_runs(made):
    dataset, calls = made
    assert calls == [(1, 3), (2, 3), (3, 3)]
    data = teacher_student(20, 6, width=8, outputs=2, units=1, reads=1, seed=0, standard=True)
    problem = dataclasses.replace(data.training, test=data.test)
    path = train(
        student(12, 2, alpha=1.0, seed=100),
        problem,
        Adam(0.02),
        penalty=0.1 * L1(),
        stop=Steps(400),
        record=LogSpaced(40),
    )
    wanted = 2 * path.dataset.test_loss.values / (data.test.samples * data.variance)
    np.testing.assert_allclose(dataset.l1_test.sel(beta=0.1), wanted, rtol=1e-12)
    np.testing.assert_array_equal(dataset.l1_step, path.dataset.step)
    assert np.abs(dataset.l1_test.sel(beta=0.3).values / wanted - 1).max() > 0.1
    for name in ("l1_none_test", "l1_l2_test", "l1_dense_test", "sobolev_shuffled_test"):
        assert np.isfinite(dataset[name]).all()


def test_t2_is_where_the_test_error_comes_down_to_the_level_to_stay(made):
    dataset, _ = made
    for kind in ("l1", "sobolev"):
        for beta in dataset.beta.values:
            one = dataset.sel(beta=beta)
            t2, step, test = float(one[f"{kind}_t2"]), one[f"{kind}_step"], one[f"{kind}_test"]
            if np.isnan(t2):
                assert test[-20:].max() > 0.1
            else:
                assert test[step > 1.2 * t2].max() < 0.1
                assert test[step < 0.8 * t2].max() > 0.1
    assert np.isfinite(dataset.l1_t2).all()  # or nothing was tested


def test_the_lessons_have_the_teachers_they_name():
    parameters = figures()["N-F-ts"].presets["quick"]
    sparse, dense = (lesson("l1", parameters, dense=d) for d in (False, True))
    assert (sparse.data.A != 0).sum() == 6
    assert (dense.data.A != 0).all()
    told = lesson("sobolev", parameters)
    right, wrong = (derivatives(told, shift).slopes for shift in (0, 1))
    assert (right == told.data.slopes).all()
    assert (wrong[1:] == right[:-1]).all()


def test_the_presets_have_the_same_keys_and_paper_the_sizes_of_the_source():
    presets = figures()["N-F-ts"].presets
    assert presets["quick"].keys() == presets["paper"].keys()
    assert presets["paper"]["sizes"] == presets["paper"]["sobolev_sizes"] == [100, 500, 2]
    assert presets["paper"]["samples"] == 100


def test_an_exponent_is_fitted_to_what_was_reached():
    x = np.array([0.1, 0.03, 0.01])
    assert fitted(x, 2 * x**-0.5) == pytest.approx(-0.5)
    assert fitted(x, np.array([1.0, 2.0, np.nan])) == pytest.approx(np.log(2) / np.log(0.3))
    assert np.isnan(fitted(x, np.array([1.0, np.nan, np.nan])))
    assert notsawo_teacher._mean(np.array([1.0, np.nan, 2.0])) == 1.5
    assert np.isnan(notsawo_teacher._mean(np.array([np.nan])))
    step = np.arange(1.0, 101)
    never = Course(step, np.where(step < 20, 1.0, 0.0), np.ones(100), 0.1)
    assert times([never], "t1")[0] == pytest.approx(20, abs=1)
    assert np.isnan(times([never], "t2")[0])


def test_the_exponents_of_the_data_are_those_of_its_times(made):
    dataset, _ = made
    x, y = np.log(dataset.beta.values), np.log(dataset.l1_t2.values)
    assert float(dataset.l1_slope) == pytest.approx((y[1] - y[0]) / (x[1] - x[0]))
    ratio = np.log(dataset.l1_t2.values / dataset.l1_slower.values).mean() / np.log(2)
    assert float(dataset.l1_slope_step) == pytest.approx(ratio)


def test_the_data_speak(made, tmp_path):
    assert_data_speak("N-F-ts", made[0], tmp_path, "the whole experiment")
    assert "exponent" in made[0].attrs["summary"]


def stars(axes):
    """Where t2 is marked; the mark in the legend has no place."""
    marks = [line.get_xdata() for line in axes.lines if line.get_marker() == "*"]
    return [place[0] for place in marks if len(place)]


def test_the_drawing_says_what_it_is(made):
    dataset, _ = made
    picture = draw("N-F-ts", dataset)
    assert_captioned("N-F-ts", picture)
    assert_axes_named(picture)
    assert len(picture.axes) == 4
    above = picture.axes[0]
    solid = [line for line in above.lines if line.get_label() == r"test error, $\beta$ = 0.1"]
    np.testing.assert_array_equal(solid[0].get_ydata(), dataset.l1_test.sel(beta=0.1)[1:])
    np.testing.assert_array_equal(stars(above), dataset.l1_t2)


def test_a_time_that_was_not_reached_is_drawn_nowhere(made):
    dataset, _ = made
    missing = dataset.copy(deep=True)
    missing["l1_t2"][0] = np.nan
    missing["descent_t2"][:] = np.nan
    picture = notsawo_teacher.draw(missing)
    picture.canvas.draw()
    seen = stars(picture.axes[0])
    assert np.isnan(seen[0])
    assert np.isfinite(seen[1])
