"""Pictures of W's plain figures: no legend covers a curve, and they show the data alone."""

import numpy as np
import pytest

from penchant.lab import all_claims
from penchant.plotting import styled


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
        picture = all_claims()[id].picture(data_of(id))
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
        picture = all_claims()["W-F3"].picture([dataset, *others])
        picture.canvas.draw()
        pixels.append(np.asarray(picture.canvas.buffer_rgba()))
    assert np.array_equal(pixels[0], pixels[1])
    assert not np.array_equal(pixels[0], pixels[2])  # the control: other data, another picture
