"""Pictures of datasets: their common style, and drawings that several papers share."""

from penchant.plotting.network import DIMS, LABELS, Network, draw_network
from penchant.plotting.placing import FAR, Note, write_beside
from penchant.plotting.plots import MARKERS, panels
from penchant.plotting.sphere import draw_on_sphere, draw_sphere, viewer
from penchant.plotting.style import (
    BLACK,
    BLUE,
    CYCLE,
    GREEN,
    GREY,
    ORANGE,
    PALE,
    PURPLE,
    RED,
    caption_of,
    clear_logs,
    end_label,
    log_axes,
    sheet,
    sheet_of,
    styled,
)
from penchant.plotting.transition import LEGEND, draw_transition, mark, rows
from penchant.plotting.typeset import typeset

__all__ = [
    "BLACK",
    "BLUE",
    "CYCLE",
    "DIMS",
    "FAR",
    "GREEN",
    "GREY",
    "LABELS",
    "LEGEND",
    "MARKERS",
    "ORANGE",
    "PALE",
    "PURPLE",
    "RED",
    "Network",
    "Note",
    "caption_of",
    "clear_logs",
    "draw_network",
    "draw_on_sphere",
    "draw_sphere",
    "draw_transition",
    "end_label",
    "log_axes",
    "mark",
    "panels",
    "rows",
    "sheet",
    "sheet_of",
    "styled",
    "typeset",
    "viewer",
    "write_beside",
]
from penchant.plotting import plane as plane
