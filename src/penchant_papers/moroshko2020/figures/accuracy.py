"""Training on panel 3b as the loss falls, for several depths and scales."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from penchant import L1
from penchant.lab import Axes, Dataset, Sizes, sized
from penchant.measures import crossing, excess_norm
from penchant.plotting import CYCLE
from penchant.problems import three_points
from penchant_papers.moroshko2020.stopping import follow

POINTS = "3b"
LINES = ("-", "--", ":", "-.")  # one for every scale


def cell(
    depth: int, scale: float, *, log10_margins: Sequence[float], points: int, rtol: float
) -> dict[str, Any]:
    """One run from alpha^D = scale: excess l1 norm and kernel distance at each smoothed margin.

    `excess_l1` and `kernel_distance` are those at the largest one; at the smoothed margin
    `departure` the kernel distance is half of that.
    """
    (low, high), problem = log10_margins, three_points(POINTS)
    margins = np.logspace(low, high, points)
    path = follow(problem, depth, scale ** (1 / depth), margins, rtol)
    beta, margin = path.predictor.values, path.margin.values
    measures = {
        "excess_l1": excess_norm(problem, beta, L1(), margin=margin),
        "kernel_distance": path.kernel_distance.values,
    }
    curves = {f"trajectory_{name}": values for name, values in measures.items()}
    last = {name: float(values[-1]) for name, values in measures.items()}
    half = crossing(np.log(margins), measures["kernel_distance"], last["kernel_distance"] / 2)
    departure = float(np.exp(half))
    return {"trajectory_smoothed_margin": margins, **curves, **last, "departure": departure}


def study_of(
    name: str, title: str, colour: str, margins: Sequence[float], points: int, finer: int
) -> Sizes:
    """Runs from every depth and scale up to the last of the powers `margins`; one more in full."""
    low, high = margins
    excess, distance = (
        r"$\ell_1$ norm of $w$ / margin over the least one, minus 1",
        (
            r"$1 - \cos(K(t), "
            "K(0))$"
        ),
    )
    return sized(
        name,
        title=title,
        function=cell,
        arguments={"log10_margins": [low, high], "points": points, "rtol": 1e-6},
        grid={"depth": [2, 3, 10], "scale": [0.1, 1.0]},
        dims={
            f"trajectory_{n}": ["time"] for n in ("smoothed_margin", "excess_l1", "kernel_distance")
        },
        labels={
            "depth": "depth $D$",
            "scale": r"scale of the predictor at the start, $\alpha^D$",
            "excess_l1": f"{excess}, at the largest smoothed margin",
            "kernel_distance": f"{distance} at the largest smoothed margin",
            "departure": "smoothed margin at which the kernel distance is half its last value",
            "trajectory_smoothed_margin": r"smoothed margin $\log(1/\mathrm{loss})$",
            "trajectory_excess_l1": excess,
            "trajectory_kernel_distance": distance,
        },
        draw={"x": "depth", "colour": colour, "log": True},
        tiny={"arguments": {"points": 25}},
        printed={"arguments": {"log10_margins": [low, high + 1], "points": finer, "rtol": 1e-10}},
    )


def draw_along(axes: Axes, dataset: Dataset, name: str, **legend: Any) -> None:
    """A variable against the smoothed margin: a colour for every depth, a dash for every scale."""
    for colour, depth in zip(CYCLE, dataset.depth.values, strict=False):
        axes.plot([], [], color=colour, label=f"$D = {depth}$")
        for line, scale in zip(LINES, dataset.scale.values, strict=False):
            row = dataset.sel(depth=depth, scale=scale)
            values = row[f"trajectory_{name}"]
            axes.plot(row.trajectory_smoothed_margin, values, line, color=colour)
    for line, scale in zip(LINES, dataset.scale.values, strict=False):
        axes.plot([], [], line, color="black", label=rf"$\alpha^D = {scale:g}$")
    axes.set(xscale="log", xlabel=r"smoothed margin $\tilde\gamma = \log(1/\mathrm{loss})$")
    axes.legend(**legend)
