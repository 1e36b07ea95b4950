"""Networks as tables of units and connections, and the drawing of such tables."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.plotting.style import BLACK, BLUE, GREEN, GREY, ORANGE, RED

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


@dataclasses.dataclass
class Network:
    """A growing table of units (with places) and weighted connections, over one or more panels."""

    units: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    connections: list[dict[str, Any]] = dataclasses.field(default_factory=list)

    def unit(self, kind: str, x: float, y: float, label: str = "", panel: int = 0) -> int:
        """The number of the new unit; the kind "dots" is an ellipsis, not a unit."""
        self.units.append({"kind": kind, "x": x, "y": y, "label": label, "panel": panel})
        return len(self.units) - 1

    def connect(self, source: int, target: int, weight: str = "", at: float = 0.5) -> None:
        """Add a connection whose weight is written at the fraction `at` of its length."""
        self.connections.append({"source": source, "target": target, "weight": weight, "at": at})

    def dataset(self) -> xarray.Dataset:
        """The two tables as one labelled dataset."""
        import xarray

        tables = (("unit", self.units), ("connection", self.connections))
        variables = {
            f"{table}_{column}": (table, np.array([row[column] for row in rows]))
            for table, rows in tables
            for column in rows[0]
        }
        dataset = xarray.Dataset(variables)
        for name, variable in dataset.items():
            variable.attrs.update(long_name=str(name).replace("_", " "), units="1")
        return dataset


def tables(dataset: xarray.Dataset, panel: int = 0) -> dict[str, Any]:
    """The units and connections of one panel, numbered from zero, and how many there are."""
    units = np.flatnonzero(dataset.unit_panel.values == panel)
    inside = np.flatnonzero(np.isin(dataset.connection_source.values, units))
    own = dataset.isel(unit=units, connection=inside)
    ends = np.stack([own.connection_source.values, own.connection_target.values], axis=-1)
    return {
        "units": int((own.unit_kind.values != "dots").sum()),
        "connections": len(inside),
        "kind": own.unit_kind.values,
        "name": own.unit_label.values,
        "place": np.stack([own.unit_x.values, own.unit_y.values], axis=-1),
        "weight": own.connection_weight.values,
        "ends": np.searchsorted(units, ends),
    }


def draw_network(axes: Axes, dataset: xarray.Dataset, panel: int = 0, legend: bool = True) -> None:
    """Draw the units of one panel, their connections and the names of the kinds in use."""
    x, y = dataset.unit_x.values, dataset.unit_y.values
    shown = dataset.unit_panel.values == panel
    kinds = dataset.unit_kind.values
    for connection in range(dataset.sizes["connection"]):
        if shown[int(dataset.connection_source[connection])]:
            _draw_connection(axes, dataset.isel(connection=connection), x, y)
    for kind, colour in FILL.items():
        where = shown & (kinds == kind)
        if where.any():
            style: dict[str, Any] = {"facecolor": "white", "edgecolor": colour, "linewidth": 2.2}
            area = np.where(dataset.unit_label.values[where] == "", 250, 620)
            axes.scatter(x[where], y[where], s=area, zorder=3, **style)
            axes.scatter([], [], s=70, facecolor="white", edgecolor=colour, label=NAMES[kind])
    for place in np.flatnonzero(shown):
        text = r"$\vdots$" if kinds[place] == "dots" else str(dataset.unit_label.values[place])
        size = 15 if kinds[place] == "dots" else 8.5
        axes.text(x[place], y[place], text, ha="center", va="center", fontsize=size, zorder=4)
    axes.set_axis_off()
    axes.margins(0.09, 0.1)
    if legend:
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, 0.02), ncols=5, handletextpad=0.2)


def _draw_connection(axes: Axes, row: xarray.Dataset, x: np.ndarray, y: np.ndarray) -> None:
    """One line with its weight written on it, on a white ground so that lines do not cross it."""
    source, target, at = int(row.connection_source), int(row.connection_target), row.connection_at
    axes.plot(x[[source, target]], y[[source, target]], color=GREY, linewidth=1.1, zorder=1)
    if weight := str(row.connection_weight.values):
        place = float(at)
        x_text = (1 - place) * x[source] + place * x[target]
        y_text = (1 - place) * y[source] + place * y[target]
        ground = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
        options: dict[str, Any] = {
            "ha": "center",
            "va": "center",
            "fontsize": 8.5,
            "color": BLACK,
            "zorder": 2,
        }
        axes.text(x_text, y_text, weight, bbox=ground, **options)
