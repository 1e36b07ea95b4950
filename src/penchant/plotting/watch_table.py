"""A watched run in the terminal: a table of its measurements, and the results in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    import xarray

MOST = 12  # rows of the table
LAYERS = 8  # layers that the table names
WIDE = 120  # columns for a file or a pipe, which have no width
COLUMNS = {  # in the order of their weight: the last ones give way on a narrow terminal
    "step": "step",
    "kernel_distance": "kernel distance",
    "linearized_error": "linearized error",
    "norm_l2": "l2 norm",
    "direction_change": "turn in degrees",
    "margin": "smallest margin",
    "kernel_alignment": "kernel alignment",
    "effective_rank": "effective rank",
    "norm_nuclear": "nuclear norm",
    "norm_l1": "l1 norm",
}
CELL = 8  # characters of a number
SHADES = {"kernel": "blue", "leaving": "yellow", "rich": "red", "unknown": "dim"}


def print_watch(
    dataset: xarray.Dataset,
    kinds: list[str],
    layers: Sequence[tuple[str, float, float]],
    sentences: Iterable[tuple[str, str]],
    console: Console | None = None,
) -> None:
    """Prints the measurements, the layers and the (name, sentence) pairs under them.

    `layers` are (name, relative move, kernel distance), the one that moved most first.
    """
    console = console or _console()
    console.print(_looks(dataset, kinds, console.width))
    console.print(_layers(layers, console.width))
    rows = list(sentences)
    width = max(len(name) for name, _ in rows)
    grid = Table.grid(padding=(0, 2))
    grid.add_column(min_width=width)
    for name, sentence in rows:
        grid.add_row(Text(name, style="bold"), Text(sentence))
    console.print(grid)


def _console() -> Console:
    console = Console(highlight=False)
    free = console.is_terminal or console.is_jupyter
    return console if free else Console(highlight=False, width=WIDE)


def _looks(dataset: Any, kinds: list[str], width: int) -> Table:
    names = _fitting([n for n in COLUMNS if np.isfinite(dataset[n].values).any()], width)
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for name in names:
        table.add_column(COLUMNS[name], justify="right")
    table.add_column("regime")
    for row in chosen(dataset.sizes["time"]):
        cells = [shown(float(dataset[name].values[row])) for name in names]
        table.add_row(*cells, Text(kinds[row], style=SHADES[kinds[row]]))
    return table


def _layers(layers: Sequence[tuple[str, float, float]], width: int) -> Table:
    """The layers that moved most; with many layers the rest is one row."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("layer", max_width=width // 2, overflow="fold")
    table.add_column("moved, over its norm at the start", justify="right")
    table.add_column("kernel distance", justify="right")
    few = layers if len(layers) <= LAYERS + 1 else layers[:LAYERS]
    for name, moved, distance in few:
        table.add_row(Text(name), "from 0" if math.isinf(moved) else shown(moved), shown(distance))
    if rest := layers[len(few) :]:
        columns = [moved for _, moved, _ in rest], [distance for _, _, distance in rest]
        largest = [max((value for value in c if value == value), default=math.nan) for c in columns]
        most = ("" if math.isnan(value) else f"up to {shown(value)}" for value in largest)
        table.add_row(f"{len(rest)} others", *most)
    return table


def _fitting(names: list[str], width: int) -> list[str]:
    """The first columns that have room beside the regime; a heading breaks between its words."""
    needed = [2 + max(CELL, *map(len, COLUMNS[name].split())) for name in names]
    room = np.cumsum(needed) + len(" unknown ") <= width
    return names[: max(int(room.sum()), 2)]


def chosen(count: int) -> list[int]:
    """At most MOST of `count` places, the first and the last among them, evenly spread."""
    return sorted({round(index) for index in np.linspace(0, count - 1, min(count, MOST))})


def shown(value: float) -> str:
    """Three digits, large numbers up to a billion in full, nothing for what is not known."""
    if math.isnan(value):
        return ""
    if value == 0:
        return "0"
    if 1000 <= abs(value) < 1e9:
        return f"{value:.0f}"
    return f"{value:.3g}"
