"""Figures as data first, drawings second: `figures`, `make`, `draw`, `write`."""

from tacit.figures import (
    moroshko_f1,
    moroshko_f2,
    moroshko_f3,
    moroshko_f4,
    moroshko_f5,
    moroshko_f6,
    moroshko_f7,
    moroshko_f8,
    moroshko_f9,
    woodworth_f1,
    woodworth_f2,
    woodworth_f3,
    woodworth_f4,
    woodworth_f9,
)
from tacit.figures.registry import Entry, draw, figure, figures, make, write

__all__ = [
    "Entry",
    "draw",
    "figure",
    "figures",
    "make",
    "moroshko_f1",
    "moroshko_f2",
    "moroshko_f3",
    "moroshko_f4",
    "moroshko_f5",
    "moroshko_f6",
    "moroshko_f7",
    "moroshko_f8",
    "moroshko_f9",
    "woodworth_f1",
    "woodworth_f2",
    "woodworth_f3",
    "woodworth_f4",
    "woodworth_f9",
    "write",
]
