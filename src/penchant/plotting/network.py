"""Networks as tables of units and connections, and the drawing of such tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from penchant.arguments import flag, with_parts
from penchant.door import door
from penchant.plotting.style import BLACK, BLUE, GREEN, GREY, ORANGE, RED, require_axes

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes

FILL = {"input": BLUE, "fixed": GREY, "positive": GREEN, "negative": RED, "output": ORANGE}
NAMES = {
    "input": "input",
    "fixed": "fixed copy",
    "positive": "hidden unit",
    "negative": "hidden unit, minus part",
    "output": "output",
}


NETWORK_DIMS = {
    **{f"unit_{column}": ["unit"] for column in ("kind", "x", "y", "label")},
    **{f"connection_{column}": ["connection"] for column in ("source", "target", "weight", "at")},
}
NETWORK_LABELS = {
    "unit_kind": "kind of the unit; dots stand for further units",
    "unit_label": "text inside the unit",
    "unit_x": "horizontal position of the unit",
    "unit_y": "vertical position of the unit",
    "connection_source": "index of the unit where the connection begins",
    "connection_target": "index of the unit where the connection ends",
    "connection_weight": "text on the connection",
    "connection_at": "position of the text as a fraction of the connection's length",
}


@dataclasses.dataclass
class Network:
    """A growing table of units (with places) and weighted connections."""

    units: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    connections: list[dict[str, Any]] = dataclasses.field(default_factory=list)

    def unit(self, kind: str, x: float, y: float, label: str = "") -> int:
        """The number of the new unit; the kind "dots" is an ellipsis, not a unit."""
        self.units.append({"kind": kind, "x": x, "y": y, "label": label})
        return len(self.units) - 1

    def connect(self, source: int, target: int, weight: str = "", at: float = 0.5) -> None:
        """Add a connection whose weight is written at the fraction `at` of its length."""
        self.connections.append({"source": source, "target": target, "weight": weight, "at": at})

    def arrays(self) -> dict[str, np.ndarray]:
        """The columns of both tables; a cell returns them with NETWORK_DIMS and NETWORK_LABELS."""
        tables = (("unit", self.units), ("connection", self.connections))
        return {
            f"{table}_{column}": np.array([row[column] for row in rows])
            for table, rows in tables
            for column in rows[0]
        }

    def output(self, inputs: Mapping[str, float], weights: Mapping[str, float]) -> float:
        """The output of the drawn network: every unit sums its weighted inputs.

        `inputs` are the values of the input units by their labels, `weights` those of the
        connections by what is written on them.
        """

        def value(number: int) -> float:
            unit = self.units[number]
            if unit["kind"] == "input":
                return inputs[unit["label"]]
            coming = [c for c in self.connections if c["target"] == number]
            return sum(weights[c["weight"]] * value(c["source"]) for c in coming)

        (last,) = (n for n, unit in enumerate(self.units) if unit["kind"] == "output")
        return value(last)


@door
def draw_network(axes: Axes, dataset: xarray.Dataset, legend: bool = True) -> None:
    """Draw the units of one network, its connections and the names of the kinds in use."""
    require_axes(axes)
    with_parts("dataset", dataset, "the table of a network", *NETWORK_DIMS)
    legend = flag("legend", legend)
    x, y = dataset.unit_x.values, dataset.unit_y.values
    kinds = dataset.unit_kind.values  # "" beyond the last, where networks differ in size
    for connection in np.flatnonzero(np.isfinite(dataset.connection_source.values)):
        _draw_connection(axes, dataset.isel(connection=connection), x, y)
    for kind, colour in FILL.items():
        where = kinds == kind
        if where.any():
            style: dict[str, Any] = {"facecolor": "white", "edgecolor": colour, "linewidth": 2.2}
            area = np.where(dataset.unit_label.values[where] == "", 250, 620)
            axes.scatter(x[where], y[where], s=area, zorder=3, clip_on=False, **style)
            axes.scatter([], [], s=70, facecolor="white", edgecolor=colour, label=NAMES[kind])
    for index in np.flatnonzero(kinds != ""):
        text = r"$\vdots$" if kinds[index] == "dots" else str(dataset.unit_label.values[index])
        size = 15 if kinds[index] == "dots" else 8.5
        axes.text(x[index], y[index], text, ha="center", va="center", fontsize=size, zorder=4)
    axes.set_axis_off()
    axes.margins(0.09, 0.1)
    if legend:
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, 0.02), ncols=5, handletextpad=0.2)


def _draw_connection(axes: Axes, row: xarray.Dataset, x: np.ndarray, y: np.ndarray) -> None:
    """One line with its weight written on it, on a white ground so that lines do not cross it."""
    source, target, at = int(row.connection_source), int(row.connection_target), row.connection_at
    axes.plot(x[[source, target]], y[[source, target]], color=GREY, linewidth=1.1, zorder=1)
    if weight := str(row.connection_weight.values):
        share = float(at)
        x_text = (1 - share) * x[source] + share * x[target]
        y_text = (1 - share) * y[source] + share * y[target]
        ground = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
        text = axes.text(x_text, y_text, weight, ha="center", va="center", fontsize=8.5)
        text.set(color=BLACK, zorder=2, bbox=ground)
