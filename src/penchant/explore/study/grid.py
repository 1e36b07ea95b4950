"""The parts of a gathered study, and the settings of its table [draw].

The file is not trusted: its texts are cut and made plain. A table [draw] that cannot be used is
ignored, and the page says so.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from penchant.explore.controls import WHO
from penchant.lab.studies.gathered import description_of, dimensions_of, variables_of
from penchant.mathematics import in_terminal
from penchant.plotting.study.plan import SEED, TIME_AXES, GatheredStudy, Plan, plan_of

if TYPE_CHECKING:
    import xarray

CUT = 40  # letters of a name
MOST_LINES = 6  # contours of a diagram
TIMES = (*TIME_AXES, "tried")  # what a row of numbers is drawn over
UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError)


def plain(text: object, most: int = 160) -> str:
    """A foreign text on one line, cut, and without what a page could take for formulas."""
    words = " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())
    words = re.sub(r"\$\$|\\[(\[]", lambda match: " ".join(match[0]), words)
    return words if len(words) <= most else f"{words[: most - 1]}…"


@dataclass(frozen=True)
class Requested:
    """What is shown first, and the lines on the diagram; `y` may be None, as all of it."""

    x: str | None = None
    y: str | None = None
    colour: str | None = None
    contours: Mapping[str, float] = field(default_factory=dict)
    range: tuple[float, float] | None = None
    log: bool | None = None
    remark: str = ""


@dataclass(frozen=True, eq=False)
class Grid:
    """The dataset of a study, its axes rising."""

    dataset: xarray.Dataset
    requested: Requested

    @property
    def dims(self) -> tuple[str, ...]:
        return dimensions_of(self.dataset)

    @property
    def long(self) -> tuple[str, ...]:
        """The dimensions along which there is something to choose."""
        return tuple(dim for dim in self.dims if self.dataset.sizes[dim] > 1) or self.dims[:1]

    @property
    def quantities(self) -> list[str]:
        """The variables with one number per cell, and the status."""
        return [*variables_of(self.dataset), "status"]

    @property
    def curves(self) -> list[str]:
        """The variables with a row of numbers per cell."""
        return [name for name in variables_of(self.dataset, 1) if name not in TIMES]

    @property
    def seeds(self) -> bool:
        """Whether cells differ by their seeds."""
        return SEED in self.long

    def label(self, name: str) -> str:
        """The name of a variable or an axis, with what it means."""
        meaning = plain(in_terminal(str(self.dataset[name].attrs.get("long_name", name))), 60)
        return meaning if meaning == name else f"{plain(name, CUT)}: {meaning}"

    def values(self, dim: str) -> list[str]:
        """The values of an axis as texts."""
        return [
            f"{v:.4g}" if isinstance(v, float) else plain(v, 24)
            for v in self.dataset[dim].values.tolist()
        ]


def grid_of(dataset: xarray.Dataset) -> Grid:
    """The parts of a study with its table [draw], or with the reason why that is ignored."""
    bare = dataset.assign_attrs(description="{}")
    try:
        return _with_plan(dataset)
    except UNREADABLE as reason:
        remark = f"Its table [draw] is ignored ({plain(reason, 200)})."
    try:
        grid = _with_plan(bare)
    except UNREADABLE:  # there is no number in it: its status is shown
        return Grid(GatheredStudy(bare).data, Requested())
    axes = grid.requested
    shown = Requested(axes.x, axes.y, axes.colour, remark=remark if _table(dataset) else "")
    return Grid(grid.dataset, shown)


def _table(dataset: xarray.Dataset) -> Any:
    try:
        return description_of(dataset).get("draw")
    except UNREADABLE:
        return "unreadable"


def _with_plan(dataset: xarray.Dataset) -> Grid:
    study = GatheredStudy(dataset)
    plan = plan_of(study)
    y, log = plan.y or plan.lines or plan.panels, None if plan.log is None else bool(plan.log)
    requested = Requested(plan.x, y, plan.colour, _levels(plan), _range(plan), log)
    return Grid(study.data, requested)


def _levels(plan: Plan) -> dict[str, float]:
    """The levels of the contours by name; a foreign file may hold anything there."""
    levels = {str(name): float(level) for name, level in dict(plan.contours).items()}
    if len(levels) > MOST_LINES or not all(map(math.isfinite, levels.values())):
        raise ValueError(f"{WHO}: draw.contours must be at most {MOST_LINES} finite levels")
    return levels


def _range(plan: Plan) -> tuple[float, float] | None:
    if plan.range is None:
        return None
    low, high = map(float, plan.range)
    if not -np.inf < low < high < np.inf or (plan.log and low <= 0):
        raise ValueError(f"{WHO}: draw.range must be two increasing numbers")
    return low, high
