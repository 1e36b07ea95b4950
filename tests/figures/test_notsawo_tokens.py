"""N-F3 and N-F-alg: their data against separate runs, what they say of them, their drawings."""

import math

import numpy as np
import pytest
import xarray

from figure_checks import assert_axes_named, assert_captioned, assert_data_speak
from tacit.figures import notsawo_arithmetic, notsawo_f3
from tacit.figures.registry import draw, figures, make
from tacit.measures.adam_clock import adam_clock, adam_delay
from tacit.models.token_mlp import TokenMLP
from tacit.problems.operations import modular_arithmetic
from tacit.records import NumericalError
from tacit.regularizers.norms import L1, L2
from tacit.training.descent.methods import Adam
from tacit.training.record import LogSpaced
from tacit.training.stop import Accuracy, Steps
from tacit.training.train import train

SMALL = {"modulus": 7, "fraction": 0.6, "embedding": 8, "width": 16, "points_per_decade": 10}
RUNS = {**SMALL, "step": 0.01, "penalties": ["l1", "l2^2"], "betas": [[1e-3], [1e-2]],
        "steps": [300, 200]}  # fmt: skip
GRID = {**SMALL, "steps": [0.01], "penalties": ["l1"], "betas": [[1e-3, 1e-4]], "budget": 300,
        "level": 0.6}  # fmt: skip


@pytest.fixture(scope="module")
def three():
    calls = []
    return make("N-F3", RUNS, progress=lambda *call: calls.append(call)), calls


@pytest.fixture(scope="module")
def scaling():
    return make("N-F-alg", GRID)


def invented(end, level_at=100):
    """A run over four steps whose Euclidean norm is 5, 4, 2 and `end`."""
    curves = {"train_accuracy": [0.5, 1, 1, 1], "norm_l2": [5, 4, 2, end],
              "test_accuracy": [0.1, 0.2, 1.0 if level_at == 100 else 0.5, 1.0]}  # fmt: skip
    return xarray.Dataset({k: ("step", np.array(v, float)) for k, v in curves.items()},
                          {"step": [1, 10, 100, 1000]})  # fmt: skip


def test_the_curves_are_those_of_a_separate_run(three):
    dataset, calls = three
    assert calls == [(1, 2), (2, 2)]
    problem = modular_arithmetic(7, operation="+", fraction=0.6, seed=0)
    rules = {"penalty": 1e-2 * L2(), "stop": Steps(200), "record": LogSpaced(10)}
    path = train(TokenMLP(8, 16), problem, Adam(0.01), **rules)
    run = dataset.sel(penalty="l2^2", rank=0)
    for name in notsawo_f3.CURVES:
        there = run[name].values[np.isfinite(run[name].values)]
        np.testing.assert_array_equal(there, path.dataset[name].values[1:])
    after = run.norm_l2.values[run.step.values > 200]  # the other penalty was run for longer
    assert len(after)
    assert np.isnan(after).all()


def test_the_summary_tells_a_norm_that_rises_from_one_that_falls():
    found = notsawo_f3.summary(invented(end=3), 0.99)
    assert (found["t1"], found["t2"], found["change"]) == (10, 100, 1.5)
    assert found["rise"] == pytest.approx(0.5)
    falling = notsawo_f3.summary(invented(end=1), 0.99)
    assert (falling["change"], falling["rise"]) == (0.5, 0.0)
    never = notsawo_f3.summary(invented(end=3).isel(step=slice(0, 2)), 0.99)
    assert math.isnan(never["t2"])
    assert math.isnan(never["rise"])


def test_the_words_of_the_panels_follow_the_numbers():
    def words(rise, change):
        return notsawo_f3._verb(xarray.Dataset({"rise": rise, "change": change}))

    assert words(0.2, 1.1).startswith("rises")
    assert words(0.01, 0.8).startswith("falls")


def test_the_drawing_of_the_norms_marks_t1_and_t2(three):
    dataset, _ = three
    picture = draw("N-F3", dataset)
    assert len(picture.axes) == 4
    above, below = picture.axes[:2]
    run = dataset.isel(penalty=0, rank=0)
    lines = {line.get_label(): line for line in below.lines}
    kept = np.isfinite(run.norm_l2.values)
    drawn = lines[r"$\ell_2$"].get_ydata()
    np.testing.assert_allclose(drawn / drawn[0], run.norm_l2.values[kept] / run.norm_l2.values[0])
    assert f"$t_1$ = {float(run.t1):.0f}" in lines
    assert any("0.001" in line.get_label() for line in above.lines)
    assert_axes_named(picture)
    assert_captioned("N-F3", picture)


def test_the_times_are_those_of_a_separate_run_and_end_it(scaling):
    problem = modular_arithmetic(7, operation="+", fraction=0.6, seed=0)
    rules = {"stop": [Steps(300), Accuracy(test=0.6)], "record": LogSpaced(10)}
    run = train(TokenMLP(8, 16), problem, Adam(0.01), penalty=1e-3 * L1(), **rules).dataset
    cell = scaling.isel(penalty=0, alpha=0, rank=0)
    solved = run.step.values[run.train_accuracy.values >= 1]
    assert float(cell.t1) == solved[0] if len(solved) else math.isnan(float(cell.t1))
    reached = run.test_accuracy.values >= 0.6
    assert float(cell.t2) == run.step.values[-1] if reached.any() else math.isnan(float(cell.t2))
    assert float(cell.pace) == 1e-5


def test_the_fits_find_the_law_and_tell_it_from_a_power_law():
    pace = np.geomspace(1e-8, 1e-5, 9)
    c, plain, clock = notsawo_arithmetic.fits(pace, adam_delay(pace, 3e-3))
    assert (c, clock) == (pytest.approx(3e-3), pytest.approx(-1))
    assert plain > -0.6
    _, plain, clock = notsawo_arithmetic.fits(pace, 1e-4 / pace)
    assert plain == pytest.approx(-1)
    assert clock < -1.2
    some = adam_delay(pace, 3e-3)
    some[2] = np.nan  # a run that did not end
    assert notsawo_arithmetic.fits(pace, some)[0] == pytest.approx(3e-3)
    assert all(np.isnan(notsawo_arithmetic.fits(pace[:1], some[:1])))


def test_the_drawing_of_the_scaling_shows_both_laws(scaling):
    t2 = 100 + adam_delay(scaling.pace.values, 2e-3)
    dataset = scaling.assign(t1=(scaling.t1.dims, np.full(t2.shape, 100.0)),
                             t2=(scaling.t2.dims, t2), c=("penalty", [2e-3]),
                             clock=(scaling.clock.dims, adam_clock(t2 - 100)))  # fmt: skip
    picture = draw("N-F-alg", dataset)
    times, clock = picture.axes
    law = next(line for line in times.lines if "exponent" in str(line.get_label()))
    assert np.allclose(law.get_ydata(), 100 + adam_delay(law.get_xdata(), 2e-3))
    straight = next(line for line in clock.lines if "slope" in str(line.get_label()))
    assert np.allclose(straight.get_ydata() * straight.get_xdata(), 2e-3)
    assert_axes_named(picture)
    assert_captioned("N-F-alg", picture)


def test_data_speak_and_presets_have_one_set_of_keys(three, scaling, tmp_path):
    for id, dataset in (("N-F3", three[0]), ("N-F-alg", scaling)):
        assert_data_speak(id, dataset, tmp_path, "the start")
        presets = figures()[id].presets
        assert presets["quick"].keys() == presets["paper"].keys()
        assert presets["paper"]["modulus"] == 97
        assert dataset.attrs["summary"]
        assert "et al. 20" in figures()[id].source


def test_a_run_that_fails_is_an_error_with_its_sentence():
    with pytest.raises(NumericalError, match=r"N-F3: diverged: .* take a smaller learning"):
        make("N-F3", {**RUNS, "penalties": ["l1"], "betas": [[1e-3]], "steps": [20], "step": 1e30})
