"""How every picture looks: colour-blind-safe colours, readable type, a caption under the panels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penchant.arguments import positive, with_parts
from penchant.arguments import text as require_text
from penchant.door import Invalid, door
from penchant.mathematics import FORMULA, escape, in_terminal, wrap
from penchant.plotting.mplstyle import page
from penchant.plotting.paper import arranged

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from xarray import Dataset


# Okabe and Ito's palette: distinct under the common forms of colour blindness and in grey.
BLUE, RED, GREEN, ORANGE = "#0072B2", "#D55E00", "#009E73", "#E69F00"
SKY, PURPLE, BLACK, GREY = "#56B4E9", "#CC79A7", "#222222", "#767676"
PALE = "#E8ECEF"
CYCLE = (BLUE, RED, GREEN, PURPLE, ORANGE, SKY, BLACK)


def require_axes(axes: object) -> None:
    """Raises a ValueError unless these are axes of matplotlib."""
    with_parts("axes", axes, "axes of matplotlib", "plot", "annotate", "get_figure")


def require_lengths(**given: Sequence[float]) -> None:
    """Raises a ValueError unless each lists one positive number or more."""
    for name, values in given.items():
        if isinstance(values, str) or not hasattr(values, "__len__") or not len(values):
            raise Invalid(f"{name} must list one number > 0 or more, got {values!r:.80}")
        for value in values:
            positive(name, value)


@door
def sheet(
    title: str,
    caption: str = "",
    widths: Sequence[float] = (6.0,),
    height: float = 4.2,
    rows: Sequence[float] = (1.0,),
) -> tuple[Figure, list[Axes]]:
    """An empty figure with a title, a caption line and one panel for every width in inches.

    `rows` are the heights of several rows of panels, relative to each other.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    from penchant.plotting.picture import ShownFigure

    require_text("title", title)
    require_text("caption", caption)
    require_lengths(widths=widths, height=[height], rows=rows)
    chosen = page()
    layout, count = arranged(widths, height, rows, chosen), len(rows) * len(widths)
    figure = ShownFigure(figsize=(sum(layout.widths), layout.height), layout="constrained")
    FigureCanvasAgg(figure)
    ratios: Any = {"width_ratios": list(layout.widths), "height_ratios": list(layout.rows)}
    grid = figure.add_gridspec(len(layout.rows), len(layout.widths), **ratios)
    axes = [figure.add_subplot(grid[place]) for place in range(count)]
    if not chosen.bare:
        more = _head(figure, title, caption, small=chosen.width is not None)
        if chosen.width is not None:  # the panels keep their height
            figure.set_figheight(layout.height + more)
    return figure, axes


def _head(figure: Figure, title: str, caption: str, small: bool) -> float:
    """The title above the panels and the caption below them, in lines that fit; their inches."""
    wide = figure.get_figwidth()
    size, letters = (7.0, 18.8) if small else (8.0, 16.5)  # points, letters in an inch
    lines = wrap(title, int(wide * (12.2 if small else 8.7)))
    heading = FORMULA.sub(r"$\\boldsymbol{\1}$", escape(lines))
    figure.suptitle(heading, x=0.01, ha="left")
    high = 0.17 * (1 + lines.count("\n"))
    if caption:
        lines = escape(wrap(caption, int(wide * letters)))
        figure.supxlabel(lines, x=0.01, ha="left", fontsize=size, color=GREY)
        high += size / 60 * (1 + lines.count("\n"))
    return high


@door
def sheet_of(
    dataset: Dataset,
    widths: Sequence[float] = (6.0,),
    height: float = 4.2,
    rows: Sequence[float] = (1.0,),
    before: str = "",
    after: str = "",
) -> tuple[Figure, list[Axes]]:
    """The sheet of an experiment's dataset, with sentences before and after its caption."""
    with_parts("dataset", dataset, "a dataset with a title", "attrs", "title")
    require_lengths(widths=widths, height=[height], rows=rows)
    caption = f"{before} {caption_of(dataset.attrs)} {after}".strip()
    return sheet(dataset.attrs["title"], caption, widths, height, rows)


def caption_of(attributes: Mapping[str, Any]) -> str:
    """The caption line: source and size, and which parameters are ours."""
    if not isinstance(attributes, Mapping):
        seen = type(attributes).__name__
        raise ValueError(f"caption_of: attributes must be those of a dataset, got {seen}")
    parts = [f"After {attributes.get('source', 'no source')}."]
    if "size" in attributes:
        size = attributes["size"]
        parts.append(f"Size {size}; quantities have no unit unless an axis names one.")
    if attributes.get("ours"):
        parts.append(f"Ours: {attributes['ours']}.")
    return " ".join(parts)


@door
def end_label(axes: Axes, x: float, y: float, text: str, colour: str, **placing: Any) -> None:
    """Write `text` beside the point (x, y), in the colour of its curve."""
    require_axes(axes)
    require_text("text", text)
    options = {"xytext": (5, 0), "va": "center", "ha": "left", **placing}
    axes.annotate(text, (x, y), textcoords="offset points", color=colour, fontsize=9, **options)


@door
def log_axes(axes: Axes, x_label: str, y_label: str, **others: Any) -> None:
    """Make both axes logarithmic and label them; `others` are passed to `axes.set`."""
    require_axes(axes)
    require_text("x_label", x_label)
    require_text("y_label", y_label)
    axes.set(xscale="log", yscale="log", xlabel=x_label, ylabel=y_label, **others)


@door
def clear_logs(figure: Figure) -> Figure:
    """The figure with numbers only at powers of ten if two are in view, else at 1, 2 and 5.

    Matplotlib writes 2 x 10^-2, 3 x 10^-2, 4 x 10^-2, ... on an axis of about a decade, and these
    overlap. This is decided after the drawing, because it depends on the limits. Where three
    powers are in view there are no ticks between them, because their layout takes half of the time.
    The numbers are plain text, 10⁻², which matplotlib lays out much faster than a formula. Where
    not even two of 1, 2 and 5 are in view all numbers are written, as 0.2, 0.3, 0.4.
    """
    from matplotlib.ticker import (
        FuncFormatter,
        LogFormatter,
        LogFormatterMathtext,
        NullFormatter,
        NullLocator,
    )

    with_parts("figure", figure, "a figure of matplotlib", "axes", "savefig")
    panels: list[Any] = [*figure.axes]
    panels += [child for axes in figure.axes for child in axes.child_axes]
    for axes in panels:
        for axis, ends in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
            logarithmic = axis.get_scale() == "log" and min(ends) > 0  # not without any data
            if logarithmic and isinstance(axis.get_minor_formatter(), LogFormatter):
                powers, low, high = _powers(*sorted(ends)), *sorted(ends)
                if sum(_powers(low / front, high / front) for front in (1, 2, 5)) < 2:
                    axis.set_minor_formatter(FuncFormatter(_plain))
                    if isinstance(axis.get_major_formatter(), LogFormatterMathtext):
                        axis.set_major_formatter(FuncFormatter(_plain))
                    continue
                formatter = NullFormatter() if powers >= 2 else FuncFormatter(_at_two_and_five)
                axis.set_minor_formatter(formatter)
                if isinstance(axis.get_major_formatter(), LogFormatterMathtext):
                    axis.set_major_formatter(FuncFormatter(_at_each))
                if powers >= 3:
                    axis.set_minor_locator(NullLocator())
    return figure


def _powers(low: float, high: float) -> int:
    """How many powers of ten lie between two positive numbers."""
    return math.floor(math.log10(high) + 1e-9) - math.ceil(math.log10(low) - 1e-9) + 1


def _plain(value: float, _: Any) -> str:
    return f"{value:g}" if 1e-3 <= value < 1e4 else _at_each(value, None)


def _at_two_and_five(value: float, _: Any) -> str:
    front, exponent = _in_tens(value)
    return _written(front, exponent) if round(front) in (2, 5) else ""


def _at_each(value: float, _: Any) -> str:
    return _written(*_in_tens(value)) if value > 0 else ""


def _in_tens(value: float) -> tuple[float, int]:
    """The front and the exponent of a positive number: 2 and -3 of 0.002."""
    exponent = math.floor(math.log10(value) + 1e-9)
    return value / 10.0**exponent, exponent


def _written(front: float, exponent: int) -> str:
    ten = in_terminal(f"$10^{{{exponent}}}$")
    return ten if math.isclose(front, 1, rel_tol=1e-8) else f"{front:.4g} × {ten}"
