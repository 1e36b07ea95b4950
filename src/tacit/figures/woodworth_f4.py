"""W-F4, a diagram: in the wide parallel network each input has its own k hidden units."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tacit.figures.registry import Parameters, Progress, figure
from tacit.plotting.network import Network, draw_network, tables
from tacit.plotting.style import caption_of, sheet

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

INPUTS = {"1": 6.0, "2": 3.0, "d": -1.0}  # name and height of the inputs that are shown
HIDDEN = {"1": 1.1, "2": 0.35, "k": -1.1}  # name and offset of the hidden units of one input


def data(parameters: Parameters, progress: Progress | None = None) -> xarray.Dataset:
    """The units and connections of the network, with the first, second and last of each kind."""
    network = Network()
    output = network.unit("output", 7.0, 2.5, "$f$")
    for i, height in INPUTS.items():
        entry = network.unit("input", 0.0, height, rf"$X_{{{i}{i}}}$")
        for j, offset in HIDDEN.items():
            hidden = network.unit("positive", 3.2, height + offset)
            network.connect(entry, hidden, rf"$U_{{{i}{j}}}$", at=0.62)
            network.connect(hidden, output, rf"$V_{{{i}{j}}}$", at=0.3)
        network.unit("dots", 3.2, height - 0.36)
    network.unit("dots", 0.0, 1.05)
    network.unit("dots", 3.2, 1.05)
    return network.dataset()


def cell() -> dict[str, Any]:
    """The units and connections of the network as arrays, and how many are shown."""
    return tables(data({}))


@figure(
    "W-F4",
    title="Width without tricks: every input has its own k hidden units",
    source="Woodworth et al. 2020, section 6, Figure 4",
    data=data,
    presets={"quick": {}, "paper": {}},
)
def draw(dataset: xarray.Dataset) -> Figure:
    """The network of units and connections in `dataset`."""
    picture, (axes,) = sheet(dataset.title, caption_of(dataset.attrs), widths=(7.2,), height=5.6)
    axes.set_title(r"$f((U, V), X) = \sum_i X_{ii} \sum_{j=1}^{k} U_{ij} V_{ij}$", fontsize=11)
    draw_network(axes, dataset)
    return picture
