"""The data of a picture as a table: every curve, point, bar and coloured cell that it shows."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from penchant.mathematics import in_terminal

BARE = (None, "", " ", "None")
HEAD = ("panel", "x_label", "y_label", "series", "x", "y", "value")


class DrawnSeries(NamedTuple):
    """What one artist shows: the coordinates of its points, and their values if it has colours."""

    series: str
    x: Any
    y: Any
    value: Any = None
    look: Any = None  # of a curve


def table_of(figure: Any) -> str:
    """The data of all panels as CSV, a row for each point, in the order in which they are drawn."""
    stream, legends = io.StringIO(newline=""), _legends(figure)
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(HEAD)
    for number, axes in enumerate(figure.axes):
        titles = (axes.get_title(place) for place in ("left", "center", "right"))
        title = next((text for text in titles if text), f"panel {number + 1}")
        labels = [_words(text) for text in (title, axes.get_xlabel(), axes.get_ylabel())]
        for drawn in _drawn(axes):
            value = np.full(np.size(drawn.x), "") if drawn.value is None else drawn.value
            series = drawn.series or legends.get(drawn.look, "")
            for x, y, v in zip(drawn.x, drawn.y, value, strict=True):
                writer.writerow([*labels, series, _number(x), _number(y), _number(v)])
    return stream.getvalue()


def _legends(figure: Any) -> dict[Any, str]:
    """What the legends say of curves with a look, where one entry alone has it."""
    from matplotlib.lines import Line2D

    entries: dict[Any, set[str]] = {}
    for legend in [*figure.legends, *filter(None, (axes.get_legend() for axes in figure.axes))]:
        for handle, text in zip(legend.legend_handles, legend.get_texts(), strict=False):
            if isinstance(handle, Line2D):
                entries.setdefault(_look(handle), set()).add(_words(text.get_text()))
    return {look: texts.pop() for look, texts in entries.items() if len(texts) == 1}


def _look(line: Any) -> Any:
    """What tells a curve from others: its colour, its dashes and its marks."""
    from matplotlib.colors import to_hex

    marker = line.get_marker()
    return to_hex(line.get_color()), line.get_linestyle(), "" if marker in BARE else marker


def _drawn(axes: Any) -> Iterator[DrawnSeries]:
    from matplotlib.collections import PathCollection, QuadMesh
    from matplotlib.container import BarContainer

    for line in axes.lines:
        if line.get_transform() == axes.transData and len(line.get_xdata()):
            yield DrawnSeries(_name(line), line.get_xdata(), line.get_ydata(), None, _look(line))
    for artist in axes.collections:
        if isinstance(artist, QuadMesh):
            yield _cells(artist)
        elif isinstance(artist, PathCollection) and np.size(artist.get_offsets()):
            yield _points(artist)
    for bars in axes.containers:
        if isinstance(bars, BarContainer):
            middles = [bar.get_x() + bar.get_width() / 2 for bar in bars]
            yield DrawnSeries(_name(bars), middles, [bar.get_height() for bar in bars])


def _cells(mesh: Any) -> DrawnSeries:
    """The middles of coloured cells."""
    corners = mesh.get_coordinates()
    x, y = ((corners[1:, 1:] + corners[:-1, :-1]) / 2).reshape(-1, 2).T
    return DrawnSeries(_name(mesh), x, y, np.ma.filled(mesh.get_array(), np.nan).reshape(-1))


def _points(marks: Any) -> DrawnSeries:
    x, y = np.ma.filled(marks.get_offsets(), np.nan).T
    colours = marks.get_array()
    known = colours is not None and np.size(colours) == len(x)
    return DrawnSeries(_name(marks), x, y, np.ma.filled(colours, np.nan) if known else None)


def _name(artist: Any) -> str:
    label = str(artist.get_label())
    return "" if label.startswith("_") else _words(label)


def _words(text: str) -> str:
    return " ".join(in_terminal(text).split())


def _number(value: Any) -> str:
    """A number with all its digits, a text as it is, nothing for what is missing."""
    if isinstance(value, int | float | np.number):
        return repr(float(value)) if np.isfinite(value) else ""
    return str(value)
