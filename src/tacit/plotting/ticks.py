"""Numbers on logarithmic axes that do not run into one another."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def clear_logs(figure: Figure) -> Figure:
    """The figure with numbers at powers of ten alone where two are in view, else at 1, 2 and 5.

    Matplotlib writes 2 x 10^-2, 3 x 10^-2, 4 x 10^-2, ... on an axis of about a decade, and these
    overlap. It is asked when everything is drawn, because it depends on the limits. Where three
    powers are in view there are no ticks between them: to lay these out takes half of the time.
    """
    from matplotlib.ticker import FuncFormatter, LogFormatter, NullFormatter, NullLocator

    panels: list[Any] = [*figure.axes]
    panels += [child for axes in figure.axes for child in axes.child_axes]
    for axes in panels:
        for axis, ends in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
            if axis.get_scale() == "log" and isinstance(axis.get_minor_formatter(), LogFormatter):
                powers = _powers(*sorted(ends))
                formatter = NullFormatter() if powers >= 2 else FuncFormatter(_at_two_and_five)
                axis.set_minor_formatter(formatter)
                if powers >= 3:
                    axis.set_minor_locator(NullLocator())
    return figure


def _powers(low: float, high: float) -> int:
    """How many powers of ten lie between two positive numbers."""
    return math.floor(math.log10(high) + 1e-9) - math.ceil(math.log10(low) - 1e-9) + 1


def _at_two_and_five(value: float, _: Any) -> str:
    exponent = math.floor(math.log10(value) + 1e-9)
    front = round(value / 10**exponent)
    return rf"${front} \times 10^{{{exponent}}}$" if front in (2, 5) else ""
