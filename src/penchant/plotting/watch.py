"""The picture of a watched run: curves, forecasts, regimes in time, norms, and what moved.

It draws the record of a watch and the results that other modules computed from it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from penchant.plotting.mplstyle import styled
from penchant.plotting.style import (
    BLACK,
    BLUE,
    CYCLE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    clear_logs,
)
from penchant.plotting.transition import band, mark, panel_rows
from penchant.plotting.watch_panel import ROW, panel_parts
from penchant.plotting.watch_rows import (
    draw_forecasts,
    draw_modules,
    modules_height,
)

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STEPS = ("call_step", "step", "glance_step")
ACCURACIES = ("accuracy", "acc")
LOSSES = ("loss", "error", "err", "mse")
SHADES = {"kernel": "#DCEAF5", "leaving": "#FFF3D6", "rich": "#F9DFD0", "unknown": "#FFFFFF"}
NORMS: dict[str, tuple[str, dict[str, Any]]] = {
    "glance_norm": (r"$\ell_2$", {"color": BLUE, "linewidth": 3.5}),
    "norm_l1": (r"$\ell_1$", {"color": ORANGE, "linestyle": "--"}),
    "norm_nuclear": ("nuclear", {"color": BLACK, "linestyle": ":"}),
}
SHADE_LABEL = "regime: "
LEGEND: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.02), "borderaxespad": 0.3}
MOST = 2000  # points of a curve that are drawn
FINE = 500  # with more points than this a curve may be noisy, and is thin
FLOOR = 1e-6  # smaller changes are drawn here
AHEAD = 30.0  # a forecast beyond this many times the run is printed, not drawn


def draw_watch(
    dataset: xarray.Dataset,
    title: str,
    kinds: Sequence[str],
    limits: tuple[float, float],
    marks: Sequence[tuple[float, str]] = (),
    ahead: tuple[float, float, float] | None = None,
    happened: float = math.nan,
    modules: tuple[Sequence[str], Any] | None = None,
    forecasts: Sequence[tuple[float, float, float, float]] = (),
) -> Figure:
    """The figure of a record: its measurements over the steps, in rows.

    `kinds` names the regime at every look and `limits` the distances that divide them, and `marks`
    are steps with a text. `ahead` is the forecast (low, expected, high) of the last step, and
    `happened` the step at which what was forecast did happen. `modules` are names of modules with
    their relative moves, (looks, modules). `forecasts` are those of the run: when each was made,
    and its low, expected and high step.
    """
    start = float(dataset.attrs["start_step"])
    since = dataset.assign({name: dataset[name] - start for name in STEPS})
    forecast = None if ahead is None else [step - start for step in ahead]
    curves = [group for ends in (ACCURACIES, LOSSES) if (group := _metrics(dataset, ends))]
    made = list(np.array(forecasts, dtype=np.float64).reshape(-1, 4).T - start)
    made = made if len(forecasts) else []
    chosen = panel_parts(dataset)
    heights = [1.55] * len(curves) + [1.7] * bool(made) + [2.1, 1.35]
    heights += [ROW] * len(chosen)
    heights += [modules_height(len(modules[0]))] if modules else []
    with styled():
        picture, axes = panel_rows(title, _caption(dataset), heights, 9.2)
        left = iter(axes)
        for names in curves:
            _draw_metrics(next(left), since, names)
        if made:
            draw_forecasts(next(left), made, happened - start)
        _draw_kernel(next(left), since, kinds, limits)
        _draw_norms(next(left), since)
        for draw in chosen:
            draw(next(left), since)
        last = _steps_axis(axes, since, start, forecast)
        if modules:
            draw_modules(next(left), since["step"].values, *modules)
        timed = axes[:-1] if modules else axes
        for (step, text), line in zip(marks, ("--", "-.", "-"), strict=False):
            mark(timed, step - start, text, BLACK, line)
        if forecast and forecast[1] <= AHEAD * last:
            _draw_forecast(timed, *forecast)
        for panel in axes:
            panel.minorticks_off()  # the layout measures every one of them
            if panel.get_legend_handles_labels()[1]:
                panel.legend(**LEGEND)
        picture.align_ylabels(timed)
        return clear_logs(picture)


def _metrics(dataset: Any, ends: tuple[str, ...]) -> list[str]:
    """Names of the metrics that end in one of these words, training before the others."""
    names = [str(name) for name, v in dataset.data_vars.items() if v.dims == ("call",)]
    known = [name for name in names if name.split("_")[-1] in ends]
    return sorted(known, key=lambda name: (not name.startswith("train"), name))[: len(CYCLE)]


def _draw_metrics(axes: Axes, dataset: Any, names: Sequence[str]) -> None:
    low, high, ends = 0.0, 1.0, [math.inf, 0.0]
    for name, colour in zip(names, CYCLE, strict=False):
        x, y = _thinned(dataset["call_step"].values, dataset[name].values)
        width = 2.0 if len(x) < FINE else 1.2
        axes.plot(x, y, color=colour, linewidth=width, label=name.replace("_", " "))
        low, high = min(low, float(y.min(initial=0.0))), max(high, float(y.max(initial=1.0)))
        above = y[y > 0]
        ends = [min(ends[0], above.min(initial=math.inf)), max(ends[1], above.max(initial=0.0))]
    if names[0].split("_")[-1] in ACCURACIES:
        axes.set(ylabel="accuracy", ylim=(0, 1.05 * high))
    else:
        # a logarithmic axis of less than a decade may have no power of ten to name
        tall = low == 0 and ends[1] > 10 * ends[0]
        axes.set(ylabel="loss", yscale="log" if tall else "linear")


def _thinned(x: Any, y: Any) -> tuple[Any, Any]:
    """At most MOST finite points after the start, evenly spaced in log x."""
    known = np.isfinite(y) & (x > 0)
    x, y = x[known], y[known]
    if len(x) <= MOST:
        return x, y
    places = np.searchsorted(x, np.geomspace(x[0], x[-1], MOST))
    chosen = np.unique(places.clip(0, len(x) - 1))
    return x[chosen], y[chosen]


def _draw_kernel(axes: Axes, dataset: Any, kinds: Any, limits: Any) -> None:
    step = dataset["step"].values
    _shade(axes, step, kinds)
    shown = {
        "kernel_distance": ("kernel distance\nfrom the start", "o-", BLACK, 2.0),
        "linearized_error": ("share missed by the\nlinearized model", "s--", PURPLE, 1.3),
    }
    least = min(limits)
    for name, (text, line, colour, width) in shown.items():
        values = dataset[name].values
        known = np.isfinite(values) & (step > 0)
        least = min(least, values[known].min(initial=math.inf))
        axes.plot(
            step[known],
            np.maximum(values[known], FLOOR),
            line,
            color=colour,
            linewidth=width,
            markersize=3,
            label=text,
        )
    for limit in limits:
        axes.axhline(limit, color=GREY, linestyle=":", linewidth=1)
    axes.set(ylabel="change of the\ntangent kernel", yscale="log", ylim=(max(least, FLOOR) / 2, 20))


def _shade(axes: Axes, step: Any, kinds: Sequence[str]) -> None:
    """Paints the regimes in time, and names them where there is room."""
    known = [(s, kind) for s, kind in zip(step, kinds, strict=True) if s > 0]
    parts = [(kind, next(part)[0]) for kind, part in groupby(known, lambda pair: pair[1])]
    edges = [left for _, left in parts[1:]] + [s for s, _ in known[-1:]]
    whole = math.log(known[-1][0] / known[0][0]) if known else 0.0
    for (kind, left), right in zip(parts, edges, strict=True):
        if kind == "unknown" or left == right:
            continue
        fresh = SHADE_LABEL + kind not in axes.get_legend_handles_labels()[1]
        axes.axvspan(
            left, right, color=SHADES[kind], zorder=0, label=SHADE_LABEL + kind if fresh else None
        )
        if math.log(right / left) > 0.1 * whole:
            axes.text(
                math.sqrt(left * right),
                0.95,
                kind,
                ha="center",
                va="top",
                zorder=5,
                fontweight="bold",
                transform=axes.get_xaxis_transform(),
                bbox={"facecolor": SHADES[kind], "edgecolor": "none", "pad": 2},
            )


def _draw_norms(axes: Axes, dataset: Any) -> None:
    """The norms over those of the start; the l2 norm is known at the glances too."""
    top = 1.0
    for name, (text, style) in NORMS.items():
        at = "glance_step" if name == "glance_norm" else "step"
        step, values = dataset[at].values, dataset[name].values
        known = np.isfinite(values) & (step > 0)
        if known.any() and values[0] > 0:
            mark = "o" if np.count_nonzero(known) == 1 else ""
            axes.plot(step[known], values[known] / values[0], marker=mark, label=text, **style)
            top = max(top, float(np.max(values[known] / values[0])))
    axes.set(ylabel="norm over\nthat of start", ylim=(0, 1.15 * top))


def _draw_forecast(axes: Sequence[Axes], low: float, expected: float, high: float) -> None:
    """The interval that is forecast now, through all rows."""
    style: dict[str, Any] = {"facecolor": "none", "edgecolor": GREEN, "hatch": "//"}
    band(axes, low, high, "forecast now", linewidth=0.8, alpha=0.6, zorder=1, **style)
    for panel in axes:
        panel.axvline(expected, color=GREEN, linewidth=1.6, zorder=2)


def _steps_axis(axes: Sequence[Axes], dataset: Any, start: float, forecast: Any) -> float:
    """Sets the common axis, logarithmic in the steps; returns the last step since the start."""
    parts = [dataset[name].values for name in ("call_step", "step")]
    steps = np.concatenate([part[part > 0] for part in parts])
    first, last = (float(steps.min()), float(steps.max())) if steps.size else (1.0, 10.0)
    right = last
    if forecast and forecast[1] <= AHEAD * last:
        right = max(last, min(forecast[2], 2 * AHEAD * last))
    axes[0].set(xscale="log", xlim=(first * 0.93, right * 1.07))
    axes[-1].set_xlabel(f"training steps since step {start:g}" if start else "training step")
    return last


def _caption(dataset: Any) -> str:
    attributes = dataset.attrs
    samples, count = dataset.sizes["sample"], attributes["parameters"]
    text = f"penchant.watch on {samples} probe inputs of a model with {count:,} trained parameters."
    if attributes["weight_decay"] > 0:
        text += f" Weight decay {attributes['weight_decay']:g}."
    step = max(float(dataset[name].values.max(initial=0.0)) for name in ("call_step", "step"))
    return f"{text} Read at step {step:g}. Dotted: the kernel distances that divide the regimes."
