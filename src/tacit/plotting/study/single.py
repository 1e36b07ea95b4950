"""A study of one cell: its numbers as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tacit.plotting.study.panels import blank
from tacit.plotting.study.plan import Plan, Study
from tacit.plotting.study.words import label, number, plain
from tacit.plotting.style import PALE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 14  # rows


def draw_single(study: Study) -> Figure:
    """Name, value and meaning of every number of the cell."""
    names = study.numbers[:MOST]
    figure, (axes,) = blank(study, Plan(study.who, names[0]), 1)
    figure.set_size_inches(5.8, 1.5 + 0.3 * len(names))
    axes.axis("off")
    rows = [
        [
            plain(name, 24),
            number(study.data[name].values.item()),
            plain(label(study.data, name, 400), 46),
        ]
        for name in names
    ]
    style: Any = {"cellLoc": "left", "colLoc": "left", "colWidths": [0.28, 0.16, 0.56]}
    table = axes.table(
        rows, colLabels=["result", "value", "meaning"], loc="upper left", edges="B", **style
    )
    table.auto_set_font_size(False)
    table.set_fontsize(9)
    table.scale(1, 1.5)
    for cell in table.get_celld().values():
        _plain_cell(cell)
    return figure


def _plain_cell(cell: Any) -> None:
    cell.get_text().set_parse_math(False)
    cell.set_edgecolor(PALE)
