"""Plots that are plain data, drawn side by side on one sheet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from penchant.arguments import with_parts
from penchant.door import Invalid, door
from penchant.lab.evidence.plot import Plot, Scale, Series
from penchant.mathematics import escape, wrap
from penchant.plotting.style import CYCLE, clear_logs, sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKERS = "os^Dv*"
FEW = 15  # points up to which each has its mark


@door
def panels(title: str, plots: Sequence[Plot], caption: str = "") -> Figure:
    """All of the plots, a panel each."""
    if not plots:
        raise Invalid(f"plots must list one or more, got none for {title!r}")
    for plot in plots:
        with_parts("plots", plot, "a list of Plot", "series", "x_scale", "y_scale")
    captions = [plot.caption for plot in plots if plot.caption]
    picture, axes = sheet(
        title,
        " ".join([*captions, caption]),
        widths=[max(5.2, 7.0 / len(plots))] * len(plots),
        height=4.6,
    )
    for panel, plot in zip(axes, plots, strict=True):
        _draw_plot(panel, plot)
        panel.set_title(escape(wrap(plot.title, 52)))
        panel.set(xlabel=escape(plot.x_label), ylabel=escape(plot.y_label))
        if len(plot.series) > 1:
            panel.legend(fontsize=8)
    return clear_logs(picture)


def _draw_plot(axes: Axes, plot: Plot) -> None:
    """The series of a plot and its scales; titles and legend are left to the caller."""
    for number, series in enumerate(plot.series):
        _draw(axes, series, number, plot, CYCLE[number % len(CYCLE)])
    for axis, scale in (("x", plot.x_scale), ("y", plot.y_scale)):
        values = [drawable(getattr(series, axis), scale) for series in plot.series]
        if any(np.isfinite(part).any() for part in values):  # an empty axis stays linear
            getattr(axes, f"set_{axis}scale")(scale)


def _draw(axes: Axes, series: Series, number: int, plot: Plot, colour: str) -> None:
    x = drawable(series.x, plot.x_scale)
    y = drawable(series.y, plot.y_scale)
    marker = MARKERS[number % len(MARKERS)]
    look: dict[str, Any] = {"color": colour, "label": escape(f" {series.name}")}  # " _a" is shown
    if series.style == "points":
        many = len(x) > 2000  # thousands of vector marks would swell an SVG file
        size = 7.5 if len(x) <= 20 else 5.0 if len(x) <= 100 else 3.5
        axes.plot(x, y, marker, ms=size, alpha=0.75, mew=0, rasterized=many, **look)
        return
    look |= {"drawstyle": "steps-post"} if series.style == "steps" else {}
    dash = "--" if series.style == "dashed" else "-"
    # a few marks on each curve distinguish the curves without colour; short ones have all
    every = (0.04 + 0.03 * number, 0.2) if len(x) >= FEW else 1
    marks = {"marker": marker, "ms": 4.5, "markevery": every}
    look |= marks if len(plot.series) > 1 and np.isfinite(x + y).any() else {}
    axes.plot(x, y, dash, lw=1.6, **look)


def drawable(values: object, scale: Scale) -> np.ndarray:
    """The values with NaN in place of what the axis cannot show."""
    array = np.asarray(values, dtype=float)
    visible = np.isfinite(array) & ((array > 0) | (scale != "log"))
    return np.where(visible, array, np.nan)
