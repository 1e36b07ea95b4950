"""Figures as data first, drawings second: `figures`, `make`, `draw`, `write`."""

from tacit.figures.registry import Entry, draw, figure, figures, make, write

__all__ = [
    "Entry",
    "draw",
    "figure",
    "figures",
    "make",
    "write",
]
