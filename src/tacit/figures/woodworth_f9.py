"""W-F9, a diagram: the standard diagonal linear network, and the unbiased one with 2d units."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tacit.arguments import one_of
from tacit.figures.registry import Parameters, Progress, figure
from tacit.plotting.network import Network, draw_network, tables
from tacit.plotting.style import caption_of, sheet

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

PANELS = ("standard", "unbiased")
SHOWN = {"1": 4.4, "2": 2.2, "d": -1.0}  # name and height of the inputs that are shown


def data(parameters: Parameters, progress: Progress | None = None) -> xarray.Dataset:
    """The units and connections of both networks; `unit_panel` tells them apart."""
    network = Network()
    outputs = [network.unit("output", 6.0, 1.7, "$f$", panel) for panel in (0, 1)]
    for i, height in SHOWN.items():
        entry = network.unit("input", 0.0, height, f"$x_{i}$", 0)
        hidden = network.unit("positive", 3.0, height, "", 0)
        network.connect(entry, hidden, f"$u_{i}$")
        network.connect(hidden, outputs[0], f"$v_{i}$", at=0.4)
        entry = network.unit("input", 0.0, height, f"$x_{i}$", 1)
        for sign, minus, kind, offset in (("+", "", "positive", 0.5), ("-", "-", "negative", -0.5)):
            hidden = network.unit(kind, 3.0, height + offset, "", 1)
            network.connect(entry, hidden, f"$w_{{{sign},{i}}}$", at=0.6)
            network.connect(hidden, outputs[1], f"${minus}w_{{{sign},{i}}}$", at=0.24)
    for panel in (0, 1):
        network.unit("dots", 0.0, 0.6, "", panel)
        network.unit("dots", 3.0, 0.6, "", panel)
    return network.dataset()


def cell(network: str) -> dict[str, Any]:
    """The units and connections of one network, "standard" or "unbiased", and how many."""
    return tables(data({}), PANELS.index(one_of("W-F9", "network", network, PANELS)))


@figure(
    "W-F9",
    title="Twice the units let the network start at zero and reach both signs",
    source="Woodworth et al. 2020, appendix C, Figure 9",
    data=data,
    presets={"quick": {}, "paper": {}},
)
def draw(dataset: xarray.Dataset) -> Figure:
    """Both networks side by side."""
    caption = caption_of(dataset.attrs)
    picture, panels = sheet(dataset.title, caption, widths=(4.8, 4.8), height=4.6)
    panels[0].set_title(r"(a) standard: $f = \sum_i u_i v_i x_i$, $d$ units")
    panels[1].set_title(r"(b) unbiased: $f = \sum_i (w_{+,i}^2 - w_{-,i}^2)\, x_i$, $2d$ units")
    for number, axes in enumerate(panels):
        draw_network(axes, dataset, panel=number, legend=number == 1)
    return picture
