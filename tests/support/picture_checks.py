"""What the picture of an experiment must pass: axes named, texts typeset, legends aside."""

import numpy as np

from figure_checks import assert_axes_named, assert_readable


def assert_can_be_read(picture):
    assert_readable(picture)
    assert_axes_named(picture)
    for axes in (axes for axes in picture.axes if axes.get_legend()):
        assert covered(axes) < 0.02, axes.get_title(loc="left")


def covered(axes):
    """The share of the points of the curves that lie behind the legend."""
    box, inside = axes.get_legend().get_window_extent(), axes.get_window_extent()
    places = [line.get_transform().transform(line.get_xydata()) for line in axes.lines]
    points = [p for rows in places for p in rows if np.isfinite(p).all() and inside.contains(*p)]
    return np.mean([box.contains(*p) for p in points])
