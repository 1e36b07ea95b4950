"""The rows of the panel in the picture of a watched run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from penchant.plotting.style import BLACK, CYCLE, GREY, ORANGE, PURPLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROW = 1.45  # inches
MOST = 4  # lines of single layers; of more the spread is drawn
SHORT = 16  # letters of a name in one line
SHADE = "#D9D9D9"


def panel_parts(dataset: Any) -> list[Callable[[Axes, Any], None]]:
    """What draws each row that the record has."""
    return [draw for name, draw in ROWS if name in dataset and _worth(name, dataset[name].values)]


def _worth(name: str, values: Any) -> bool:
    """Whether there is something to draw."""
    return _known(values) and (name != "zero_loss" or bool(np.nanmax(values) > 0))


def _known(values: Any) -> bool:
    return bool(np.isfinite(values).any())


def _edge(axes: Axes, dataset: Any) -> None:
    step, edge = _line(dataset, "edge")
    axes.plot(step, edge, "o-", color=BLACK, markersize=3, label="edge")
    axes.axhline(1, color=ORANGE, linestyle="--", linewidth=1.4, label="threshold")
    axes.set(ylabel="sharpness x rate\nover threshold", yscale="log")
    low, high = min(0.5, float(edge.min(initial=1))), max(2.0, float(edge.max(initial=1)))
    axes.set_ylim(low / 1.3, high * 1.3)


def _sizes(axes: Axes, dataset: Any) -> None:
    _layers(axes, dataset, "unit_size", "module")
    axes.set(ylabel="size of a unit\nin a layer", yscale="log")


def _features(axes: Axes, dataset: Any) -> None:
    named = {"low_rank": r"$D_{LR}$", "neural_collapse": "NC1", "dead_units": "dead units\n(most)"}
    styles = ("-", "--", ":")
    for (name, text), colour, style in zip(named.items(), CYCLE, styles, strict=False):
        if name in dataset and _known(dataset[name].values):
            if name == "dead_units":
                values = np.nan_to_num(dataset[name].values, nan=-1.0).max(axis=1)
                step, y = _after(dataset, np.where(values < 0, np.nan, values))
            else:
                step, y = _line(dataset, name)
            axes.plot(step, np.minimum(y, 1.5), style, color=colour, linewidth=1.8, label=text)
    axes.set(ylabel="last features\n(0: collapsed)", ylim=(-0.03, 1.55))


def _updates(axes: Axes, dataset: Any) -> None:
    _layers(axes, dataset, "update_share", "layer")
    axes.set(ylabel="update over\nweight", yscale="log")


def _ball(axes: Axes, dataset: Any) -> None:
    _layers(axes, dataset, "ball_share", "layer")
    axes.axhline(1, color=ORANGE, linestyle="--", linewidth=1.4, label="edge of the ball")
    axes.set(ylabel="share of the ball\nof weight decay", yscale="log")


def _noise(axes: Axes, dataset: Any) -> None:
    step, scale = _line(dataset, "noise_scale")
    axes.plot(step, scale, "o-", color=BLACK, markersize=3, label="noise scale")
    axes.axhline(
        dataset.sizes["sample"], color=GREY, linestyle=":", linewidth=1.2, label="probe inputs"
    )
    axes.set(ylabel="gradient noise\nscale (samples)", yscale="log")


def _zeros(axes: Axes, dataset: Any) -> None:
    axes.plot(*_line(dataset, "zero_loss"), "-", color=PURPLE, label="exactly zero\nin float32")
    axes.set(ylabel="share of\nloss terms", ylim=(-0.03, 1.05))


def _balance(axes: Axes, dataset: Any) -> None:
    _layers(axes, dataset, "balance_drift", "pair")
    axes.set(ylabel="drift of the\nbalance", yscale="log")


def _line(dataset: Any, name: str) -> tuple[Any, Any]:
    return _after(dataset, dataset[name].values)


def _after(dataset: Any, values: Any) -> tuple[Any, Any]:
    """Steps after the start with the known values at them."""
    step = dataset["step"].values
    known = np.isfinite(values) & (step > 0)
    return step[known], values[known]


def _layers(axes: Axes, dataset: Any, name: str, axis: str) -> None:
    """A line for each of few layers, otherwise the median and the spread of all."""
    values, names = dataset[name].values, [str(n) for n in dataset[axis].values]
    columns = [k for k in range(len(names)) if np.any(values[:, k] > 0)]
    if len(columns) <= MOST:
        styles = ("-", "--", "-.", ":")
        for k, colour, style in zip(columns, CYCLE, styles, strict=False):
            step, y = _after(dataset, np.where(values[:, k] > 0, values[:, k], np.nan))
            text = names[k] if len(names[k]) < SHORT else names[k].replace(" to ", "\nto ")
            label = f"{axis} {text}" if text[0].isdigit() else text
            axes.plot(step, y, style, color=colour, linewidth=1.8, label=label)
        return
    rows = [row[np.isfinite(row) & (row > 0)] for row in values[:, columns]]
    ends = np.array([np.quantile(row, [0, 0.5, 1]) if row.size else [np.nan] * 3 for row in rows])
    step, middle = _after(dataset, ends[:, 1])
    low, high = (_after(dataset, ends[:, k])[1] for k in (0, 2))
    axes.fill_between(step, low, high, color=SHADE, linewidth=0, label=f"all {axis}s")
    axes.plot(step, middle, "-", color=BLACK, linewidth=1.8, label=f"median {axis}")


ROWS: tuple[tuple[str, Callable[[Axes, Any], None]], ...] = (
    ("edge", _edge),
    ("unit_size", _sizes),
    ("low_rank", _features),
    ("update_share", _updates),
    ("ball_share", _ball),
    ("noise_scale", _noise),
    ("zero_loss", _zeros),
    ("balance_drift", _balance),
)
