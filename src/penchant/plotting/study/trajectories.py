"""Rows of numbers that cells keep, such as trajectories: a line for every cell, over its times."""

from __future__ import annotations

import copy
import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from penchant.arguments import Array
from penchant.lab.evidence.plot import Scale
from penchant.mathematics import escape, wrap
from penchant.plotting.plots import drawable
from penchant.plotting.study.curves import draw_curves
from penchant.plotting.study.layer import layer, spans_decades
from penchant.plotting.study.plan import (
    SEED,
    TIME_AXES,
    GatheredStudy,
    Plan,
    blank,
    coloured,
    key,
    panels,
)
from penchant.plotting.study.ruler import ruler
from penchant.plotting.study.words import label, number, plain
from penchant.plotting.style import GREY, RED

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure


SEEDS = 5  # lines of one colour


def draw_rows(
    study: GatheredStudy, name: str, title: str = "", note: str | None = None, **style: Any
) -> Figure:
    """The rows of `name`, in one colour for every value of an axis, a line for a seed."""
    wanted = (study.table.get("draw") or {}).get("x")
    lines = wanted if wanted in study.long else next(iter(study.long), None)
    fixed = tuple(dim for dim in study.long if dim != lines)
    data = study.data.isel(dict.fromkeys(fixed, 0))
    note = _note(study) if note is None else note
    figure, (axes,) = blank(study, Plan(name, x=SEED, fixed=fixed, title=title), 1, note)
    groups = [(text, colour, _lines(part, name)) for text, colour, part in coloured(data, lines)]
    _scales(axes, [rows for _, _, rows in groups])
    handles: dict[str, Any] = {}
    for text, colour, curves in groups:
        for x, y in curves:
            (drawn,) = axes.plot(x, y, color=colour, linewidth=1.4, label=text, **style)
            handles |= {text: drawn} if text else {}
    axes.set_xlabel(escape(_over(study.data, name)))
    axes.set_ylabel(escape(label(study.data, name)))
    key([axes], list(handles.values()))
    return figure


def _note(study: GatheredStudy) -> str:
    seeds = study.data.sizes.get(SEED, 1)
    most = f" (the first {SEEDS} of {seeds})" if seeds > SEEDS else ""
    return f"One line per seed{most}." if seeds > 1 else ""


def _lines(data: xarray.Dataset, name: str) -> list[tuple[Array, Array]]:
    """The finite part of every row that is left, over its own times."""
    time_axis = _time_axis(data, name)
    rows = np.asarray(data[name].values, float)
    rows = rows.reshape(-1, rows.shape[-1])[:SEEDS]
    if time_axis is None:
        times = np.broadcast_to(_count(data, name), rows.shape)
    else:
        times = np.asarray(data[time_axis].values, float).reshape(-1, rows.shape[-1])[:SEEDS]
    known = np.isfinite(rows) & np.isfinite(times)
    return [(t[k], row[k]) for t, row, k in zip(times, rows, known, strict=True)]


def _time_axis(data: xarray.Dataset, name: str) -> str | None:
    time_axes = (*TIME_AXES, "tried") if name == "measured" else TIME_AXES
    return next((c for c in time_axes if c in data and data[c].dims == data[name].dims), None)


def _count(data: xarray.Dataset, name: str) -> Array:
    dim = str(data[name].dims[-1])
    return (
        np.asarray(data[dim].values, dtype=float)
        if dim in data.coords
        else np.arange(data.sizes[dim], dtype=float)
    )


def _over(data: xarray.Dataset, name: str) -> str:
    time_axis = _time_axis(data, name)
    return label(data, time_axis, 60) if time_axis else plain(data[name].dims[-1], 60)


def _scales(axes: Any, groups: list[list[tuple[Array, Array]]]) -> None:
    """Logarithms where the numbers span decades; times that begin at 0 are cut there."""
    for side in (0, 1):
        parts = [line[side] for group in groups for line in group]
        values = np.concatenate(parts) if parts else np.empty(0)
        if side == 0:
            values = values[values > 0] if (values >= 0).all() else values
        if spans_decades(values):
            (axes.set_xscale if side == 0 else axes.set_yscale)("log")


NOTE = "Whiskers: the final bracket of the search. No point if most seeds have no threshold."


def draw_threshold(study: GatheredStudy, plan: Plan) -> Figure:
    """The threshold over x, with bars from the last value that passes to the first that does not.

    Without an axis to draw it over, what was measured at the values that were tried.
    """
    if not study.long:
        return draw_trials(study)
    log = study.table["threshold"].get("spacing", "log") == "log" if plan.log is None else plan.log
    chosen, study = dataclasses.replace(plan, log=log), _decided(study)
    figure, x = draw_curves(study, chosen, NOTE), ruler(study.data, chosen.x or "")
    for axes, (_, data) in zip(figure.axes, panels(study, chosen), strict=False):
        for _, colour, part in coloured(data, chosen.lines):
            _bracket(axes, x, part, colour, "log" if log else "linear")
        axes.set_ylabel(escape(rule_of(study)))
    return figure


def _decided(study: GatheredStudy) -> GatheredStudy:
    """The study without the places where most seeds have no threshold.

    The others are those with the largest or the smallest, and their median would hide it.
    """
    if SEED not in study.dims:
        return study
    some = np.isfinite(study.data.threshold).mean(SEED) >= 0.5
    decided_variables = {
        name: study.data[name].where(some) for name in ("threshold", "lower", "upper")
    }
    decided = copy.copy(study)
    decided.data = study.data.assign(decided_variables)
    return decided


def _bracket(axes: Any, x: Any, data: Any, colour: Any, scale: Scale) -> None:
    value, low, high = (
        drawable(layer(data, name, (x.name,)).value, scale)
        for name in ("threshold", "lower", "upper")
    )
    reach = np.clip(np.array([value - low, high - value]), 0, None)
    axes.errorbar(x.at, value, yerr=reach, fmt="none", ecolor=colour, elinewidth=1.6, capsize=4)


def rule_of(study: GatheredStudy) -> str:
    """What the threshold is of, for the label of an axis."""
    table = study.table["threshold"]
    level = number(table.get("below", table.get("above")))
    return wrap(
        f"{plain(table['axis'], 40)} where {plain(table['measure'], 40)} crosses {level}", 48
    )


def draw_trials(study: GatheredStudy, title: str = "") -> Figure:
    """The measure at every value that was tried, with the level and the threshold."""
    table = study.table["threshold"]
    figure = draw_rows(
        study,
        "measured",
        title,
        "Dots: values that were tried; dashed: the level.",
        linestyle="none",
        marker="o",
        markersize=5,
    )
    axes = figure.axes[0]
    axes.axhline(table.get("below", table.get("above")), color=GREY, linestyle="--", linewidth=1.2)
    if not study.long and np.isfinite(thresholds := study.data.get("threshold", np.nan)).any():
        for value in np.atleast_1d(np.asarray(thresholds, float)):
            axes.axvline(value, color=RED, linewidth=1.2)
    axes.set_xlabel(escape(plain(table["axis"], 60)))
    axes.set_ylabel(escape(plain(table["measure"], 60)))
    return figure
