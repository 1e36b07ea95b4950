"""How a study is drawn: its table [draw], and what is chosen where that says nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from penchant.arguments import one_of
from penchant.door import Invalid, door_as
from penchant.lab.studies.compute import OK
from penchant.lab.studies.gather import MISSING
from penchant.lab.studies.gathered import description_of, dimensions_of, variables_of
from penchant.mathematics import escape, in_terminal
from penchant.plotting.study.ruler import sorted_axes
from penchant.plotting.study.words import named, number, plain, short, title_of
from penchant.plotting.style import CYCLE, GREY, sheet

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


SEED = "seed"
LONG = 4  # values from which both axes of a map must have
TIME_AXES = ("trajectory_t", "trajectory_log_t", "trajectory_step", "trajectory_smoothed_margin")
BRACKET = ("lower", "upper", "trials")  # of a threshold: drawn with it, or not worth a picture


@dataclasses.dataclass(frozen=True)
class Plan:
    """One picture: with `y` it is a map; without, one panel has a curve for each of `lines`.

    `panels` is the axis of small multiples, `fixed` the axes held at their first value.
    """

    colour: str
    x: str | None = None
    y: str | None = None
    lines: str | None = None
    panels: str | None = None
    fixed: tuple[str, ...] = ()
    contours: Mapping[str, float] = dataclasses.field(default_factory=dict)
    range: tuple[float, float] | None = None
    log: bool | None = None
    title: str = ""


class GatheredStudy:
    """A gathered study by its parts, with rising axes."""

    def __init__(self, dataset: xarray.Dataset):
        self.dims = dimensions_of(dataset)
        self.data = sorted_axes(dataset, self.dims)
        self.table = description_of(dataset)
        self.label = f"study {plain(dataset.attrs.get('study', '?'), 60)}"

    @property
    def long(self) -> list[str]:
        """The axes with something to compare, numbers first, without the seed."""
        axes = [dim for dim in self.dims if self.data.sizes[dim] > 1 and dim != SEED]
        return sorted(axes, key=lambda dim: self.data[dim].dtype.kind not in "fiu")

    @property
    def failure(self) -> str:
        """What a cross in a picture means: a row of a threshold is a search."""
        searched = self.table.get("threshold")
        return "a seed has no threshold" if searched else "a cell failed"

    @property
    def numbers(self) -> list[str]:
        """The variables with one number per cell, those that the study itself names first."""
        measure = (self.table.get("refine") or {}).get("measure")
        without = BRACKET if self.table.get("threshold") else ()
        return self._named(0, without, [measure, *self.table.get("final", ())])

    @property
    def rows(self) -> list[str]:
        """The variables with one row of numbers per cell, except times."""
        first = [f"trajectory_{name}" for name in self.table.get("trajectory", ())]
        return self._named(1, (*TIME_AXES, "tried"), first)

    def _named(self, more: int, without: tuple[str, ...], first: list[Any]) -> list[str]:
        """The variables with this many more dimensions than a cell, `first` ones first."""
        every = [name for name in variables_of(self.data, more) if name not in without]
        wanted = [*first, *self.table.get("labels", {})]
        return sorted(every, key=lambda n: wanted.index(n) if n in wanted else len(wanted))


@door_as(lambda study: study.label)
def plan_of(study: GatheredStudy, colour: str | None = None) -> Plan:
    """The plan of the study's picture, or of the same picture of another variable."""
    table: dict[str, Any] = study.table.get("draw") or {}
    for key in ("x", "y"):
        if key in table:
            one_of(f"axis in draw.{key}", table[key], study.dims)
    for name in filter(None, (colour or table.get("colour"), *table.get("contours", {}))):
        one_of("number of a cell in draw,", name, study.numbers)
    if not study.numbers:
        raise Invalid(_nothing(study))
    chosen = colour or table.get("colour") or study.numbers[0]
    plan = Plan(chosen, **_axes(study, table), contours=table.get("contours", {}))
    if colour is not None:
        return dataclasses.replace(plan, title=named(study.data, colour))
    ends = tuple(table["range"]) if "range" in table else None
    return dataclasses.replace(plan, range=ends, log=table.get("log"))


def _nothing(study: GatheredStudy) -> str:
    kinds = sorted(set(map(str, study.data.status.values.flat)))
    if set(kinds) <= set(OK):
        return "its cells gave no number, so there is nothing to draw"
    ended = ", ".join(kinds)
    return (
        f"no cell gave a number to draw (cells ended: {plain(ended, 80)}); "
        "see the messages of the cells"
    )


def _axes(study: GatheredStudy, table: Mapping[str, Any]) -> dict[str, Any]:
    """Which axis goes where."""
    sizes, numeric = study.data.sizes, [d for d in study.long if _numeric(study, d)]
    x, y = table.get("x"), table.get("y")
    if x is None:
        x = next((dim for dim in [*study.long, *study.dims] if dim != y), None)
        wide = [dim for dim in numeric if sizes[dim] >= LONG]
        if y is None and len(wide) > 1:
            x, y = wide[:2]
        elif y is None and wide:
            x = wide[0]
    rest = [dim for dim in study.long if dim not in (x, y)]
    lines = rest.pop(0) if rest and y is None else None
    panels = rest.pop(0) if rest else None
    return {"x": x, "y": y, "lines": lines, "panels": panels, "fixed": tuple(rest)}


def _numeric(study: GatheredStudy, dim: str) -> bool:
    return study.data[dim].dtype.kind in "fiu"


def caption_of(study: GatheredStudy, plan: Plan) -> str:
    """The caption: what was done with the seeds, with other axes, and how the cells ended."""
    parts = []
    seeds = study.data.sizes.get(SEED, 1)
    if seeds > 1 and SEED not in (plan.x, plan.y):
        texts = plan.x is not None and not _numeric(study, plan.x)
        mark = "" if plan.y else f"; {'whiskers' if texts else 'band'}: smallest to largest"
        parts.append(f"Median over {seeds} seeds{mark}.")
    if plan.fixed:
        fixed = (f"{plain(dim, 30)} = {number(study.data[dim].values[0])}" for dim in plan.fixed)
        parts.append(f"At {', '.join(fixed)}.")
    return " ".join([*parts, counted(study)])


def counted(study: GatheredStudy) -> str:
    """How many cells there are, and how many of them failed or are doubtful."""
    attributes = study.data.attrs
    cells, failed = (int(attributes.get(key, 0)) for key in ("cells", "failed"))
    if study.table.get("threshold"):
        return f"{cells} cells, {failed} of {study.data.status.size} searches without a threshold."
    blank = study.table.get("refine") and (study.data.status.values == MISSING).any()
    odd = {word: int(attributes.get(word, 0)) for word in ("failed", "doubtful")}
    words = [f"{number} {word}" for word, number in odd.items() if number]
    count = f"{', '.join([f'{cells} cell' + 's' * (cells != 1), *words])}."
    return f"{count} Blank: not needed." if blank else count


MOST, CURVES = 6, 8  # panels, and curves that can be distinguished
LETTERS = 10.5  # of a legend on an inch
ONE, MANY = (5.8, 4.4), (3.6, 3.3)  # inches


def panels(study: GatheredStudy, plan: Plan) -> list[tuple[str, xarray.Dataset]]:
    """(what holds in the panel, its part of the study); of many values some, evenly chosen."""
    data = study.data.isel(dict.fromkeys(plan.fixed, 0))
    if plan.panels is None:
        return [("", data)]
    return [
        (
            f"{short(data, plan.panels)} = {number(data[plan.panels].values[k])}",
            data.isel({plan.panels: k}),
        )
        for k in some(data.sizes[plan.panels], MOST)
    ]


def coloured(data: xarray.Dataset, dim: str | None) -> list[tuple[str, Any, xarray.Dataset]]:
    """(name, colour, its part of the data) for some values of an axis; all of it without one.

    The colours follow the values, or are as different as possible.
    """
    from matplotlib import colormaps

    if dim is None:
        return [("", CYCLE[0], data)]
    indices = some(data.sizes[dim], CURVES)
    colours: Any = (*CYCLE, GREY)[: len(indices)]
    if len(indices) > 3 and data[dim].dtype.kind in "fiu":
        colours = colormaps["viridis"](np.linspace(0.0, 0.88, len(indices)))
    name = short(data, dim, 24)
    return [
        (f"{name} = {number(data[dim].values[k])}", colour, data.isel({dim: k}))
        for k, colour in zip(indices, colours, strict=True)
    ]


def some(count: int, most: int) -> list[int]:
    """Up to `most` of the numbers below `count`, evenly spread, both ends included."""
    if count <= most:
        return list(range(count))
    return [int(k) for k in np.unique(np.rint(np.linspace(0, count - 1, most)))]


def blank(
    study: GatheredStudy, plan: Plan, count: int, note: str = ""
) -> tuple[Figure, list[Axes]]:
    """A sheet of `count` panels with the title and the caption of the study."""
    columns = count if count <= 3 else -(-count // 2)
    rows = -(-count // columns)
    width, height = ONE if count == 1 else MANY
    notes = [_left_out(study, plan.panels, MOST), _left_out(study, plan.lines, CURVES), note]
    caption = " ".join(filter(None, [caption_of(study, plan), *notes]))
    figure, (empty,) = sheet(
        plan.title or title_of(study.data), caption, (width * columns,), height * rows + 0.6
    )
    empty.remove()
    grid = figure.add_gridspec(rows + 1, columns, height_ratios=[0.001, *[1.0] * rows])
    cells = [(row + 1, column) for row in range(rows) for column in range(columns)]
    return figure, [figure.add_subplot(grid[cell]) for cell in cells[:count]]


def _left_out(study: GatheredStudy, dim: str | None, most: int) -> str:
    size = study.data.sizes[dim] if dim else 0
    return f"{most} of the {size} values of {plain(dim, 30)}." if size > most else ""


def headed(axes: Axes, title: str) -> None:
    """Write the title of a panel, if it has one."""
    if title:
        axes.set_title(escape(title))


def outer(axes: Sequence[Axes], heights: bool) -> None:
    """One label of the height for every row, and the same `heights` in all panels."""
    for at in axes:
        if not at.get_subplotspec().is_first_col():  # type: ignore[union-attr]
            at.set_ylabel("")
    limits = np.array([at.get_ylim() for at in axes])
    for at in axes if heights else ():
        at.set_ylim(limits[:, 0].min(), limits[:, 1].max())


def key(axes: Sequence[Axes], handles: list[Any]) -> None:
    """A legend in a row of its own above the panels, where it hides nothing."""
    if not handles:
        return
    names = [handle.get_label() for handle in handles]
    layout = axes[0].get_gridspec()
    assert layout is not None
    row = axes[0].figure.add_subplot(layout[0, :])
    inches = row.get_figure(root=True).get_size_inches()[0]  # type: ignore[union-attr]
    columns = int(LETTERS * inches / (max(len(in_terminal(name)) for name in names) + 6)) or 1
    row.axis("off")
    texts = [f" {escape(name)}" for name in names]  # a leading _ would hide the entry
    style: dict[str, Any] = {"frameon": False, "borderaxespad": 0, "columnspacing": 1.2}
    row.legend(handles, texts, loc="lower left", ncols=columns, handlelength=1.8, **style)
