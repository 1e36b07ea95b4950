"""Every drawing of M and L: its title and caption, and legends beside the curves."""

import pytest

from figure_checks import flat
from penchant.lab import all_claims
from penchant.plotting import styled
from penchant_papers.lyu2023 import paper as L
from penchant_papers.moroshko2020 import paper as M
from slow_experiments import SLOW

DRAWN = [
    id
    for id in (*M.statements, *L.statements)
    if all_claims()[id].draw is not None and id not in SLOW
]


@pytest.mark.parametrize("id", DRAWN)
def test_a_drawing_says_what_it_is(picture_of, id):
    experiment, picture = all_claims()[id], picture_of(id)
    assert flat(picture.get_suptitle()) == flat(experiment.title)
    caption = flat(picture._supxlabel.get_text())
    assert flat(experiment.place) in caption
    assert flat(experiment.ours) in caption
    assert any(axes.get_legend() or axes.get_title(loc="left") for axes in picture.axes)


@pytest.mark.parametrize("id", DRAWN)
def test_no_legend_covers_a_curve(picture_of, id):
    picture, seen = picture_of(id), 0
    with styled():
        picture.canvas.draw()
    for axes in (axes for axes in picture.axes if axes.get_legend()):
        box, inside = axes.get_legend().get_window_extent(), axes.get_window_extent()
        for line in axes.lines:
            points = line.get_transform().transform(line.get_xydata())
            shown = [p for p in points if inside.contains(*p)]
            assert not any(box.contains(*p) for p in shown)
            seen += len(shown)
    assert seen > 6
