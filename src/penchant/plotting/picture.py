"""The figure of matplotlib that every picture is: shown by a notebook, saved in its own style."""

from __future__ import annotations

import io
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from penchant.plotting.legends import move_legends
from penchant.plotting.mplstyle import page, styled_for
from penchant.plotting.paper import fit

SHOWN = 72  # pixels of a notebook for an inch of the figure; the picture has twice as many


class ShownFigure(Figure):
    """A figure that a notebook shows, because it says how: a PNG, sharp on any screen.

    A figure of matplotlib shows itself only where pyplot has told the notebook about figures, and
    those of penchant are made without pyplot. It keeps the page for which it was made.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.page, self.placed = page(), False

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        stream = io.BytesIO()
        with styled_for(self.page):
            FigureCanvasAgg(self).print_figure(stream, format="png", dpi=2 * SHOWN)
        width, height = (round(SHOWN * inches) for inches in self.get_size_inches())
        return stream.getvalue(), {"width": width, "height": height}

    def savefig(self, fname: Any, **options: Any) -> None:
        """Write the figure in the style of penchant, whatever style is set where it is called."""
        with styled_for(self.page):
            super().savefig(fname, **options)

    def draw(self, renderer: Any) -> None:
        fit(self, self.page)
        if self.page.width is not None and not self.placed:
            self.placed = True
            move_legends(self)
        super().draw(renderer)
