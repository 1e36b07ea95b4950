"""Saved studies in `penchant explore`: laid out rightly, with the lines that they ask for."""

from types import SimpleNamespace

import numpy as np
import pytest
import xarray

import penchant
from explore_study import ALPHAS, SEEDS, made, opened
from penchant import Study
from penchant.explore.picture import Picture
from penchant.explore.state import State, read_state
from penchant.explore.study.grid import plain
from penchant.explore.study.view import study_view
from penchant.lab.studies.gathered import read_gathered


def panel(picture: Picture, name: str):
    return next(found for found in picture.panels if found.name == name)


def test_the_diagram_holds_the_cells_of_the_study():
    dataset = made()
    view = study_view(dataset)
    cells = opened(view, x="alpha", y="width", seeds="one", at2=1).panels[0].cells
    np.testing.assert_array_equal(cells.values, dataset.error.sel(seed=1).transpose("width", ...))
    assert cells.columns == ("0.01", "0.1", "1", "10")
    assert cells.rows == ("8", "16", "32")
    assert not cells.failed.any()
    turned = opened(view, x="seed", y="alpha", at1=2).panels[0].cells
    np.testing.assert_array_equal(turned.values, dataset.error.isel(width=2))
    assert np.argwhere(turned.failed).tolist() == [[1, 0]]
    assert turned.notes[1 * SEEDS + 0] == "diverged: it went away"


def test_seeds_are_shown_by_their_median():
    dataset = made()
    cells = opened(study_view(dataset), x="alpha", y="width").panels[0].cells
    wanted = dataset.error.median("seed").transpose("width", "alpha")  # without what failed
    np.testing.assert_array_equal(cells.values, wanted)
    assert np.argwhere(cells.failed).tolist() == [[2, 1]]
    assert cells.notes[2 * ALPHAS + 1] == "diverged (1 of 2 seeds): it went away"
    assert (cells.values != dataset.error.sel(seed=0).transpose("width", "alpha")).any()


def test_a_cell_opens_its_trajectory():
    dataset = made()
    view = study_view(dataset)
    picture = opened(view, at0=2, at1=1, at2=1, seeds="one")
    shown = panel(picture, "trajectory").curves[0]
    cell = dataset.isel(alpha=2, width=1, seed=1)
    np.testing.assert_allclose(shown.x, np.log10(cell.trajectory_t))
    np.testing.assert_allclose(shown.y, cell.trajectory_loss)
    assert panel(picture, "trajectory").x_label == "log10 of t"
    assert picture.sentence.startswith("alpha = 1, width = 16, seed = 1: error = 15, solved.")
    cut = panel(picture, "cut").curves[0]
    np.testing.assert_array_equal(cut.y, dataset.error.isel(width=1, seed=1))
    assert "diverged. it went away" in opened(view, at0=1, at1=2, at2=0).sentence


def test_a_cell_without_a_trajectory_opens_its_values():
    dataset = made().drop_vars(["trajectory_t", "trajectory_loss"])
    dataset["norm"] = dataset.error * 2
    picture = opened(study_view(dataset), at0=2, at1=1, at2=1, show="norm")
    assert [found.name for found in picture.panels] == ["diagram", "cut"]
    assert "norm = 30, error = 15, solved" in picture.sentence


def test_status_can_be_shown_and_one_axis_cannot_be_two():
    view = study_view(made())
    cells = opened(view, show="status", x="alpha", y="width").panels[0].cells
    assert cells.colour_label == "0 diverged, 1 solved"
    assert cells.values[2].tolist() == [1, 0, 1, 1]
    with pytest.raises(ValueError, match="two different axes"):
        opened(view, x="alpha", y="alpha")


def test_a_study_with_one_axis_or_one_cell_is_shown_too():
    line = made().isel(width=0, seed=0, drop=True)
    cells = opened(study_view(line)).panels[0].cells
    assert cells.values.shape == (1, ALPHAS)
    assert cells.names == ("at0", "")
    point = made().isel(alpha=[0], width=[1], seed=[1])
    assert opened(study_view(point)).panels[0].cells.values.tolist() == [[3.0]]


def test_too_many_cells_for_a_browser_are_refused():
    big = xarray.Dataset({"status": (("a", "b"), np.full((600, 500), "solved"))},
                         attrs={"study": "big"})  # fmt: skip
    big = big.assign_coords(a=range(600), b=range(500))
    with pytest.raises(ValueError, match="300000 cells are too many"):
        opened(study_view(big))


def test_addresses_of_a_study_are_checked():
    views = {"study": study_view(made())}
    state = read_state("view=study&at0=3&x=width&y=seed", views)
    assert state.values["at0"] == 3
    for query in ("at0=4", "x=status", "show=sentence", "at9=0", "curve=trajectory_t", "seeds=2"):
        with pytest.raises(ValueError, match=r"^explore"):
            read_state(query, views)


# --- studies as `penchant run` writes them -------------------------------------------------------


def gathered(folder, **description):
    study = Study(**description)
    penchant.run(study, folder)
    return study_view(read_gathered(folder / f"{study.name}.nc"))


def test_a_refined_study_is_blank_where_nothing_was_computed(tmp_path):
    view = gathered(
        tmp_path, name="circle", function="study_cells:boundary",
        grid={"x": {"linspace": [0, 2, 5]}, "y": {"linspace": [0, 2, 5]}},
        refine={"measure": "distance", "level": 0.0, "rounds": 1},
        draw={"x": "x", "y": "y", "colour": "distance", "contours": {"distance": 0.0}},
    )  # fmt: skip
    diagram = opened(view).panels[0]
    assert np.isnan(diagram.cells.values).sum() > 10
    assert not diagram.cells.failed.any()
    assert "not needed (blank)" in view.words
    line = diagram.curves[0]
    known = np.isfinite(line.x)
    radius = np.hypot(line.x[known], line.y[known]) * 0.25  # places are a quarter apart
    np.testing.assert_allclose(radius, 1, atol=0.02)


def test_a_threshold_opens_what_was_tried(tmp_path):
    view = gathered(
        tmp_path, name="edge", function="study_cells:step", grid={"width": [0.5, 2.0]},
        threshold={"axis": "alpha", "between": [1e-3, 10.0], "measure": "error", "below": 0.5},
    )  # fmt: skip
    assert view.start["show"] == "threshold"
    picture = opened(view, at0=1)
    shown = panel(picture, "trajectory")
    assert (shown.x_label, shown.y_label) == ("log10 of tried", "measured")
    assert (np.diff(shown.curves[0].x) >= 0).all()
    jump = 10 ** shown.curves[0].x[shown.curves[0].y > 0.5].min()
    assert jump == pytest.approx(0.2, rel=0.02)
    assert "threshold = 0.19" in picture.sentence


def test_texts_and_failures_of_a_study_are_shown(tmp_path):
    view = gathered(tmp_path, name="moody", function="study_cells:moody", grid={"a": [0, 1, 2, 4]})
    cells = opened(view).panels[0].cells
    assert cells.failed.tolist() == [[False, True, True, False]]
    assert cells.notes[1] == "diverged: loss 1e300 after 7 steps"
    assert "2 of them failed" in view.words
    dataset = made().isel(seed=0, drop=True).assign_coords(alpha=["sgd", "$$x", "<b>", "adam"])
    names = opened(study_view(dataset), x="alpha", y="width").panels[0].cells.columns
    assert names == ("sgd", "$ $x", "<b>", "adam")


# --- the page ---------------------------------------------------------------------------------


def test_a_click_on_a_cell_moves_the_sliders():
    pytest.importorskip("bokeh")
    from bokeh.document import Document

    from penchant.explore.document import Live

    view = study_view(made())
    page = Live(Document(), State("study", {**view.start, "x": "alpha", "y": "width"}),
                {"study": view})  # fmt: skip
    diagram = page.panels[0]
    diagram._clicked(SimpleNamespace(x=3.4, y=1.6))  # fourth column, third row
    assert (page.values["at0"], page.values["at1"]) == (3, 2)
    page.redraw()
    assert diagram.frame.data == {"x": [3], "y": [2]}
    assert "alpha = 10, width = 32" in page.sentence.text
    assert "at0=3&at1=2" in page.sentence.tags[0]
    before = dict(page.values)
    for x, y in ((4.0, 0.0), (-0.6, 0.0), (1e300, 0.0), (float("nan"), 0.0), ("1", 0.0),
                 (None, 0.0), (0.0, [1])):  # fmt: skip
        diagram._clicked(SimpleNamespace(x=x, y=y))  # a browser may send anything
        assert page.values == before


def test_foreign_texts_are_shown_as_texts():
    assert plain("a\n\x00b\u2028c") == "a b c"
    assert "$$" not in plain("$$\\href{x}$$")
    assert len(plain("x" * 10_000)) == 160
    view = study_view(made(title="<img src=x onerror=alert(1)>"))
    pytest.importorskip("bokeh")
    from penchant.explore.page import template, variables

    page = template().render(**variables(view.title, view.words, {}))
    assert "<img" not in page
    assert "&lt;img" in page
