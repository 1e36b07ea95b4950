"""What training shows as the loss falls, for several depths and scales, on the points of M-F3b."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.figures.excess import least_norm, relative_excess
from tacit.figures.registry import Parameters, Progress
from tacit.figures.trajectories import follow
from tacit.measures.crossing import crossing
from tacit.plotting.style import CYCLE

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes

POINTS = "M-F3b"
LINES = ("-", "--", ":", "-.")  # one for every scale


def along_accuracy(parameters: Parameters, progress: Progress | None = None) -> xarray.Dataset:
    """Excess l1 norm and kernel distance at log-spaced smoothed margins, per depth and scale."""
    import xarray

    depths, scales = parameters["depths"], parameters["scales"]
    given = {name: parameters[name] for name in ("log10_margins", "points", "rtol")}
    found: list[dict[str, Any]] = []
    for depth in depths:
        for scale in scales:
            found.append(cell(depth, scale, **given))
            if progress:
                progress(len(found), len(depths) * len(scales))
    dims, shape = ("depth", "scale", "smoothed_margin"), (len(depths), len(scales), -1)
    dataset = xarray.Dataset(
        {
            name: (dims, np.reshape([run[f"trajectory_{name}"] for run in found], shape))
            for name in ("excess_l1", "kernel_distance")
        },
        coords={
            "depth": depths,
            "scale": scales,
            "smoothed_margin": found[0]["trajectory_smoothed_margin"],
        },
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


def cell(
    depth: int, scale: float, *, log10_margins: Sequence[float], points: int, rtol: float
) -> dict[str, Any]:
    """One run from alpha^D = scale: excess l1 norm and kernel distance at each smoothed margin.

    `excess_l1` and `kernel_distance` are those at the largest one; at the smoothed margin
    `departure` the kernel distance is half of that.
    """
    from tacit.problems.classification import three_points

    (low, high), problem = log10_margins, three_points(POINTS)
    margins = np.logspace(low, high, points)
    path = follow(problem, depth, scale ** (1 / depth), margins, rtol)
    beta, margin = path.predictor.values, path.margin.values
    found = {
        "excess_l1": relative_excess(beta, margin, 1.0, least_norm(problem, 1.0)),
        "kernel_distance": path.kernel_distance.values,
    }
    curves = {f"trajectory_{name}": values for name, values in found.items()}
    last = {name: float(values[-1]) for name, values in found.items()}
    level = last["kernel_distance"] / 2
    half = np.exp(crossing(np.log(margins), found["kernel_distance"], level))
    return {"trajectory_smoothed_margin": margins, **curves, **last, "departure": half}


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
