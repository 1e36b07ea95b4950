"""Figures as data first, drawings second: `figures`, `make`, `draw`, `write`."""

from tacit.figures import (
    notsawo_depth,
    notsawo_dominance,
    notsawo_mirage,
    notsawo_scaling,
    notsawo_selection,
)
from tacit.figures.registry import Entry, draw, figure, figures, make, write

__all__ = [
    "Entry",
    "draw",
    "figure",
    "figures",
    "make",
    "notsawo_depth",
    "notsawo_dominance",
    "notsawo_mirage",
    "notsawo_scaling",
    "notsawo_selection",
    "write",
]
