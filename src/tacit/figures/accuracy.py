"""What training shows as the loss falls, for several depths and scales, on the points of M-F3b."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.figures.excess import least_norm, relative_excess
from tacit.figures.registry import Parameters, Progress
from tacit.figures.style import CYCLE
from tacit.figures.trajectories import follow

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes

POINTS = "M-F3b"
LINES = ("-", "--", ":", "-.")  # one for every scale


def along_accuracy(parameters: Parameters, progress: Progress | None = None) -> xarray.Dataset:
    """Excess l1 norm and kernel distance at log-spaced smoothed margins, per depth and scale."""
    import xarray

    from tacit.problems.classification import three_points

    problem, depths, scales = three_points(POINTS), parameters["depths"], parameters["scales"]
    low, high = parameters["log10_margins"]
    margins = np.logspace(low, high, parameters["points"])
    least = least_norm(problem, 1.0)
    shape = (len(depths), len(scales), len(margins))
    excess, distance = np.empty(shape), np.empty(shape)
    for done, (i, j) in enumerate(np.ndindex(shape[:2]), start=1):
        alpha = scales[j] ** (1 / depths[i])
        path = follow(problem, depths[i], alpha, margins, parameters["rtol"])
        excess[i, j] = relative_excess(path.predictor.values, path.margin.values, 1.0, least)
        distance[i, j] = path.kernel_distance.values
        if progress:
            progress(done, shape[0] * shape[1])
    dims = ("depth", "scale", "smoothed_margin")
    dataset = xarray.Dataset(
        {"excess_l1": (dims, excess), "kernel_distance": (dims, distance)},
        coords={"depth": depths, "scale": scales, "smoothed_margin": margins},
    )
    texts = {
        "depth": "depth D",
        "scale": "scale of the predictor at the start, alpha^D",
        "smoothed_margin": "smoothed margin log(1/loss)",
        "excess_l1": "l1 norm of w / margin over the least one, minus 1",
        "kernel_distance": "1 - cos(K(t), K(0))",
    }
    for name, text in texts.items():
        dataset[name].attrs.update(long_name=text, units="1")
    return dataset


def draw_along(axes: Axes, dataset: xarray.Dataset, name: str, **legend: Any) -> None:
    """One variable against the smoothed margin: a colour for every depth, a dash for every scale.

    Below the axis the loss itself is told, by its power of ten.
    """
    for colour, depth in zip(CYCLE, dataset.depth.values, strict=False):
        axes.plot([], [], color=colour, label=f"$D = {depth}$")
        for line, scale in zip(LINES, dataset.scale.values, strict=False):
            row = dataset[name].sel(depth=depth, scale=scale)
            axes.plot(dataset.smoothed_margin, row, line, color=colour)
    for line, scale in zip(LINES, dataset.scale.values, strict=False):
        axes.plot([], [], line, color="black", label=rf"$\alpha^D = {scale:g}$")
    axes.set(xscale="log", xlabel=r"smoothed margin $\tilde\gamma = \log(1/\mathrm{loss})$")
    axes.legend(**legend)
