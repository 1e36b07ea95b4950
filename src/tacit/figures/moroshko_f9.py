"""M-F9: when training leaves the kernel regime, by the distance of the tangent kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.figures.accuracy import along_accuracy, draw_along
from tacit.figures.registry import Parameters, figure
from tacit.plotting.style import caption_of, sheet

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

PRESETS: dict[str, Parameters] = {
    "quick": {
        "depths": [2, 3, 10],
        "scales": [0.1, 1.0],
        "log10_margins": [-3.0, 4.0],
        "points": 106,
        "rtol": 1e-6,
    },
    "paper": {
        "depths": [2, 3, 10],
        "scales": [0.1, 1.0],
        "log10_margins": [-3.0, 5.0],
        "points": 321,
        "rtol": 1e-10,
    },
}


@figure(
    "M-F9",
    title="Depth and small starts leave the kernel regime at a larger loss",
    source="Moroshko et al. 2020, appendix H.4, Figure 9",
    data=along_accuracy,
    presets=PRESETS,
    constructed="the three points (those of M-F3b)",
)
def draw(dataset: xarray.Dataset) -> Figure:
    """The cosine distance of the tangent kernel from the start's, against the smoothed margin."""
    picture, (axes,) = sheet(dataset.title, caption_of(dataset.attrs), widths=(7.6,), height=4.8)
    draw_along(axes, dataset, "kernel_distance", loc="upper left")
    axes.set_ylabel(r"kernel distance $1 - \cos(K(t), K(0))$")
    return picture
