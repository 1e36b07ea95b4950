"""A study over one axis: curves with the seeds as a band, one for every value of a second axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arguments import Array
from tacit.plotting.study.layer import Layer, layer, spans_decades
from tacit.plotting.study.plan import SEED, Plan, Study, blank, headed, key, outer, panels, some
from tacit.plotting.study.ruler import Ruler, ruler
from tacit.plotting.study.words import label, number, plain, short
from tacit.plotting.style import BLACK, CYCLE, GREY
from tacit.plotting.typeset import typeset

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST = 8  # the most curves that can be distinguished
MARKERS = "os^Dv*Px"
DENSE = 45  # points from which not every one is marked


def draw_curves(study: Study, plan: Plan, note: str = "") -> Figure:
    """Curves of `plan.colour` over x; over texts, bars."""
    assert plan.x
    parts, x = panels(study, plan), ruler(study.data, plan.x)
    log = _logarithmic(study, plan)
    figure, axes = blank(study, plan, len(parts), f"{_left_out(study, plan)} {note}".strip())
    handles: dict[str, Any] = {}
    for at, (title, data) in zip(axes, parts, strict=True):
        at.set_yscale("log" if log else "linear")
        curves = curves_of(data, plan)
        for number_, (name, colour, found) in enumerate(curves):
            style = {"color": colour, "marker": MARKERS[number_ % len(MARKERS)], "label": name}
            drawn = (_bars if x.words else _curve)(at, x, found, style, number_, len(curves), log)
            handles |= {name: drawn} if name else {}
        handles |= _failures(at, x, [found for _, _, found in curves], f"{study.failure} here")
        _frame(at, x, study, plan, title)
    outer(axes, heights=True)
    key(axes, list(handles.values()))
    return figure


def curves_of(data: xarray.Dataset, plan: Plan) -> list[tuple[str, Any, Layer]]:
    """(name, colour, layer) of every curve of one panel."""
    dims = (plan.x or "",)
    if plan.lines is None:
        return [("", CYCLE[0], layer(data, plan.colour, dims))]
    indices = some(data.sizes[plan.lines], MOST)
    colours = colours_of(data, plan.lines, len(indices))
    return [
        (
            f"{short(data, plan.lines, 24)} = {number(data[plan.lines].values[k])}",
            colour,
            layer(data.isel({plan.lines: k}), plan.colour, dims),
        )
        for k, colour in zip(indices, colours, strict=True)
    ]


def colours_of(data: xarray.Dataset, dim: str, count: int) -> list[Any]:
    """Colours that follow the values of an axis, or as different as possible."""
    from matplotlib import colormaps

    if count <= 3 or data[dim].dtype.kind not in "fiu":
        return [(*CYCLE, GREY)[k % 8] for k in range(count)]
    return list(colormaps["viridis"](np.linspace(0.0, 0.88, count)))


def _curve(
    axes: Axes, x: Ruler, found: Layer, style: Any, index: int, count: int, log: bool
) -> Any:
    """One curve, its band over the seeds, and the handle for the legend."""
    value, low, high = (drawable(v, log) for v in (found.value, found.low, found.high))
    if (found.high > found.low).any():
        axes.fill_between(x.at, low, high, color=style["color"], alpha=0.18, linewidth=0)
    dash = "none" if x.name == SEED else "-"
    every = 1 if len(x.at) <= DENSE else (index * 2, len(x.at) // 12)
    (line,) = axes.plot(x.at, value, linestyle=dash, markersize=5, markevery=every, **style)
    return line


def _bars(axes: Axes, x: Ruler, found: Layer, style: Any, index: int, count: int, log: bool) -> Any:
    """One group of bars with whiskers over the seeds; a logarithm has points, as it has no 0."""
    width = 0.8 / count
    at = x.at + (index - (count - 1) / 2) * width
    value, low, high = (drawable(v, log) for v in (found.value, found.low, found.high))
    whiskers = np.array([value - low, high - value])
    if (whiskers > 0).any():
        axes.errorbar(at, value, yerr=whiskers, fmt="none", ecolor=BLACK, elinewidth=1.2, capsize=3)
    if log:
        (drawn,) = axes.plot(at, value, linestyle="none", markersize=8, **style)
        return drawn
    plain_style = {key: style[key] for key in ("color", "label")}
    return axes.bar(at, value, width * 0.92, alpha=0.85, **plain_style)


def drawable(values: Array, log: bool) -> Array:
    """The values with NaN in place of what a logarithmic axis cannot show."""
    return np.where((values > 0) | (not log), values, np.nan)


def _failures(axes: Axes, x: Ruler, found: list[Layer], word: str) -> dict[str, Any]:
    """Crosses on the axis where a cell of any curve failed."""
    failed = np.logical_or.reduce([part.failed | part.partly for part in found])
    if not failed.any():
        return {}
    (drawn,) = axes.plot(
        x.at[failed],
        np.full(failed.sum(), 0.03),
        "x",
        color=BLACK,
        markersize=8,
        markeredgewidth=1.8,
        transform=axes.get_xaxis_transform(),
        zorder=5,
        label=word,
    )
    return {"failed": drawn}


def _logarithmic(study: Study, plan: Plan) -> bool:
    """Whether the height is logarithmic: as the study says, or over many decades."""
    values = np.asarray(study.data[plan.colour].values, dtype=float)
    chosen = plan.log if plan.log is not None else plan.range is None and spans_decades(values)
    return bool(chosen and (values[np.isfinite(values)] > 0).any())


def _frame(axes: Axes, x: Ruler, study: Study, plan: Plan, title: str) -> None:
    x.put(axes, "x")
    axes.set_axisbelow(True)
    axes.xaxis.grid(visible=not x.words)
    axes.set_ylabel(typeset(label(study.data, plan.colour)))
    if plan.colour in plan.contours:
        axes.axhline(plan.contours[plan.colour], color=GREY, linestyle="--", linewidth=1.2)
    if plan.range is not None:
        axes.set_ylim(plan.range)
    headed(axes, title)


def _left_out(study: Study, plan: Plan) -> str:
    size = study.data.sizes[plan.lines] if plan.lines else 0
    return f"{MOST} of the {size} values of {plain(plan.lines, 30)}." if size > MOST else ""
