"""A panel drawn by bokeh: made once, then only its numbers change."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from penchant.arguments import Array
from penchant.explore.access import readable
from penchant.explore.picture import Curve, Panel
from penchant.plotting.style import BLACK

if TYPE_CHECKING:
    from bokeh.models import ColumnDataSource
    from bokeh.plotting import figure as Figure

MARKERS = {"points": "circle", "crosses": "x", "stars": "star", "squares": "square"}
SIZES = {"points": 6, "crosses": 9, "stars": 15, "squares": 8}
DASHES = {"line": "solid", "dashed": "dashed", "dotted": "dotted"}
TICKS = 6  # along an axis: each costs a browser as much as a hundred points
HEIGHT, SIDE = 340, 250  # pixels of a panel, and of the frame of a square one


# one message moves curves and axes together, so that nothing is painted in between
FOLLOW = """
const {ends} = cb_obj.data
const move = (range, start, end) => {
  if (isFinite(start)) range.setv({start, end, reset_start: start, reset_end: end}, {sync: false})
}
if (ends.length > 3) { move(x, ends[0], ends[1]); move(y, ends[2], ends[3]) }
"""


class Drawn:
    """A figure of bokeh with one source for all of its curves: one message redraws it."""

    def __init__(self, panel: Panel):
        from bokeh.models import ColumnDataSource, CustomJS

        self.figure: Any = empty_figure(panel)
        self.image = _image(self.figure, panel)
        self.source = ColumnDataSource(columns(panel))
        drawn = draw_curves(self.figure, self.source, panel.curves)
        self.hover = hover(self.figure, panel, drawn)
        ranges = {"x": self.figure.x_range, "y": self.figure.y_range}
        self.source.js_on_change("data", CustomJS(code=FOLLOW, args=ranges))
        self.shown = panel
        self._name_values(panel)

    def show(self, panel: Panel) -> None:
        """Change what differs from what is shown."""
        if self.image is not None and panel.image is not self.shown.image:
            self.image.data = {"image": [panel.image]}
        self.figure.xaxis.axis_label, self.figure.yaxis.axis_label = panel.x_label, panel.y_label
        if tooltips(panel) != tooltips(self.shown):
            self.hover.tooltips = tooltips(panel)
        if not same(panel, self.shown):  # a panel that stays is not painted again
            self.source.data = columns(panel)
        if panel.x_names != self.shown.x_names:
            self._name_values(panel)
        self.shown = panel

    def _name_values(self, panel: Panel) -> None:
        if panel.x_names:
            name_ticks(self.figure.xaxis[0], panel.x_names)

    def clear(self) -> None:
        """Show no curve."""
        self.source.data = {name: [] for name in self.source.data}
        self.shown = dataclasses.replace(self.shown, curves=())


def same(new: Panel, old: Panel) -> bool:
    """Whether two panels have the same curves between the same ends."""
    pairs = zip(new.curves, old.curves, strict=False)
    return (
        (new.x_range, new.y_range) == (old.x_range, old.y_range)
        and len(new.curves) == len(old.curves)
        and all(_equal(a.x, b.x) and _equal(a.y, b.y) for a, b in pairs)
    )


def _equal(new: Array, old: Array) -> bool:
    return new is old or np.array_equal(new, old, equal_nan=True)


def columns(panel: Panel) -> dict[str, list[float]]:
    """x0, y0, x1, ... of equal length, as a source requires, and the `ends` of both axes.

    Lines are filled up with their last point, markers with none. Lists travel inside one message;
    an array would be two more messages.
    """
    nowhere = (np.nan, np.nan)
    ends = np.array([*(panel.x_range or nowhere), *(panel.y_range or nowhere)])
    longest = max([len(ends), *(len(curve.x) for curve in panel.curves)])
    lists = {"ends": _filled(ends, longest, 0.0)}
    for index, curve in enumerate(panel.curves):
        for side, values in (("x", curve.x), ("y", curve.y)):
            repeated = len(values) and not (side == "x" and curve.style in MARKERS)
            lists[f"{side}{index}"] = _filled(values, longest, values[-1] if repeated else np.nan)
    return lists


def _filled(values: Array, length: int, filler: float) -> list[float]:
    rest = np.full(length - len(values), filler)
    return list(np.concatenate([values, rest]).tolist())


def empty_figure(panel: Panel, **more: Any) -> Figure:
    """The axes of a panel, as wide as the page lets them be or square."""
    from bokeh.models import Range1d
    from bokeh.plotting import figure

    size: dict[str, Any] = {"sizing_mode": "stretch_width", "height": HEIGHT, "min_width": 280}
    if panel.square:
        side = SIDE + 50 if panel.bare else SIDE
        size = {"frame_width": side, "frame_height": side}
    ranges: dict[str, Any] = {
        name: Range1d(start=span[0], end=span[1])
        for name, span in (("x_range", panel.x_range), ("y_range", panel.y_range))
        if span
    }
    made: Any = figure(
        name=panel.name,
        x_axis_label=panel.x_label,
        y_axis_label=panel.y_label,
        x_axis_type=panel.x_scale,
        y_axis_type=panel.y_scale,
        active_drag=None,
        active_scroll=None,
        tools="pan,box_zoom,reset,save",
        stylesheets=[readable()],
        **size,
        **ranges,
        **more,
    )
    made.toolbar.logo = None
    for axis in made.axis:
        axis.ticker.update(desired_num_ticks=TICKS - 1, num_minor_ticks=0)
    made.axis.axis_label_text_font_style = "normal"
    made.axis.axis_label_text_font_size = made.axis.major_label_text_font_size = "13px"
    made.axis.visible = not panel.bare
    made.grid.visible = not panel.bare
    made.outline_line_alpha = 0.0 if panel.bare else 1.0
    return made


def draw_curves(figure: Any, source: ColumnDataSource, curves: Sequence[Curve]) -> list[Any]:
    """One glyph for every curve, fed from `columns` of the curves."""
    return [_glyph(figure, source, index, curve) for index, curve in enumerate(curves)]


def tooltips(panel: Panel) -> list[tuple[str, str]]:
    """The tooltip of a curve: its name, and its values with the names of the axes."""
    numbers = [(panel.x_label, "$snap_x{%.4g}"), (panel.y_label, "$snap_y{%.4g}")]
    shown = numbers[1:] if panel.x_names else numbers
    return [("", "$name"), *(pair for pair in shown if pair[0])]


def hover(figure: Any, panel: Panel, drawn: Sequence[Any]) -> Any:
    """The tool that shows the tooltips; filled bands have none, since they lie under curves."""
    from bokeh.models import HoverTool

    pairs = zip(drawn, panel.curves, strict=True)
    tool = HoverTool(
        renderers=[glyph for glyph, curve in pairs if curve.style != "band"],
        tooltips=tooltips(panel),
        formatters={"$snap_x": "printf", "$snap_y": "printf"},
        line_policy="nearest",
        description="names and values of curves",
    )
    figure.add_tools(tool)
    return tool


def name_ticks(axis: Any, names: Sequence[str]) -> None:
    """Write names at 0, 1, 2, ..., at most TICKS of them."""
    from bokeh.models import FixedTicker, NoOverlap

    positions = ticks(len(names))
    if not isinstance(axis.ticker, FixedTicker):  # a new model makes bokeh search the document
        axis.update(ticker=FixedTicker(minor_ticks=[]), major_label_policy=NoOverlap())
    axis.ticker.ticks = positions
    axis.major_label_overrides = {index: names[index] for index in positions}


def ticks(count: int) -> list[int]:
    """At most TICKS places, evenly spread over `count` values."""
    return list(range(0, count, max(1, -(-count // TICKS))))


def _glyph(figure: Any, source: ColumnDataSource, index: int, curve: Curve) -> Any:
    at, named = (f"x{index}", f"y{index}"), {"source": source, "name": curve.name}
    if curve.style == "band":
        return figure.patch(*at, **named, fill_color=curve.colour, line_color=None)
    if curve.style in MARKERS:
        cross = curve.style == "crosses"
        return figure.scatter(
            *at,
            **named,
            marker=MARKERS[curve.style],
            color=curve.colour,
            size=SIZES[curve.style],
            line_width=2 if cross else 1,
            line_color=curve.colour if cross else BLACK,
        )
    if curve.rim:
        figure.line(*at, source=source, color="white", line_width=curve.rim)
    return figure.line(
        *at,
        **named,
        color=curve.colour,
        line_width=curve.width,
        line_dash=DASHES[curve.style],
    )


def _image(figure: Any, panel: Panel) -> ColumnDataSource | None:
    from bokeh.models import ColumnDataSource

    if panel.image is None:
        return None
    source = ColumnDataSource({"image": [panel.image]})
    figure.image_rgba("image", source=source, x=-1, y=-1, dw=2, dh=2, level="underlay")
    return source
