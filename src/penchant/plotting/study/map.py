"""A study over two axes: a map, with lines at levels and marks on the cells that failed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penchant.arguments import Array
from penchant.mathematics import escape
from penchant.plotting.study.layer import Flags, Layer, layer, spans_decades
from penchant.plotting.study.plan import GatheredStudy, Plan, blank, headed, key, outer, panels
from penchant.plotting.study.ruler import Ruler, ruler
from penchant.plotting.study.words import label, number, short
from penchant.plotting.style import BLACK, GREY, PALE, RED

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
    for index, (name, level) in enumerate(levels.items()):
        theory = {**THEORY, "linestyle": DASHES[(index - 1) % len(DASHES)]}
        style, word = (theory, "theory") if index else (MEASURED, "measured")
        values = layer(data, name, (y.name, x.name)).value
        lines = crossings(x, y, values, level, powers=bool(index) or logarithmic)
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
    lines: Any = contour_generator(x.even, y.even, grid).lines(level)
    return [(x.uneven(line[:, 0]), y.uneven(line[:, 1])) for line in lines]


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


MAP = "viridis"  # rises in lightness, for every eye and in grey


def draw_map(study: GatheredStudy, plan: Plan) -> Figure:
    """The map of `plan.colour` over x and y, one panel for every value of a third axis."""
    from matplotlib.colors import LogNorm

    assert plan.x
    assert plan.y
    parts = panels(study, plan)
    x, y = ruler(study.data, plan.x), ruler(study.data, plan.y)
    layers = [layer(data, plan.colour, (plan.y, plan.x)) for _, data in parts]
    norm, extend = shades(np.concatenate([part.value.ravel() for part in layers]), plan)
    figure, axes = blank(study, plan, len(parts))
    handles: dict[str, Any] = {}
    for at, (title, data), cells in zip(axes, parts, layers, strict=True):
        mesh = _mesh(at, x, y, cells, norm)
        marks = _marks(at, x, y, cells, norm)
        lines = draw_contours(at, data, x, y, dict(plan.contours), isinstance(norm, LogNorm))
        handles |= {handle.get_label(): handle for handle in [*lines, *marks]}
        _frame(at, x, y, title)
    bar = figure.colorbar(mesh, ax=axes, extend=extend, pad=0.02, aspect=30)
    bar.set_label(escape(label(study.data, plan.colour, 44)))
    outer(axes, heights=False)
    key(axes, list(handles.values()))
    return figure


def shades(values: Array, plan: Plan) -> tuple[Any, str]:
    """(the scale of the colours, on which sides of it there are values)."""
    from matplotlib.colors import LogNorm, Normalize

    log = plan.log if plan.log is not None else plan.range is None and spans_decades(values)
    seen = values[np.isfinite(values) & ((values > 0) | (not log))]
    low, high = plan.range or ((seen.min(), seen.max()) if seen.size else (1.0, 1.0))
    if low == high:
        low, high = (low / 2, high * 2) if log else (low - 0.5, high + 0.5)
    below, above = bool((seen < low).any()), bool((seen > high).any())
    extend = ["neither", "min", "max", "both"][below + 2 * above]
    return (LogNorm if log else Normalize)(low, high), extend


def _mesh(axes: Axes, x: Ruler, y: Ruler, cells: Layer, norm: Any) -> Any:
    """The cells, each around its value; those without a number stay blank."""
    drawn = np.ma.masked_where(~_seen(cells, norm), cells.value)
    return axes.pcolormesh(
        x.edges, y.edges, drawn, cmap=MAP, norm=norm, shading="flat", rasterized=True
    )


def _seen(cells: Layer, norm: Any) -> Flags:
    from matplotlib.colors import LogNorm

    return np.isfinite(cells.value) & ((cells.value > 0) | (not isinstance(norm, LogNorm)))


def _marks(axes: Axes, x: Ruler, y: Ruler, cells: Layer, norm: Any) -> list[Any]:
    """Failed cells are hatched, ended ones without a number dotted, some failed seeds crossed."""
    empty = cells.attempted & ~cells.failed & ~_seen(cells, norm)
    handles = _hatch(axes, x, y, cells.failed, cells.lost, "////", "failed")
    handles += _hatch(axes, x, y, empty, empty, "...", "no number")
    if not cells.partly.any():
        return handles
    rows, columns = np.nonzero(cells.partly)
    style: Any = {
        "marker": "x",
        "color": BLACK,
        "linestyle": "none",
        "markersize": 6,
        "markeredgewidth": 1.6,
        "label": "some seeds failed",
    }
    return [*handles, *axes.plot(x.at[columns], y.at[rows], zorder=3, **style)]


def _hatch(
    axes: Axes, x: Ruler, y: Ruler, where: Flags, filled: Flags, hatch: str, name: str
) -> list[Any]:
    """Rectangles over cells; `filled` ones have a pale ground of their own."""
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Patch, Rectangle

    if not where.any():
        return []
    style: Any = {"edgecolor": GREY, "linewidth": 0.0, "hatch": hatch}
    a, b, cells = x.edges, y.edges, np.argwhere(where)
    boxes = [Rectangle((a[j], b[i]), a[j + 1] - a[j], b[i + 1] - b[i]) for i, j in cells]
    ground = [PALE if filled[i, j] else "none" for i, j in cells]
    marks = PatchCollection(boxes, facecolor=ground, zorder=2, **style)
    axes.add_collection(marks, autolim=False)
    return [Patch(facecolor=PALE, label=name, **style)]


def _frame(axes: Axes, x: Ruler, y: Ruler, title: str) -> None:
    x.put(axes, "x")
    y.put(axes, "y")
    axes.set(xlim=x.edges[[0, -1]], ylim=y.edges[[0, -1]])
    axes.grid(visible=False)
    axes.spines[["top", "right"]].set_visible(True)
    headed(axes, title)
