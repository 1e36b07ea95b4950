"""The page of `penchant explore` in process: redrawn by its controls, started by its command."""

import json

import numpy as np
import pytest

pytest.importorskip("bokeh")

from commands import penchant_command
from penchant.explore.document import Live
from penchant.explore.picture import Picture
from penchant.explore.state import State, View
from penchant.explore.views import regularizer


def live(view, **values):
    from bokeh.document import Document

    document = Document()
    return Live(document, State(view.name, {**view.start, **values}), {view.name: view})


def numbers(page, panel, index):
    return np.array(page.panels[panel].source.data[f"y{index}"])


def test_a_moved_slider_redraws_and_writes_the_address():
    page = live(regularizer.VIEW)
    before = numbers(page, 0, 2).copy()
    page.widgets["log10_mu"].value = -4
    page.widgets["depth"].value = 3
    assert page.waiting  # both moves wait for one redraw
    page.redraw()
    wanted = regularizer.picture({"depth": 3, "log10_mu": -4, "shape": 1})
    assert (numbers(page, 0, 2) == wanted.panels[0].curves[2].y).all()
    assert (before != numbers(page, 0, 2)).any()
    assert page.sentence.tags == ["view=regularizer&depth=3&log10_mu=-4&shape=1"]
    assert page.sentence.text == wanted.sentence


def test_only_panels_that_change_are_sent_again():
    page = live(regularizer.VIEW)
    before = [panel.source.data for panel in page.panels]
    page.widgets["shape"].value = 1.5  # of the second weight: nothing moves along the first
    page.redraw()
    after = [panel.source.data for panel in page.panels]
    assert [new is old for new, old in zip(after, before, strict=True)] == [True, False]


def test_a_picture_that_cannot_be_made_is_a_sentence():
    def picture(values):
        if values["depth"] > 5:
            raise ValueError("explore: too deep for this")
        return regularizer.picture({**values, "log10_mu": 0, "shape": 1})

    view = View("deep", "Deep", "", regularizer.CONTROLS[:1], picture)
    page = live(view, depth=7.0)
    assert page.sentence.text == "explore: too deep for this"
    assert len(numbers(page, 0, 0)) == 0
    page.widgets["depth"].value = 3
    page.redraw()
    assert len(numbers(page, 0, 0)) > 0
    page.widgets["depth"].value = 8
    page.redraw()
    assert page.sentence.text == "explore: too deep for this"
    assert len(numbers(page, 0, 0)) == 0


def test_a_browser_cannot_set_what_no_control_allows():
    page = live(regularizer.VIEW)
    page.move(regularizer.CONTROLS[0], 10**9)
    assert page.sentence.text == "explore: depth must be a number from 2 to 10, got '1000000000'"
    assert not page.waiting  # nothing is drawn for it
    assert page.values["depth"] == 2
    assert isinstance(page.view.picture(page.values), Picture)
    assert json.dumps(page.values)


# --- the command ------------------------------------------------------------------------------


def test_the_command_refuses_before_it_serves(tmp_path):
    foreign = tmp_path / "foreign.nc"
    foreign.write_bytes(b"not a study")
    wrong = {
        (foreign,): "foreign.nc is cut short or is no netCDF file",
        (tmp_path / "none.nc",): "there is no file",
        ("--report", tmp_path): "`penchant verify` writes one",
        ("--host", "0.0.0.0"): "a token is needed",
        ("--host", "0.0.0.0", "--token", "1234"): "at least 16",
        ("--port", "99999"): "at most 65535",
    }
    for words, sentence in wrong.items():
        code, output = penchant_command("explore", *words, PENCHANT_TOKEN=None)
        assert code == 2, output
        assert sentence in " ".join(output.split())


def test_curves_of_unequal_length_travel_together_with_the_ends_of_the_axes():
    from penchant.explore.drawing import columns
    from penchant.explore.picture import Curve, Panel

    def travelling(*curves, **ends):
        return columns(Panel("p", "p", "", "", curves, **ends))

    long, short = Curve("a", np.arange(5.0), np.ones(5)), Curve("b", np.ones(1), np.full(1, 5.0))
    found = travelling(long, short, Curve("c", np.empty(0), np.empty(0)), x_range=(0, 9))
    assert found["x0"] == [0, 1, 2, 3, 4]
    assert found["y1"] == [5, 5, 5, 5, 5]
    assert np.isnan(found["x2"]).all()
    assert found["ends"][:2] == [0, 9]
    assert np.isnan(found["ends"][2:4]).all()  # the other axis stays as it is
    marked = travelling(long, Curve("d", np.ones(1), np.ones(1), "stars"))
    assert np.isfinite(marked["x1"]).tolist() == [True] + 4 * [False]  # no star upon a star
    assert {len(column) for column in found.values()} == {5}
