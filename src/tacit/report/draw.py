"""Plots of claims as inline SVG that takes its colours from the page."""

from __future__ import annotations

import html
import io
import re
from typing import TYPE_CHECKING, Any

from tacit.evidence.plot import Plot
from tacit.plotting.plots import draw_plot
from tacit.plotting.ticks import clear_logs
from tacit.report.markup import Markup

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Stand-ins that are replaced by CSS variables, so that one drawing serves light and dark.
INK, GRID = "#010101", "#020202"
SERIES = [f"#0{n}0{n}0{n}" for n in range(3, 9)]
VARIABLES = {INK: "currentColor", GRID: "var(--line)"} | {
    color: f"var(--series-{n})" for n, color in enumerate(SERIES, start=1)
}
SIZE = (5.0, 3.4)  # inches: small, so that the text stays legible on a phone


def svg(plot: Plot, prefix: str) -> Markup:
    """The plot as an <svg> element; `prefix` keeps its ids apart from those of other plots."""
    import matplotlib

    buffer = io.StringIO()
    settings: Any = {"svg.fonttype": "none", "svg.hashsalt": prefix, "font.size": 9}
    with matplotlib.rc_context(settings):
        figure(plot).savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    return _inlined(buffer.getvalue(), plot.title, prefix)


def figure(plot: Plot) -> Figure:
    """The plot as a matplotlib figure in the stand-in colours."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=SIZE, layout="constrained")
    axes = drawn.add_subplot()
    draw_plot(axes, plot, SERIES)
    axes.set_xlabel(plot.x_label, color=INK, parse_math=False)
    axes.set_ylabel(plot.y_label, color=INK, parse_math=False)
    _plain_frame(axes)
    _legend(axes, plot)
    return clear_logs(drawn)


def _plain_frame(axes: Axes) -> None:
    axes.grid(True, color=GRID, lw=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(which="both", color=GRID, labelcolor=INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GRID)


def _legend(axes: Axes, plot: Plot) -> None:
    if len(plot.series) < 2:
        return
    names = [f" {series.name}" for series in plot.series]  # a leading "_" would hide the entry
    legend = axes.figure.legend(
        axes.lines, names, loc="outside upper left", frameon=False, ncols=2, labelcolor=INK
    )
    for text in legend.get_texts():
        text.set_parse_math(False)


def _inlined(text: str, title: str, prefix: str) -> Markup:
    """The <svg> element of a file: without metadata and size, with its own ids, page colours."""
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r'\b(id="|href="#|url\(#)', rf"\g<1>{prefix}-", text)
    text = re.sub(r"font(-family)?: ?([\d.]+px )?[^;\"]*", _own_font, text)
    for color, variable in VARIABLES.items():
        text = text.replace(color, variable)
    head, body = text.split(">", maxsplit=1)
    head = re.sub(r' (width|height)="[^"]*"', "", head)  # the page decides the size
    return Markup(f'{head} role="img" aria-label="{html.escape(title)}">{body}')


def _own_font(match: re.Match[str]) -> str:
    size = match[2]
    return f"font: {size}var(--sans)" if size else "font-family: var(--sans)"
