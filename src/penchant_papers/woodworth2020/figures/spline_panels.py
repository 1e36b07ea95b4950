"""The panels of Figure 7: what small to large starts learn, by the scaling of the layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from penchant.lab import Axes, Dataset, Figure
from penchant.plotting import BLACK, BLUE, GREEN, ORANGE, RED, sheet_of
from penchant.problems import plateau, zigzag
from penchant.solvers import linear_spline
from penchant_papers.woodworth2020.figures.spline_nets import SHARES

SPLINE: dict[str, Any] = {"color": BLACK, "linewidth": 1.3, "linestyle": "--"}
# wide and pale below the curves, so that both are visible where they agree
KERNEL: dict[str, Any] = {"color": RED, "linewidth": 7, "alpha": 0.3, "zorder": 1}
DATA: dict[str, Any] = {
    "marker": "o",
    "linestyle": "none",
    "color": BLACK,
    "markersize": 6,
    "zorder": 5,
}


def draw(dataset: Dataset, flat: Dataset, kernel: Dataset, random: Dataset) -> Figure:
    """One panel per scaling, and points at which no start learns the linear spline."""
    net = (
        r"The net is $\sum v \max(w x + b, 0)$ plus a bias; $c$ multiplies $w$ and $b$ at the "
        "start and divides $v$, which changes the kernel of the start, not its function."
    )
    picture, panels = sheet_of(dataset, widths=(4.1,) * 4, height=4.4, after=net)
    for letter, axes, layers in zip("abc", panels, SHARES, strict=False):
        _scaling(axes, dataset.isel(seed=0).sel(layers=layers), letter)
    _plateau(panels[-1], flat.isel(seed=0))
    for axes in panels:
        axes.set(xlabel="input $x$", ylabel="output $f(x)$", xticks=(-1, 0, 1))
    for axes in panels[1:-1]:
        axes.sharey(panels[0])
    _legends(panels)
    return picture


def _legends(panels: list[Axes]) -> None:
    """What all panels share, and the scalings of the last one, on the right of it."""
    shared = panels[0].get_legend_handles_labels()
    last = panels[-1]
    far: dict[str, Any] = {"loc": "upper left", "borderaxespad": 0.0}
    own = last.legend(
        *last.get_legend_handles_labels(), title="(d)", bbox_to_anchor=(1.03, 0.3), **far
    )
    own.set_alignment("left")
    last.add_artist(own)
    first = last.legend(*shared, title="(a) to (c)", bbox_to_anchor=(1.03, 1.0), **far)
    first.set_alignment("left")


def _scaling(axes: Axes, runs: Dataset, letter: str) -> None:
    from matplotlib import colormaps

    data, largest = zigzag(), runs.isel(alpha=int(runs.alpha.values.argmax()))
    shades = colormaps["viridis"](np.linspace(0.0, 0.85, runs.sizes["alpha"]))
    for shade, alpha in zip(shades, runs.alpha.values, strict=True):
        row = runs.sel(alpha=alpha)
        axes.plot(row.input, row.learned, color=shade, label=rf"$\alpha$ = {alpha:g}")
    points = largest.input.values
    axes.plot(points, linear_spline(data)(points), label="linear spline", **SPLINE)
    label = "interpolant of the\nkernel at the start"
    axes.plot(points, largest.interpolant, label=label, **KERNEL)
    axes.plot(data.X[:, 0], data.y, label="data", **DATA)
    share = SHARES[str(runs.layers.values)]
    weight = "hardly any" if share is None else f"{100 * share / (1 + share):.2g} %"
    axes.set_title(f"({letter}) $c$ = {float(largest.c):.2g}: inner layer\n{weight} of the kernel")


def _plateau(axes: Axes, flat: Dataset) -> None:
    data = plateau()
    styles = zip((BLUE, ORANGE, GREEN), (6.0, 3.4, 1.2), flat.layers.values, strict=True)
    for colour, thick, layers in styles:  # drawn over each other, since they nearly agree
        row = flat.sel(layers=layers)
        label = f"$c$ = {float(row.c):.2g}"
        axes.plot(row.input, row.learned, color=colour, linewidth=thick, label=label)
    points = flat.input.values[0]
    axes.plot(points, linear_spline(data)(points), **SPLINE)
    axes.plot(data.X[:, 0], data.y, **DATA)
    axes.set_title(
        "(d) other points, smallest start: still\n"
        f"{float(flat.to_linear.min()):.2g} off the linear spline"
    )
