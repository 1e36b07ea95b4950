"""The table [draw] of a study in `penchant explore`: followed, or left aside with its reason."""

import json

import numpy as np
import pytest

from explore_study import opened, sloped
from penchant import store
from penchant.explore.state import State
from penchant.explore.study.grid import MOST_LINES
from penchant.explore.study.view import study_view
from penchant.lab.studies.gathered import read_gathered


def test_the_table_says_what_is_shown_first():
    plain_start = study_view(sloped()).start
    assert (plain_start["x"], plain_start["y"], plain_start["show"]) == ("a", "b", "other")
    start = study_view(sloped(x="b", y="a", colour="height", range=[0.0, 2.0])).start
    assert (start["x"], start["y"], start["show"]) == ("b", "a", "height")
    cells = opened(study_view(sloped(colour="height", range=[0.0, 2.0]))).panels[0].cells
    assert cells.span == (0.0, 2.0)
    free = opened(study_view(sloped(colour="height"))).panels[0].cells
    assert free.span == (0.0, 7.0)


@pytest.mark.parametrize(("more", "label", "span"), [
    ({}, "log10 of product", (0, 7)),
    ({"log": False}, "product", (1, 1e7)),
    ({"range": [1.0, 100.0]}, "product", (1, 100)),
    ({"range": [1.0, 100.0], "log": True}, "log10 of product", (0, 2)),
])  # fmt: skip
def test_colours_are_logarithmic_on_request_or_where_they_span_decades(more, label, span):
    cells = opened(study_view(sloped(colour="product", **more))).panels[0].cells
    assert (cells.colour_label, cells.span) == (label, span)


def test_contours_lie_where_a_variable_crosses_its_level():
    view = study_view(sloped(x="a", y="b", contours={"height": 2.5, "product": 10**4.5}))
    diagram = opened(view).panels[0]
    in_legend = [(c.name, c.style) for c in diagram.curves if c.in_legend]
    assert in_legend == [
        ("height = 2.5, measured", "line"),
        ("product = 3.162e+04, theory", "dashed"),
    ]
    for name, level in (("height = 2.5, measured", 2.5), ("product = 3.162e+04, theory", 4.5)):
        line = next(c for c in diagram.curves if c.name == name)
        known = np.isfinite(line.x)
        assert known.sum() > 3
        np.testing.assert_allclose(line.x[known] + line.y[known], level, atol=1e-9)
    measured = next(c for c in diagram.curves if c.in_legend)
    assert np.abs(measured.x + measured.y - 2.4)[np.isfinite(measured.x)].min() > 0.05
    assert [c.name for c in opened(view, y="-").panels[0].curves] == [
        c.name for c in diagram.curves
    ]
    assert opened(view, y="-").panels[0].curves[0].x.size == 0


def test_lines_of_scattered_cells_are_drawn_or_left_out():
    dataset = sloped(contours={"height": 2.5})
    height = dataset.height.values.copy()
    height[2, 1] = np.nan  # a gap between known cells is filled
    found = opened(study_view(dataset.assign(height=(("a", "b"), height)))).panels[0].curves[0]
    assert np.isfinite(found.x).sum() > 3
    height[~np.eye(5, 4, dtype=bool)] = np.nan  # cells on one line have no area
    found = opened(study_view(dataset.assign(height=(("a", "b"), height)))).panels[0].curves[0]
    assert found.x.size == 0


HOSTILE = {
    "no JSON": "{",
    "a list": "[1]",
    "nested": "[" * 100_000,
    "a number": json.dumps({"draw": 3}),
    "an axis that is none": json.dumps({"draw": {"x": "height"}}),
    "a list as axis": json.dumps({"draw": {"x": ["a"]}}),
    "contours that are no table": json.dumps({"draw": {"contours": [1, 2]}}),
    "a level that is none": json.dumps({"draw": {"contours": {"height": "<script>"}}}),
    "an infinite level": json.dumps({"draw": {"contours": {"height": float("inf")}}}),
    "a huge level": '{"draw": {"contours": {"height": 1' + "0" * 400 + "}}}",
    "an unknown variable": json.dumps({"draw": {"colour": "hieght"}}),
    "a range of texts": json.dumps({"draw": {"range": ["a", "b"]}}),
    "a falling range": json.dumps({"draw": {"range": [2, 1]}}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_foreign_table_is_left_aside_with_its_reason(name):
    view = study_view(sloped().assign_attrs(description=HOSTILE[name]))
    assert "[draw] is ignored" in view.words
    assert view.start["show"] == "other"
    assert opened(view).panels[0].cells.values.shape == (4, 5)
    assert "is ignored" not in study_view(sloped(colour="height")).words


def test_not_too_many_lines():
    dataset = sloped()
    names = [f"h{k}" for k in range(MOST_LINES + 1)]
    dataset = dataset.assign(dict.fromkeys(names, dataset.height))
    table = {"draw": {"contours": dict.fromkeys(names, 1.0)}}
    words = study_view(dataset.assign_attrs(description=json.dumps(table))).words
    assert f"at most {MOST_LINES} finite levels" in words


def test_the_diagram_is_drawn_with_its_lines():
    pytest.importorskip("bokeh")
    from bokeh.document import Document

    from penchant.explore.document import Live

    view = study_view(sloped(contours={"height": 2.5}))
    page = Live(Document(), State("study", view.start), {"study": view})
    diagram = page.panels[0]
    assert diagram.grid.data["image"][0].shape == (4, 5)
    assert np.nansum(diagram.lines.data["x0"]) > 0
    page.widgets["x"].value, page.widgets["y"].value = "b", "a"
    page.redraw()
    assert diagram.grid.data["image"][0].shape == (5, 4)
    assert (diagram.grid.data["dw"], diagram.grid.data["dh"]) == ([4], [5])
    assert diagram.figure.xaxis[0].axis_label == "b"


def test_a_saved_study_keeps_its_table(tmp_path):
    file = store.write(sloped(x="b", y="a"), tmp_path / "sloped.nc")
    assert study_view(read_gathered(file)).start["x"] == "b"
