"""The chosen cell of a study: its values in words, its trajectory, and the row it belongs to."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from penchant.explore.picture import Cells, Curve, Panel, reach
from penchant.explore.study.grid import CUT, TIMES, Grid, plain
from penchant.explore.study.layer import Diagram, logarithmic, span_of
from penchant.plotting.style import BLUE, ORANGE

MOST_VALUES = 12  # values of a cell that are written out
TRAJECTORY = "trajectory_"


def trajectory(grid: Grid, name: str, position: Mapping[str, int]) -> Panel:
    """The recorded row of the chosen cell over its own times, or over the values tried."""
    cell = grid.dataset.isel(position)
    dim = cell[name].dims[-1]
    time_axis = next((c for c in TIMES if c in cell and cell[c].dims == (dim,)), None)
    numbers = np.asarray(cell[name].values, float)
    t = (
        np.asarray(cell[time_axis].values, float)
        if time_axis
        else np.arange(len(numbers), dtype=float)
    )
    known = np.isfinite(t) & np.isfinite(numbers)
    if time_axis in ("trajectory_t", "trajectory_step"):
        known &= t > 0  # a run begins at 0, which a logarithm cannot show
    order = np.argsort(t[known], kind="stable")
    x, x_label = logarithmic(t[known][order], plain(str(time_axis or dim).removeprefix(TRAJECTORY)))
    y, y_label = logarithmic(numbers[known][order], plain(name.removeprefix(TRAJECTORY), CUT))
    curves = (
        Curve("the chosen cell", x, y, "line", ORANGE),
        Curve("every record", x, y, "points", ORANGE, in_legend=False),
    )
    title = "The trajectory of the chosen cell"
    return Panel(
        "trajectory",
        title,
        x_label,
        y_label,
        curves,
        x_range=reach(x),
        y_range=reach(np.array(span_of(y))),
    )


def row(cells: Cells, shown: Diagram) -> Panel:
    """The row of the chosen cell as a curve over the values of the axis."""
    column, at = cells.chosen
    positions, numbers = np.arange(len(cells.columns), dtype=float), shown.numbers[at]
    known = np.isfinite(numbers)
    curves = (
        Curve("the row of the cell", positions[known], numbers[known], "line", BLUE),
        Curve("every value", positions[known], numbers[known], "points", BLUE, in_legend=False),
        Curve("the cell", positions[[column]], numbers[[column]], "stars", ORANGE),
    )
    return Panel(
        "cut",
        "The row of the chosen cell",
        cells.column_label,
        shown.label,
        curves,
        x_range=(-0.5, len(positions) - 0.5),
        y_range=reach(np.array(span_of(numbers))),
        x_names=cells.columns,
    )


def cell_sentence(grid: Grid, show: str, position: Mapping[str, int]) -> str:
    """The chosen cell in one sentence: where it is, all of its values, how it ended."""
    cell = grid.dataset.isel(position)
    where = ", ".join(f"{plain(dim, 30)} = {grid.values(dim)[k]}" for dim, k in position.items())
    names = sorted(grid.quantities[:-1], key=lambda name: name != show)[:MOST_VALUES]
    numbers = [f"{plain(name, CUT)} = {float(cell[name].values):.5g}" for name in names]
    message = str(cell["sentence"].values) if "sentence" in cell else ""
    ended = ", ".join([*numbers, plain(str(cell.status.values), 20)])
    return f"{where}: {ended}. {plain(message, 300)}".strip()
