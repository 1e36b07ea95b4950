"""Pictures of datasets: their common style, and drawings that several papers share."""

from penchant.mathematics import in_terminal, latex, wrap
from penchant.plotting.mplstyle import for_paper, styled
from penchant.plotting.network import NETWORK_DIMS, NETWORK_LABELS, Network, draw_network
from penchant.plotting.placing import NOTE_DISTANCES, Note, write_beside
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
    SKY,
    caption_of,
    clear_logs,
    end_label,
    log_axes,
    sheet,
    sheet_of,
)
from penchant.plotting.transition import LEGEND, draw_transition, mark, panel_rows

__all__ = [
    "BLACK",
    "BLUE",
    "CYCLE",
    "GREEN",
    "GREY",
    "LEGEND",
    "MARKERS",
    "NETWORK_DIMS",
    "NETWORK_LABELS",
    "NOTE_DISTANCES",
    "ORANGE",
    "PALE",
    "PURPLE",
    "RED",
    "SKY",
    "Network",
    "Note",
    "caption_of",
    "clear_logs",
    "draw_network",
    "draw_on_sphere",
    "draw_sphere",
    "draw_transition",
    "end_label",
    "for_paper",
    "in_terminal",
    "latex",
    "log_axes",
    "mark",
    "panel_rows",
    "panels",
    "sheet",
    "sheet_of",
    "styled",
    "viewer",
    "wrap",
    "write_beside",
]
from penchant.plotting import plane as plane
