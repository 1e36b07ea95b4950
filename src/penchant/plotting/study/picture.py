"""The picture of a gathered study, and a few more of what else is in it.

    figure = draw_study(penchant.load("penchant-studies/scale.nc"))

The table [draw] of the study names what is drawn; by default these are the first axes and the first
number (plan). Two axes give a map (map), one axis gives curves or bars (curves), a threshold has
its bracket, rows of numbers are lines over time (trajectories), and a single cell is a table.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from penchant.plotting.mplstyle import styled
from penchant.plotting.study.curves import draw_curves
from penchant.plotting.study.map import draw_map
from penchant.plotting.study.plan import GatheredStudy, Plan, blank, plan_of
from penchant.plotting.study.trajectories import draw_rows, draw_threshold, draw_trials
from penchant.plotting.study.words import label, named, number, plain
from penchant.plotting.style import PALE, clear_logs

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure


MOST = 14  # rows


def draw_single(study: GatheredStudy) -> Figure:
    """Name, value and meaning of every number of the cell."""
    names = study.numbers[:MOST]
    figure, (axes,) = blank(study, Plan(names[0]), 1)
    figure.set_size_inches(5.8, 1.5 + 0.3 * len(names))
    axes.axis("off")
    values = [number(study.data[name].values.item()) for name in names]
    meanings = [plain(label(study.data, name, 400), 46) for name in names]
    rows = list(zip((plain(name, 24) for name in names), values, meanings, strict=True))
    style: Any = {"cellLoc": "left", "colLoc": "left", "colWidths": [0.28, 0.16, 0.56]}
    table = axes.table(
        rows, colLabels=["result", "value", "meaning"], loc="upper left", edges="B", **style
    )
    table.auto_set_font_size(False)
    table.set_fontsize(9)
    table.scale(1, 1.5)
    for cell in table.get_celld().values():
        cell.get_text().set_parse_math(False)
        cell.set_edgecolor(PALE)
    return figure


FURTHER = 4  # pictures in addition to the first
NUMBERS = 3  # of them of other numbers


@dataclasses.dataclass(frozen=True)
class Drawing:
    """A picture that is not drawn yet: its title, and the call that draws it."""

    text: str
    draw: Callable[[], Figure]


def draw_study(dataset: xarray.Dataset) -> Figure:
    """The picture of a gathered study; a ValueError says why there is none."""
    study = GatheredStudy(dataset)
    with styled():
        return clear_logs(_drawn(study))


def _drawn(study: GatheredStudy) -> Figure:
    if study.table.get("threshold") and "measured" in study.rows and not study.numbers:
        return draw_trials(study)  # no line has a threshold: the trials show why
    row = first_row(study)
    return draw_rows(study, row) if row else _of(study, plan_of(study))


def first_row(study: GatheredStudy) -> str | None:
    """The row to draw as the study's picture: if it names one, or has nothing else to compare."""
    wanted = (study.table.get("draw") or {}).get("colour")
    if wanted in study.rows:
        return str(wanted)
    compared = study.numbers and (wanted or study.data.status.size > 1)
    threshold = bool(study.table.get("threshold"))
    return study.rows[0] if study.rows and not compared and not threshold else None


def _of(study: GatheredStudy, plan: Plan) -> Figure:
    if plan.y is not None:
        return draw_map(study, plan)
    if study.table.get("threshold") and plan.colour == "threshold":
        return draw_threshold(study, plan)
    if plan.x is None or study.data.status.size == 1:
        return draw_single(study)
    return draw_curves(study, plan)


def further(dataset: xarray.Dataset) -> list[Drawing]:
    """Other numbers drawn in the same way, then rows: a handful at most."""
    study = GatheredStudy(dataset)
    if study.table.get("threshold"):
        text = "The measured values along the search"
        trials = Drawing(text, partial(draw_trials, study, text))
        return [trials] if study.long and study.numbers else []
    compared = bool(study.numbers) and study.data.status.size > 1
    numbers = _others(study)[:NUMBERS] if compared else []
    rows = [row for row in study.rows if row != first_row(study)][: FURTHER - len(numbers)]
    return [
        Drawing(named(study.data, name), partial(_other, study, name)) for name in numbers + rows
    ]


def _other(study: GatheredStudy, name: str) -> Figure:
    if name in study.rows:
        return clear_logs(draw_rows(study, name, named(study.data, name)))
    return clear_logs(_of(study, plan_of(study, name)))


def _others(study: GatheredStudy) -> list[str]:
    """The numbers that differ from cell to cell and are not yet drawn."""
    plan = None if first_row(study) else plan_of(study)
    known = {plan.colour, *plan.contours} if plan else set()
    return [name for name in study.numbers if name not in known and _varies(study, name)]


def _varies(study: GatheredStudy, name: str) -> bool:
    values = np.asarray(study.data[name].values, dtype=float)
    return len(np.unique(values[np.isfinite(values)])) > 1
