"""A study over one axis: curves with the seeds as a band, one for every value of a second axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penchant.lab.evidence.plot import Scale
from penchant.mathematics import escape
from penchant.plotting.plots import drawable
from penchant.plotting.study.layer import Layer, layer, spans_decades
from penchant.plotting.study.plan import (
    SEED,
    GatheredStudy,
    Plan,
    blank,
    coloured,
    headed,
    key,
    outer,
    panels,
)
from penchant.plotting.study.ruler import Ruler, ruler
from penchant.plotting.study.words import label
from penchant.plotting.style import BLACK, GREY

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKERS = "os^Dv*Px"
DENSE = 45  # points from which not every one is marked


def draw_curves(study: GatheredStudy, plan: Plan, note: str = "") -> Figure:
    """Curves of `plan.colour` over x; over texts, bars."""
    assert plan.x
    parts, x = panels(study, plan), ruler(study.data, plan.x)
    scale: Scale = "log" if _logarithmic(study, plan) else "linear"
    figure, axes = blank(study, plan, len(parts), note)
    handles: dict[str, Any] = {}
    for at, (title, data) in zip(axes, parts, strict=True):
        at.set_yscale(scale)
        layers = []
        curves = coloured(data, plan.lines)
        for number_, (name, colour, own) in enumerate(curves):
            curve = layer(own, plan.colour, (plan.x,))
            layers.append(curve)
            style = {"color": colour, "marker": MARKERS[number_ % len(MARKERS)], "label": name}
            drawn = (_bars if x.words else _curve)(at, x, curve, style, number_, len(curves), scale)
            handles |= {name: drawn} if name else {}
        handles |= _failures(at, x, layers, f"{study.failure} here")
        _frame(at, x, study, plan, title)
    outer(axes, heights=True)
    key(axes, list(handles.values()))
    return figure


def _curve(
    axes: Axes, x: Ruler, curve: Layer, style: Any, index: int, count: int, scale: Scale
) -> Any:
    """One curve, its band over the seeds, and the handle for the legend."""
    value, low, high = (drawable(v, scale) for v in (curve.value, curve.low, curve.high))
    if (curve.high > curve.low).any():
        axes.fill_between(x.at, low, high, color=style["color"], alpha=0.18, linewidth=0)
    dash = "none" if x.name == SEED else "-"
    every = 1 if len(x.at) <= DENSE else (index * 2, len(x.at) // 12)
    (line,) = axes.plot(x.at, value, linestyle=dash, markersize=5, markevery=every, **style)
    return line


def _bars(
    axes: Axes, x: Ruler, curve: Layer, style: Any, index: int, count: int, scale: Scale
) -> Any:
    """One group of bars with whiskers over the seeds; a logarithm has points, as it has no 0."""
    width = 0.8 / count
    at = x.at + (index - (count - 1) / 2) * width
    value, low, high = (drawable(v, scale) for v in (curve.value, curve.low, curve.high))
    whiskers = np.array([value - low, high - value])
    if (whiskers > 0).any():
        axes.errorbar(at, value, yerr=whiskers, fmt="none", ecolor=BLACK, elinewidth=1.2, capsize=3)
    if scale == "log":
        (drawn,) = axes.plot(at, value, linestyle="none", markersize=8, **style)
        return drawn
    plain_style = {key: style[key] for key in ("color", "label")}
    return axes.bar(at, value, width * 0.92, alpha=0.85, **plain_style)


def _failures(axes: Axes, x: Ruler, layers: list[Layer], word: str) -> dict[str, Any]:
    """Crosses on the axis where a cell of any curve failed."""
    failed = np.logical_or.reduce([part.failed | part.partly for part in layers])
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


def _logarithmic(study: GatheredStudy, plan: Plan) -> bool:
    """Whether the height is logarithmic: as the study says, or over many decades."""
    values = np.asarray(study.data[plan.colour].values, dtype=float)
    chosen = plan.log if plan.log is not None else plan.range is None and spans_decades(values)
    return bool(chosen and (values[np.isfinite(values)] > 0).any())


def _frame(axes: Axes, x: Ruler, study: GatheredStudy, plan: Plan, title: str) -> None:
    x.put(axes, "x")
    axes.set_axisbelow(True)
    axes.xaxis.grid(visible=not x.words)
    axes.set_ylabel(escape(label(study.data, plan.colour)))
    if plan.colour in plan.contours:
        axes.axhline(plan.contours[plan.colour], color=GREY, linestyle="--", linewidth=1.2)
    if plan.range is not None:
        axes.set_ylim(plan.range)
    headed(axes, title)
