"""Lines on a map where a variable crosses a level, straight between cells as they are seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arguments import Array
from tacit.plotting.study.layer import layer, spans_decades
from tacit.plotting.study.ruler import Ruler
from tacit.plotting.study.words import number, short
from tacit.plotting.style import BLACK, RED

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes

MEASURED: Any = {"color": RED, "linewidth": 3.6, "linestyle": "-"}
THEORY: Any = {"color": BLACK, "linewidth": 2.0}
DASHES = ((0, (4, 2)), (0, (1, 1.2)), (0, (6, 2, 1, 2)))  # one for every theory


def draw_contours(
    axes: Axes,
    data: xarray.Dataset,
    x: Ruler,
    y: Ruler,
    levels: dict[str, float],
    logarithmic: bool = False,
) -> list[Any]:
    """The handles of the legend: the first line is the measured one, the others are theory.

    `logarithmic`: what is measured is seen by its logarithm, and so is its line.
    """
    handles = []
    for place, (name, level) in enumerate(levels.items()):
        theory = {**THEORY, "linestyle": DASHES[(place - 1) % len(DASHES)]}
        style, word = (theory, "theory") if place else (MEASURED, "measured")
        values = layer(data, name, (y.name, x.name)).value
        lines = crossings(x, y, values, level, powers=bool(place) or logarithmic)
        handles += _draw(axes, lines, f"{word}: {short(data, name)} = {number(level)}", style)
    return handles


def _draw(axes: Axes, lines: list[tuple[Array, Array]], text: str, style: Any) -> list[Any]:
    """One handle for all pieces; a pale rim keeps them visible on every colour."""
    from matplotlib.lines import Line2D
    from matplotlib.patheffects import Normal, Stroke

    rim = [Stroke(linewidth=style["linewidth"] + 1.4, foreground="white", alpha=0.85), Normal()]
    for x, y in lines:
        axes.plot(x, y, path_effects=rim, solid_capstyle="round", zorder=4, **style)
    return [Line2D([], [], label=text, **style)] if lines else []


def crossings(
    x: Ruler, y: Ruler, values: Array, level: float, powers: bool = False
) -> list[tuple[Array, Array]]:
    """Where the values (rows of y) cross the level: polylines in the coordinates of the axes.

    `powers`: what spans decades is a power of the axes, as most theories are, so that its
    logarithm is the straight one.
    """
    from contourpy import contour_generator

    if powers and level > 0 and spans_decades(values):
        values, level = np.log(values), float(np.log(level))
    if min(values.shape) < 2:
        return []
    grid = np.ma.masked_invalid(_between(x.even, y.even, values))
    found: Any = contour_generator(x.even, y.even, grid).lines(level)
    return [(x.uneven(line[:, 0]), y.uneven(line[:, 1])) for line in found]


def _between(x: Array, y: Array, values: Array) -> Array:
    """The values with gaps that lie between known ones filled linearly, as a refined study has."""
    known = np.isfinite(values)
    spread = [np.unique(at[k]).size for at, k in zip((y, x), np.nonzero(known), strict=True)]
    if known.all() or min(spread) < 2 or known.sum() < 4:
        return values
    from scipy.interpolate import griddata
    from scipy.spatial import QhullError

    rows, columns = np.nonzero(known)
    places = np.meshgrid(y, x, indexing="ij")
    scale = np.ptp(y) or 1.0, np.ptp(x) or 1.0
    try:
        filled = griddata(
            (y[rows] / scale[0], x[columns] / scale[1]),
            values[known],
            (places[0] / scale[0], places[1] / scale[1]),
        )
    except QhullError:  # all known cells lie on one line, with nothing between them
        return values
    return np.where(known, values, filled)
