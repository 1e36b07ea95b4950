"""W-F7: its data against the runs they come from, and its drawing."""

import numpy as np
import pytest

from figure_checks import assert_axes_named, assert_captioned, assert_data_speak
from tacit.claims.woodworth.spline_runs import learn
from tacit.figures import woodworth_f7
from tacit.figures.registry import draw, make
from tacit.problems.univariate import plateau, zigzag

SMALL = {"width": 120, "alphas": [0.1, 1.0, 100.0], "points": 201}


@pytest.fixture(scope="module")
def dataset():
    return make("W-F7", SMALL)


def test_the_dataset(dataset, tmp_path):
    assert_data_speak("W-F7", dataset, tmp_path, "data points")
    assert dataset.learned.dims == ("scaling", "alpha", "x")
    data, x = zigzag(), dataset.x.values
    np.testing.assert_allclose(dataset.linear, np.interp(x, data.X[:, 0], data.y))
    run = learn(data, 120, 1.0, 0.5, rtol=0.1)
    row = dataset.sel(scaling=0.5, alpha=1.0)
    np.testing.assert_allclose(row.learned, run.function(x))
    np.testing.assert_allclose([row.to_linear, row.to_kernel], [run.to_linear, run.to_kernel])
    flat = learn(plateau(), 120, 0.01, 0.2, rtol=0.1)
    np.testing.assert_allclose(dataset.plateau.sel(scaling=0.2), flat.function(x))


def test_the_message(dataset):
    small, large = dataset.isel(alpha=0), dataset.isel(alpha=-1)
    assert small.to_linear.max() < 0.01 < 0.05 < large.to_linear.min()
    assert large.to_kernel.max() < 0.01 < 0.05 < small.to_kernel.min()
    assert dataset.plateau_to_linear.min() > 0.3
    assert (large.to_linear_rms < large.to_linear).all()
    ends = dataset.learned.sel(x=[-1.0, 1.0], method="nearest")
    np.testing.assert_allclose(ends, np.broadcast_to([0.3, 0.5], ends.shape), atol=1e-4)
    assert f"{float(small.to_linear[0]):10.3g}" in dataset.attrs["summary"]


def test_the_drawing_holds_the_data(dataset):
    picture = draw("W-F7", dataset)
    assert_captioned("W-F7", picture)
    assert_axes_named(picture)
    assert len(picture.axes) == 4
    lines = picture.axes[1].get_lines()
    np.testing.assert_allclose(lines[0].get_ydata(), dataset.learned[1, 0])
    np.testing.assert_allclose(lines[3].get_ydata(), dataset.linear)
    np.testing.assert_allclose(lines[4].get_ydata(), dataset.interpolant[1])
    np.testing.assert_allclose(picture.axes[3].get_lines()[2].get_ydata(), dataset.plateau[2])


def test_c_is_explained_and_the_largest_start_is_seen_on_its_kernel(dataset):
    picture = draw("W-F7", dataset)
    assert "c multiplies w and b" in picture._supxlabel.get_text().replace("\n", " ")
    first = picture.axes[0]
    named = {line.get_label(): line for line in first.get_lines()}
    largest, kernel = named[r"$\alpha$ = 100"], named["interpolant of the\nkernel at the start"]
    assert largest.get_zorder() > kernel.get_zorder()
    assert kernel.get_linewidth() > 2 * largest.get_linewidth()
    assert picture.axes[1].get_ylim() == first.get_ylim()  # the same data, the same scale


def test_the_paper_preset_is_the_printed_one():
    assert woodworth_f7.PRESETS["paper"]["width"] == 10_000
    assert set(woodworth_f7.PRESETS) == {"quick", "paper"}
