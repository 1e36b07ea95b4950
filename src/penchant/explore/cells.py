"""A phase diagram drawn by bokeh: coloured cells with lines on them; a click chooses a cell."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from penchant.arguments import Array
from penchant.explore.drawing import columns, draw_curves, empty_figure, name_ticks
from penchant.explore.picture import Cells, Panel
from penchant.plotting.style import BLACK, ORANGE, PALE

Choose = Callable[[Mapping[str, float | str]], None]


class DrawnCells:
    """The figure of a grid of cells: one image, so that 10000 cells are drawn at once."""

    def __init__(self, panel: Panel, choose: Choose):
        from bokeh.models import ColumnDataSource, Range1d

        assert panel.cells is not None
        self.cells, self.choose = panel.cells, choose
        self.grid, self.failed, self.frame = (ColumnDataSource({}) for _ in range(3))
        self.lines = ColumnDataSource(_arrays(panel))
        self.figure: Any = empty_figure(panel, x_range=Range1d(), y_range=Range1d())
        self.figure.grid.visible = False
        self._glyphs()
        draw_curves(self.figure, self.lines, panel.curves)
        self._frame()
        self._colour(panel.cells)
        self._choose(panel.cells)
        self.figure.on_event("tap", self._clicked)

    def _glyphs(self) -> None:
        from bokeh.models import HoverTool, LinearColorMapper
        from bokeh.models.annotations.legends import ColorBar
        from bokeh.palettes import Viridis256

        self.mapper = LinearColorMapper(palette=Viridis256, low=0, high=1, nan_color=PALE)
        drawn = self.figure.image(
            "image",
            source=self.grid,
            x=-0.5,
            y=-0.5,
            dw="dw",
            dh="dh",
            color_mapper=self.mapper,
            name="cells",
        )
        for colour, width in (("white", 4), (BLACK, 1.5)):  # seen on dark and on pale cells
            crossed = self.figure.scatter(
                "x", "y", source=self.failed, marker="x", size=7, color=colour, line_width=width
            )
        self.bar = ColorBar(color_mapper=self.mapper, width=10, padding=4)
        self.figure.add_layout(self.bar, "right")
        self.figure.add_tools(
            HoverTool(renderers=[drawn], tooltips=[("", "@image")], description="values"),
            HoverTool(renderers=[crossed], tooltips=[("", "@note")], description="failures"),
        )

    def _frame(self) -> None:
        """The chosen cell, with a ring around it where cells are small."""
        line: Any = {"source": self.frame, "fill_color": None, "line_color": ORANGE}
        self.figure.rect("x", "y", width=1, height=1, line_width=4, **line)
        self.figure.scatter("x", "y", marker="circle", size=14, line_width=3, **line)

    def _clicked(self, event: Any) -> None:
        """Choose the cell under a tap; the coordinates from a browser are not trusted."""
        column = _index_of(event.x, len(self.cells.columns))
        row = _index_of(event.y, len(self.cells.rows))
        if column is not None and row is not None:
            indices = zip(self.cells.names, (column, row), strict=True)
            self.choose({name: index for name, index in indices if name})

    def show(self, panel: Panel) -> None:
        """Change what differs from what is shown."""
        new, old = panel.cells, self.cells
        assert new is not None
        if new.values is not old.values:
            self._colour(new)
            self.lines.data = _arrays(panel)
        if new.chosen != old.chosen or new.values is not old.values:
            self._choose(new)
        self.cells = new

    def _choose(self, cells: Cells) -> None:
        column, row = cells.chosen
        self.frame.data = {"x": [column], "y": [row]}

    def _colour(self, cells: Cells) -> None:
        rows, across = np.nonzero(cells.failed)
        high, wide = cells.values.shape
        image = np.asarray(cells.values, np.float32)  # half the bytes, and finer than the colours
        self.grid.data = {"image": [image], "dw": [wide], "dh": [high]}
        noted = np.reshape(np.array(cells.notes, dtype=object), cells.values.shape)
        self.failed.data = {
            "x": across.tolist(),
            "y": rows.tolist(),
            "note": noted[rows, across].tolist(),
        }
        self.mapper.update(low=cells.span[0], high=cells.span[1])
        self.bar.title = cells.colour_label
        axes = (
            (self.figure.xaxis[0], self.figure.x_range, cells.columns, cells.column_label),
            (self.figure.yaxis[0], self.figure.y_range, cells.rows, cells.row_label),
        )
        for axis, reach, names, label in axes:
            name_ticks(axis, names)
            axis.axis_label = label
            reach.update(start=-0.5, end=len(names) - 0.5)

    def clear(self) -> None:
        """Do nothing after a failed choice; the diagram stays, so that another can be made."""


def _arrays(panel: Panel) -> dict[str, Array]:
    """The columns of the lines; a contour may be long, and arrays are packed faster than lists."""
    return {name: np.array(column) for name, column in columns(panel).items()}


def _index_of(value: Any, count: int) -> int | None:
    """The number of the cell around a coordinate, if there is one."""
    if not isinstance(value, int | float) or not math.isfinite(value):
        return None
    index = math.floor(value + 0.5)
    return index if 0 <= index < count else None
