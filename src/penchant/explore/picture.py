"""The content of a view as plain arrays: panels of curves, an image or cells, and a sentence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from penchant.arguments import Array

Style = Literal["line", "dashed", "dotted", "points", "crosses", "stars", "squares", "band"]
Scale = Literal["linear", "log"]
Range = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Curve:
    """One line, cloud of points or filled outline; `in_legend` puts it into the legend.

    `rim` is the width of a white line below it, which keeps it visible on every colour.
    """

    name: str
    x: Array
    y: Array
    style: Style = "line"
    colour: str = "#222222"
    width: float = 2.0
    in_legend: bool = True
    rim: float = 0.0


@dataclass(frozen=True, eq=False)
class Cells:
    """A grid of coloured cells, by rows; NaN has no colour, and `failed` ones get a cross.

    `span` are the ends of the colours; `notes` are read when a failed cell is pointed at. A click
    sets the controls called `names` to the column and the row of the cell; an empty name is not
    set. Cell (column, row) is centred there, so that curves of the panel can be laid over them.
    """

    columns: tuple[str, ...]
    rows: tuple[str, ...]
    values: Array
    span: Range
    failed: NDArray[np.bool_]
    notes: tuple[str, ...]
    chosen: tuple[int, int]
    names: tuple[str, str]
    colour_label: str
    column_label: str
    row_label: str


@dataclass(frozen=True, eq=False)
class Panel:
    """A pair of axes. The curves of a view keep their names and their order in every state."""

    name: str
    title: str
    x_label: str
    y_label: str
    curves: tuple[Curve, ...] = ()
    x_scale: Scale = "linear"
    y_scale: Scale = "linear"
    x_range: Range | None = None
    y_range: Range | None = None
    square: bool = False
    bare: bool = False  # without axes
    image: NDArray[np.uint32] | None = None  # RGBA over [-1, 1]^2
    cells: Cells | None = None
    x_names: tuple[str, ...] = ()  # written at 0, 1, 2, ... in place of numbers
    dragged: tuple[str, str] | None = None  # the sliders that a drag across and up moves


@dataclass(frozen=True, eq=False)
class Picture:
    """All panels of a view, and one sentence about them."""

    panels: tuple[Panel, ...]
    sentence: str
    values: dict[str, float] = field(default_factory=dict)


def line(x: float, y: Range) -> tuple[Array, Array]:
    """A vertical line at `x`; nothing where x is not a finite number."""
    if not np.isfinite(x):
        return np.empty(0), np.empty(0)
    return np.full(2, x), np.array(y, dtype=float)


def level(x: Range, y: float) -> tuple[Array, Array]:
    """A horizontal line at `y`."""
    return np.array(x, dtype=float), np.full(2, y)


def reach(*parts: Array, room: float = 0.06, least: float = 1e-9) -> Range:
    """A range around all finite values, with some room; (0, 1) where there are none."""
    every = np.concatenate([np.ravel(part) for part in parts])
    finite = every[np.isfinite(every)]
    if not finite.size:
        return 0.0, 1.0
    low, high = float(finite.min()), float(finite.max())
    more = max(room * (high - low), least, 1e-6 * abs(high))
    return low - more, high + more
