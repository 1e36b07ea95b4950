"""W-F6ab: its cells against the runs, what its dataset says, and its drawing."""

import numpy as np
import pytest

from figure_checks import assert_axes_named, assert_captioned, assert_data_speak
from tacit.claims.woodworth import network_runs
from tacit.claims.woodworth.networks import critical
from tacit.figures import woodworth_f6
from tacit.figures.registry import draw, make
from tacit.records import Kind, NumericalError, Outcome

SMALL = {"depths": [2], "scales": 4, "seeds": 3}


@pytest.fixture(scope="module")
def dataset():
    return make("W-F6ab", SMALL)


def test_the_data_speak(dataset, tmp_path):
    assert_data_speak("W-F6ab", dataset, tmp_path, "teacher")
    assert dataset.test_error.shape == (1, 4, 3)
    assert "0 of 12 runs did not reach" in dataset.summary


def test_a_cell_is_the_run(dataset):
    run = network_runs.trained(2, 0.1, 1)
    row = dataset.sel(depth=2, seed=1).sel(scale=0.1, method="nearest")
    for name in ("test_error", "grad_distance", "kernel_error", "apart"):
        assert float(row[name]) == pytest.approx(getattr(run, name), rel=1e-9)


def test_both_regimes_are_there(dataset):
    turned = dataset.grad_distance.sel(depth=2).median("seed").values
    assert turned[0] > 0.3
    assert turned[-1] < 1e-6
    same = dataset.kernel_error.sel(depth=2).values
    np.testing.assert_allclose(same, same[:1].repeat(4, axis=0))  # of every alpha
    apart = dataset.apart.sel(depth=2).median("seed").values
    assert apart[-1] < 1e-3 < 0.01 < apart[0]


def test_the_critical_scale_is_that_of_the_claim(dataset, monkeypatch):
    monkeypatch.setattr("tacit.claims.woodworth.networks.DEPTHS", (2,))
    assert float(dataset.critical[0]) == pytest.approx(critical((0, 1, 2))[0])


def test_a_draw_whose_kernel_cannot_fit_is_left_out(monkeypatch, dataset):
    assert dataset.seed.values.tolist() == [0, 1, 2]
    assert "left out" not in dataset.summary
    monkeypatch.setattr(network_runs, "fits", lambda seed, depths, loss: seed != 1)
    found = make("W-F6ab", {**SMALL, "scales": 2, "seeds": 2, "log10_scales": [1.0, 3.0]})
    assert found.seed.values.tolist() == [0, 2]
    assert "cannot fit the labels: [1]" in found.summary
    last = dataset.test_error.sel(seed=2).values[0, -1]
    assert float(found.test_error.sel(seed=2)[0, -1]) == pytest.approx(last)


def test_a_run_that_fails_is_a_gap(monkeypatch, dataset):
    def failing(depth, scale, seed, **named):
        raise NumericalError("flow", Outcome(Kind.STALLED, "at rest"))

    monkeypatch.setattr(network_runs, "trained", failing)
    found = make("W-F6ab", {**SMALL, "scales": 2, "seeds": 1})
    assert np.isnan(found.test_error).all()
    assert "2 of 2 runs did not reach" in found.summary


def test_the_drawing(dataset):
    picture = draw("W-F6ab", dataset)
    assert_captioned("W-F6ab", picture)
    assert_axes_named(picture)
    a, b = picture.axes
    medians = dataset.sel(depth=2).median("seed")
    np.testing.assert_allclose(a.get_lines()[0].get_ydata(), medians.test_error)
    np.testing.assert_allclose(a.get_lines()[1].get_ydata(), medians.kernel_error)
    np.testing.assert_allclose(b.get_lines()[0].get_ydata(), medians.grad_distance)
    np.testing.assert_allclose(b.get_lines()[0].get_xdata(), dataset.scale)
    assert set(woodworth_f6.PRESETS) == {"quick", "paper"}
