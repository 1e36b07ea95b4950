"""Every picture of W's statements and plain figures can be read, and shows the data alone."""

import numpy as np
import pytest

from figure_checks import assert_axes_named, assert_readable
from tacit.papers.registry import library
from tacit.plotting.style import styled

IDS = [
    *("W-K", "W-T1", "W-GA", "W-T2", "W-A", "W-F1", "W-R", "W-F2", "W-T3", "W-F3", "W-T4", "W-F4"),
    *("W-F9", "W-C", "W-L5", "W-L6", "W-L7", "W-L8", "W-T9", "W-C10", "W-L11", "W-L12", "W-L13"),
    *("W-fn1", "W-N", "W-fn4"),
]


@pytest.mark.parametrize("id", IDS)
def test_a_picture_has_named_axes_and_can_be_read(id, data_of):
    picture = library()[id].picture(data_of(id))
    assert_axes_named(picture)
    assert_readable(picture)


def covered(picture):
    """How many drawn points lie under a legend."""
    picture.canvas.draw()
    count = 0
    for axes in (axes for axes in picture.axes if axes.get_legend()):
        box = axes.get_legend().get_window_extent()
        for line in axes.lines:
            points = line.get_transform().transform(line.get_xydata())
            count += int(np.sum([box.contains(*point) for point in points]))
    return count


@pytest.mark.parametrize("id", ["W-F1", "W-F2", "W-F3"])
def test_no_legend_covers_a_curve(id, data_of):
    with styled():
        picture = library()[id].picture(data_of(id))
        assert covered(picture) == 0
        for axes in (axes for axes in picture.axes if axes.get_legend()):
            place = axes.lines[0].get_xydata()[len(axes.lines[0].get_xydata()) // 2]
            axes.legend(loc="center", bbox_to_anchor=place, bbox_transform=axes.transData)
        assert covered(picture) > 0  # the control: a legend on a curve is seen


def test_a_picture_depends_on_the_datasets_alone(data_of):
    shapes, *others = data_of("W-F3")
    pixels = []
    changed = shapes.assign(transition=shapes.transition**2)
    for dataset in (shapes, shapes.copy(deep=True), changed):
        picture = library()["W-F3"].picture([dataset, *others])
        picture.canvas.draw()
        pixels.append(np.asarray(picture.canvas.buffer_rgba()))
    assert np.array_equal(pixels[0], pixels[1])
    assert not np.array_equal(pixels[0], pixels[2])  # the control: other data, another picture
