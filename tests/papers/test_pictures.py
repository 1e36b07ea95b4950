"""Every picture can be read: axes are named, mathematics is typeset, no text covers another."""

import pytest

from expected_statuses import SLOW
from figure_checks import assert_axes_named, assert_readable
from tacit.papers.registry import library

IDS = [id for id in library().ids if id not in SLOW]


@pytest.mark.parametrize("id", IDS)
def test_a_picture_has_named_axes_and_can_be_read(id, data_of):
    picture = library()[id].picture(data_of(id))
    assert_axes_named(picture)
    assert_readable(picture)


def test_the_panels_of_the_sphere_s_figure_are_aligned_and_its_legend_is_short(data_of):
    picture = library()["M-F3"].picture(data_of("M-F3"))
    a, b, c, d = (axes for axes in picture.axes if axes in picture.axes[:4])
    picture.canvas.draw()
    assert c.get_position().y0 == pytest.approx(d.get_position().y0)
    assert c.get_position().y1 == pytest.approx(d.get_position().y1)
    assert b.get_position().x0 == pytest.approx(d.get_position().x0)
    assert a.get_position().y1 == pytest.approx(b.get_position().y1)
    assert len(a.get_legend().get_texts()) <= 8
