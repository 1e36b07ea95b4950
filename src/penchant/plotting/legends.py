"""Legends of pictures for papers: below their panel where they would cover what it shows."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np

from penchant.arguments import Array
from penchant.plotting.paper import TYPE, broken

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GAP = 3.0  # points between the panel with its labels and the legend
COMPACT: dict[str, Any] = {"columnspacing": 1.0, "handlelength": 1.6, "handletextpad": 0.4}


def move_legends(figure: Figure) -> None:
    """Put legends that cover data, or are not within their panel, below it, in a higher figure."""
    engine = figure.get_layout_engine()
    if engine is None:
        return
    for axes in figure.axes:
        if (legend := axes.get_legend()) is not None:
            legend.set_in_layout(False)  # one that is too wide would leave no room for its panel
    engine.execute(figure)
    for axes in figure.axes:  # long names of rows leave less room for the label below
        axes.set_xlabel(broken(axes.get_xlabel(), 1.25 * axes.bbox.width / figure.dpi))
    wide, high = figure.get_size_inches()
    more: dict[int, float] = defaultdict(float)  # inches below each row of panels
    for axes in figure.axes:
        legend = axes.get_legend()
        if legend is not None and _is_in_the_way(axes, legend.get_window_extent()):
            row, inches = _move_below(figure, axes, legend)
            more[row] = max(more[row], inches)
    if more:
        figure.set_size_inches(wide, high + sum(more.values()))
        engine.execute(figure)


def _is_in_the_way(axes: Axes, box: Any) -> bool:
    frame = axes.bbox.padded(2.0)
    inside = frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1
    return not inside or any(box.count_contains(points) for points in _drawn(axes))


def _drawn(axes: Axes) -> list[np.ndarray]:
    """Places in pixels of all curves, marks and texts of a panel."""
    curves = [
        filled(line.get_transform().transform(line.get_xydata()))
        for line in axes.lines
        if line.get_linestyle() not in ("None", "", " ")
    ]
    marks = [
        line.get_transform().transform(line.get_xydata())
        for line in axes.lines
        if line.get_marker() not in ("None", "", " ", None)
    ]
    dots = [part.get_offset_transform().transform(part.get_offsets()) for part in axes.collections]
    words = [text.get_window_extent().corners() for text in axes.texts if text.get_text().strip()]
    every = (np.asarray(points, dtype=float).reshape(-1, 2) for points in curves + marks + dots)
    return [points[np.isfinite(points).all(axis=1)] for points in every] + words


def _move_below(figure: Figure, axes: Axes, legend: Any) -> tuple[int, float]:
    """Make the legend again below its panel; the row of the panel, and the height in inches."""
    from matplotlib.transforms import ScaledTranslation

    labels = [text.get_text() for text in legend.get_texts()]
    given = {"handles": legend.legend_handles, "title": legend.get_title().get_text() or None}
    legend.remove()
    whole = axes.get_tightbbox() or axes.bbox
    down = (axes.bbox.y0 - whole.y0) / figure.dpi + GAP / 72
    place = axes.transAxes + ScaledTranslation(0.0, -down, figure.dpi_scale_trans)
    room, own = axes.bbox.x1 - whole.x0, axes.bbox.width
    for count in range(min(len(labels), 4), 0, -1):
        made = axes.legend(
            labels=labels, ncols=count, loc="upper center", bbox_to_anchor=(0.5, 0.0),
            bbox_transform=place, borderaxespad=0.0, fontsize=TYPE, frameon=False,
            **given, **COMPACT,
        )  # fmt: skip
        box = made.get_window_extent()
        if box.width <= room or count == 1:
            break
    if box.width > own:  # it reaches below the labels of the vertical axis
        made.set_loc("upper right")
        made.set_bbox_to_anchor((1.0, 0.0), transform=place)
    spec = axes.get_subplotspec()
    row = spec.rowspan.start if spec else 0
    return row, (box.height / figure.dpi) + GAP / 72


def filled(corners: Array) -> Array:
    """The corners of a curve in pixels, and points between them about two pixels apart."""
    known = corners[np.isfinite(corners).all(axis=1)]
    if len(known) < 2:
        return known
    way = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(known, axis=0), axis=1))])
    at = np.linspace(0, way[-1], int(way[-1] / 2) + 2)
    return np.stack([np.interp(at, way, side) for side in known.T], axis=-1)
