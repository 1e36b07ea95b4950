"""Pictures at their size in a paper: panels in columns, and labels that are not too long."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from penchant.mathematics import in_terminal, wrap
from penchant.plotting.mplstyle import Page

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NARROWEST = 1.9  # inches that a panel needs
LONGEST = 16  # letters of a name on an axis
LETTERS = 15.0  # in an inch
TALLEST = 9.0  # inches of all panels, as high as a page
TYPE = 7.0  # points of the letters of a legend


class SheetLayout(NamedTuple):
    """The widths of the columns, the height of the figure, the relative heights of the rows."""

    widths: tuple[float, ...]
    height: float
    rows: tuple[float, ...]


def arranged(
    widths: Sequence[float], height: float, rows: Sequence[float], page: Page
) -> SheetLayout:
    """The layout of a sheet on this page; one row of panels too narrow for it becomes several."""
    if page.width is None:
        return SheetLayout(tuple(widths), height, tuple(rows))
    count, total = len(widths), sum(widths)
    tall = height / len(rows) / (total / count)  # of one panel, over its width
    columns = count
    if page.width / count < NARROWEST:
        columns = max(1, int(page.width / NARROWEST))
    lines = math.ceil(count * len(rows) / columns) if columns < count else len(rows)
    wide = page.width / columns
    if count > 1 or len(rows) > 1:
        tall = min(max(tall, 0.62), 0.75, TALLEST / (lines * wide))
    share = [page.width * width / total for width in widths]
    return SheetLayout(
        tuple(share if columns == count else [wide] * columns),
        lines * wide * tall,
        tuple(rows if columns == count else [1.0] * lines),
    )


def fit(figure: Figure, page: Page) -> None:
    """Break labels of panels that are longer than their panel, and make legends small."""
    from matplotlib.ticker import FixedLocator

    if page.width is None:
        return
    for axes in figure.axes:
        spec = axes.get_subplotspec()
        grid = spec.get_gridspec() if spec else None
        wide, high = figure.get_size_inches()
        if grid is not None:
            wide, high = wide / grid.ncols, high / grid.nrows
        for place in ("left", "center", "right"):
            axes.set_title(broken(axes.get_title(place), wide), loc=place)
        axes.set_xlabel(broken(axes.get_xlabel(), wide))
        axes.set_ylabel(broken(axes.get_ylabel(), high))
        if isinstance(axes.yaxis.get_major_locator(), FixedLocator):
            names = [label.get_text() for label in axes.get_yticklabels()]
            if max(map(len, names), default=0) > LONGEST:
                axes.set_yticks(axes.get_yticks(), [wrap(name, LONGEST) for name in names])
        if isinstance(axes.xaxis.get_major_locator(), FixedLocator):
            names = [t.get_text() for t in axes.get_xticklabels() if not t.get_rotation()]
            most = max(int(0.8 * wide * LETTERS / max(len(names), 1)), 6)
            if max(map(len, names), default=0) > most and "$" not in "".join(names):
                axes.set_xticks(axes.get_xticks(), [wrap(name, most) for name in names])
        legend = axes.get_legend()
        for text in legend.get_texts() if legend else ():
            text.set_fontsize(min(text.get_fontsize(), TYPE))


def broken(text: str, inches: float) -> str:
    """The text in lines that fit beside or above a panel of so many inches."""
    most = max(int(0.8 * inches * LETTERS), 10)
    lines: list[Any] = text.split("\n")
    if max(len(in_terminal(line)) for line in lines) <= most:
        return text
    return wrap(" ".join(lines), most)
