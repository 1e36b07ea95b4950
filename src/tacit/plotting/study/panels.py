"""The panels of a study's picture: one, or small multiples over a further axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.plotting.study.plan import Plan, Study, told
from tacit.plotting.study.words import number, plain, short, title_of
from tacit.plotting.style import sheet
from tacit.plotting.typeset import typeset

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST = 6
LETTERS = 10.5  # of a legend on an inch
ONE, MANY = (5.8, 4.4), (3.6, 3.3)  # inches


def panels(study: Study, plan: Plan) -> list[tuple[str, xarray.Dataset]]:
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


def some(count: int, most: int) -> list[int]:
    """Up to `most` of the numbers below `count`, evenly spread, both ends included."""
    if count <= most:
        return list(range(count))
    return [int(k) for k in np.unique(np.rint(np.linspace(0, count - 1, most)))]


def blank(study: Study, plan: Plan, count: int, note: str = "") -> tuple[Figure, list[Axes]]:
    """A sheet of `count` panels with the title and the caption of the study."""
    columns = count if count <= 3 else -(-count // 2)
    rows = -(-count // columns)
    width, height = ONE if count == 1 else MANY
    caption = " ".join(filter(None, [told(study, plan), _left_out(study, plan), note]))
    figure, (empty,) = sheet(
        plan.title or title_of(study.data), caption, (width * columns,), height * rows + 0.6
    )
    empty.remove()
    grid = figure.add_gridspec(rows + 1, columns, height_ratios=[0.001, *[1.0] * rows])
    places = [(row + 1, column) for row in range(rows) for column in range(columns)]
    return figure, [figure.add_subplot(grid[place]) for place in places[:count]]


def _left_out(study: Study, plan: Plan) -> str:
    size = study.data.sizes[plan.panels] if plan.panels else 0
    return f"{MOST} of the {size} values of {plain(plan.panels, 30)}." if size > MOST else ""


def headed(axes: Axes, title: str) -> None:
    """The title of a panel, as it stands."""
    if title:
        axes.set_title(typeset(title))


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
    place = axes[0].get_gridspec()
    assert place is not None
    row = axes[0].figure.add_subplot(place[0, :])
    inches = row.get_figure(root=True).get_size_inches()[0]  # type: ignore[union-attr]
    columns = int(LETTERS * inches / (max(map(len, names)) + 6)) or 1
    row.axis("off")
    texts = [f" {typeset(name)}" for name in names]  # a leading _ would hide the entry
    style: dict[str, Any] = {"frameon": False, "borderaxespad": 0, "columnspacing": 1.2}
    row.legend(handles, texts, loc="lower left", ncols=columns, handlelength=1.8, **style)
