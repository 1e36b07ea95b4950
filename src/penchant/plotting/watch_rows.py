"""Two rows of the picture of a watched run: its forecasts as they were made, and its modules."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from penchant.plotting.style import BLACK, GREEN, GREY

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BAND = "#BFE3D8"
ROW, LOW, HIGH = 0.2, 0.9, 3.4  # inches of one module, and of all of them together
LETTERS = 7  # points of the names of modules; they need about 1.3 times as much room
LONGEST = 28  # characters of a name
DECADES = 3  # of relative moves that the colours show, below the largest


def draw_forecasts(axes: Axes, made: Sequence[Any], happened: float) -> None:
    """Each forecast above the step at which it was made, with its interval, and what happened."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    asked, low, expected, high = made
    axes.vlines(asked, low, high, color=BAND, linewidth=4, zorder=1, label="interval (80%)")
    if len(asked) > 1:
        axes.fill_between(asked, low, high, color=BAND, linewidth=0, zorder=0)
    axes.plot(asked, expected, "o-", color=GREEN, markersize=4, linewidth=1.3, label="forecast")
    places = [asked.min(), asked.max(), *low, *expected, *high]
    if math.isfinite(happened):
        places.append(happened)
        axes.axhline(happened, color=BLACK, linewidth=1.4, zorder=3, label="when it happened")
    bottom, top = min(places) / 1.15, max(places) * 1.15
    axes.plot([bottom, top], [bottom, top], ":", color=GREY, linewidth=1, label="time of asking")
    axes.set(ylabel="forecast step,\nas it was made", yscale="log", ylim=(bottom, top))
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if top < 30 * bottom else (1,)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def modules_height(count: int) -> float:
    """The height in inches of the row of so many modules."""
    return min(max(ROW * count, LOW), HIGH)


def draw_modules(axes: Axes, step: Any, names: Sequence[str], moved: Any) -> None:
    """The relative move of every module (rows of colour) at every look, in the order of the net."""
    from matplotlib.colors import LogNorm

    after = step > 0
    if not after.any():
        axes.set(yticks=[], ylabel="layer")
        return
    edges, count = _edges(step[after]), len(names)
    values = moved[after].T
    top = float(values[np.isfinite(values)].max(initial=0.0)) or 1.0
    ends = top / 10**DECADES, top
    mesh = axes.pcolormesh(
        edges, np.arange(count + 1), np.clip(values, *ends), cmap="viridis_r", norm=LogNorm(*ends)
    )
    axes.grid(False)
    every = math.ceil(count * 1.3 * LETTERS / 72 / modules_height(count))
    shown = range(0, count, every)
    axes.set_yticks([number + 0.5 for number in shown], [_short(names[n]) for n in shown])
    axes.tick_params(axis="y", labelsize=LETTERS, length=2 if every > 1 else 0)
    axes.set(ylim=(count, 0), ylabel="layer")
    bar = axes.inset_axes((1.02, 0.0, 0.018, 1.0))
    axes.figure.colorbar(mesh, cax=bar)
    bar.set_ylabel("distance from start,\nover the norm there", fontsize=8)
    bar.tick_params(labelsize=8)
    bar.grid(False)


def _edges(step: Any) -> Any:
    """Where the colour of a look begins and ends: half way between looks, in log step."""
    logs = np.log(step)
    middle = (logs[1:] + logs[:-1]) / 2
    half = (middle[0] - logs[0], logs[-1] - middle[-1]) if len(logs) > 1 else (0.1, 0.1)
    return np.exp([logs[0] - half[0], *middle, logs[-1] + half[1]])


def _short(name: str) -> str:
    """The name, or its first and last letters."""
    if len(name) <= LONGEST:
        return name
    return f"{name[: LONGEST // 2 - 1]}…{name[-LONGEST // 2 :]}"
