"""A threshold that was searched for: over the other axes with its bracket, or by its trials."""

from __future__ import annotations

import copy
import dataclasses
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.plotting.study.curves import MOST, curves_of, draw_curves, drawable
from tacit.plotting.study.layer import layer
from tacit.plotting.study.panels import panels, some
from tacit.plotting.study.plan import SEED, Plan, Study
from tacit.plotting.study.ruler import ruler
from tacit.plotting.study.trajectories import draw_courses
from tacit.plotting.study.words import number, plain
from tacit.plotting.style import GREY, RED
from tacit.plotting.typeset import typeset

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NOTE = "Whiskers: what the search left open. No point where most seeds have no threshold."


def draw_threshold(study: Study, plan: Plan) -> Figure:
    """The threshold over x, with bars from the last value that passes to the first that does not.

    Without an axis to draw it over, what was measured at the values that were tried.
    """
    if not study.long:
        return draw_trials(study)
    log = study.table["threshold"].get("spacing", "log") == "log" if plan.log is None else plan.log
    chosen, study = dataclasses.replace(plan, log=log), _decided(study)
    figure = draw_curves(study, chosen, NOTE)
    for axes, (_, data) in zip(figure.axes, panels(study, chosen), strict=False):
        shown = some(data.sizes[chosen.lines], MOST) if chosen.lines else [0]
        for place, (_, colour, found) in zip(shown, curves_of(data, chosen), strict=True):
            part = data.isel({chosen.lines: place}) if chosen.lines else data
            _bracket(axes, ruler(study.data, chosen.x or ""), part, found, colour, log)
        axes.set_ylabel(typeset(rule_of(study)))
    return figure


def _decided(study: Study) -> Study:
    """The study without the places where most seeds have no threshold.

    The others are those with the largest or the smallest, and their median would hide it.
    """
    if SEED not in study.dims:
        return study
    some = np.isfinite(study.data.threshold).mean(SEED) >= 0.5
    kept = {name: study.data[name].where(some) for name in ("threshold", "lower", "upper")}
    decided = copy.copy(study)
    decided.data = study.data.assign(kept)
    return decided


def _bracket(axes: Any, x: Any, data: Any, found: Any, colour: Any, log: bool) -> None:
    ends = [drawable(layer(data, name, (x.name,)).value, log) for name in ("lower", "upper")]
    value = drawable(found.value, log)
    reach = np.clip(np.array([value - ends[0], ends[1] - value]), 0, None)
    axes.errorbar(x.at, value, yerr=reach, fmt="none", ecolor=colour, elinewidth=1.6, capsize=4)


def rule_of(study: Study) -> str:
    """What the threshold is of, for the label of an axis."""
    table = study.table["threshold"]
    level = number(table.get("below", table.get("above")))
    return textwrap.fill(
        f"{plain(table['axis'], 40)} where {plain(table['measure'], 40)} crosses {level}", 48
    )


def draw_trials(study: Study, title: str = "") -> Figure:
    """The measure at every value that was tried, with the level and the threshold."""
    table = study.table["threshold"]
    figure = draw_courses(
        study,
        "measured",
        title,
        "Dots: what was tried; dashed: the level.",
        linestyle="none",
        marker="o",
        markersize=5,
    )
    axes = figure.axes[0]
    axes.axhline(table.get("below", table.get("above")), color=GREY, linestyle="--", linewidth=1.2)
    if not study.long and np.isfinite(found := study.data.get("threshold", np.nan)).any():
        for value in np.atleast_1d(np.asarray(found, float)):
            axes.axvline(value, color=RED, linewidth=1.2)
    axes.set_xlabel(typeset(plain(table["axis"], 60)))
    axes.set_ylabel(typeset(plain(table["measure"], 60)))
    return figure
