"""M-F2, a diagram: the depth-D diagonal network with 2d units in every hidden layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tacit.figures.registry import Parameters, Progress, figure
from tacit.plotting.network import Network, draw_network
from tacit.plotting.style import caption_of, sheet

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

FIRST, SECOND, LAST = 4.2, 6.2, 9.2  # where the hidden layers stand: 1, 2 and D - 1
SHOWN = {"1": 4.6, "d": 2.6}  # name and height above the middle of the inputs that are shown


def network() -> Network:
    """The units and connections, with the first, second and last hidden layer."""
    found = Network()
    output = found.unit("output", 12.4, 0.0, "$f$")
    for i, height in SHOWN.items():
        entry = found.unit("input", 0.0, height - 3.6, f"$x_{i}$")
        for sign, minus, kind in (("+", "", "positive"), ("-", "-", "negative")):
            y = height if sign == "+" else height - 7.2
            copy = found.unit("fixed", 2.0, y, f"${minus}x_{i}$")
            found.connect(entry, copy, f"${minus}1$", at=0.45)
            chain = [found.unit(kind, x, y) for x in (FIRST, SECOND, LAST)]
            weight = f"$u_{{{sign},{i}}}$"
            found.connect(copy, chain[0], weight)
            found.connect(chain[0], chain[1], weight)
            found.connect(chain[1], chain[2], r"$\cdots$")
            found.connect(chain[2], output, weight, at=0.35)
    found.unit("dots", 0.0, 0.0)
    for x in (2.0, FIRST, SECOND, LAST):
        found.unit("dots", x, 3.6)
        found.unit("dots", x, -3.6)
    return found


def data(parameters: Parameters, progress: Progress | None = None) -> xarray.Dataset:
    """The network as a labelled dataset."""
    return network().dataset()


def cell() -> dict[str, Any]:
    """The units and connections of the network as arrays."""
    return network().arrays()


@figure(
    "M-F2",
    title="A depth-D diagonal network: one chain of D equal weights per signed input",
    source="Moroshko et al. 2020, section 3, Figure 2",
    data=data,
    presets={"quick": {}, "paper": {}},
)
def draw(dataset: xarray.Dataset) -> Figure:
    """The network of units and connections in `dataset`."""
    caption = caption_of(dataset.attrs)
    picture, (axes,) = sheet(dataset.title, caption, widths=(8.4,), height=5.2)
    axes.set_title(
        r"$f(u, x) = \langle u_+^D - u_-^D,\; x \rangle$: $D-1$ hidden layers of $2d$ units",
        fontsize=11,
    )
    draw_network(axes, dataset)
    return picture
