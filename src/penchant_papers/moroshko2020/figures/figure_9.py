"""Figure 9: when training leaves the kernel regime, by the distance of the tangent kernel."""

from __future__ import annotations

import numpy as np

from penchant import DiagonalNet
from penchant.lab import (
    Array,
    Dataset,
    Evidence,
    Experiment,
    Figure,
    at_most,
    sized,
    within,
)
from penchant.measures import crossing, tangent_kernel
from penchant.plotting import sheet_of
from penchant.problems import three_points
from penchant_papers.moroshko2020.figures.accuracy import POINTS, draw_along, study_of

TITLE = "Deeper nets and smaller starts leave the kernel regime at a larger loss"
LEFT = 0.01  # kernel distance at which the kernel regime is left
study = study_of("M-F9", TITLE, "departure", (-3.0, 4.0), points=106, finer=321)


def norm_cell(depth: int) -> dict[str, float]:
    """The kernel distance of the start from itself, by the spectral norm and by Frobenius's."""
    problem, net = three_points(POINTS), DiagonalNet(depth, mu=1.0)
    K = tangent_kernel(net, net.start(problem.dimension), problem.X)
    inner = float((K * K).sum())
    lengths = {"spectral": np.linalg.norm(K, 2), "frobenius": np.linalg.norm(K, "fro")}
    return {name: 1 - inner / float(length) ** 2 for name, length in lengths.items()}


norms = sized("M-F9-norms", function=norm_cell, grid={"depth": [2, 3, 10]})


def exits(dataset: Dataset) -> Array:
    """log(1/loss) where each kernel distance is LEFT, by depth and scale."""
    rows = dataset.transpose("depth", "scale", "time")
    clock, distance = rows.trajectory_smoothed_margin, rows.trajectory_kernel_distance
    logs = [
        [crossing(np.log(x), y, LEFT) for x, y in zip(*both, strict=True)]
        for both in zip(clock.values, distance.values, strict=True)
    ]
    return np.exp(logs)


def check(dataset: Dataset, norms: Dataset) -> Evidence:
    """The loss at which the kernel regime is left, over depths and scales."""
    margins = exits(dataset)
    deeper = at_most((margins[1:] / margins[:-1]).max(), 0.9)
    smaller = at_most((margins[:, 0] / margins[:, 1]).max(), 0.5)
    start = float(dataset.trajectory_kernel_distance.isel(time=0).max())
    late = dataset.trajectory_kernel_distance.values
    by_scale = margins / dataset.scale.values
    start_of = {
        name: within(norms[name].values[np.abs(norms[name].values).argmax()], tolerance=1e-9)
        for name in ("spectral", "frobenius")
    }
    right = {
        rf"largest ratio of $\log(1/\mathrm{{loss}})$ where the kernel distance is {LEFT:g}, "
        "each depth over the previous one": deeper,
        r"the same for $\alpha^D = 0.1$ over $\alpha^D = 1$": smaller,
    }
    return Evidence(
        ran=rf"panel 3b at depths {', '.join(map(str, dataset.depth.values))} from $\alpha^D = "
        r"0.1$ and 1, $\log(1/\mathrm{loss})$ from "
        f"{float(dataset.trajectory_smoothed_margin.min()):g} to "
        f"{float(dataset.trajectory_smoothed_margin.max()):g}",
        checks={
            **right,
            r"distance of $K(0)$ from itself with $\|K\|_2$, the spectral norm, as printed": (
                start_of["spectral"]
            ),
        },
        corrected={
            **right,
            "the same with the Frobenius norm": start_of["frobenius"],
        },
        correction=r"the cosine similarity needs the Frobenius norm, $\mathrm{Tr}(K K^T) = "
        r"\|K\|_F^2$; with $\|K\|_2$ as the spectral norm a kernel is at a negative distance from "
        "itself",
        counterexample={
            r"panel 3b, $D = 2$: $1 - \mathrm{Tr}(K(0) K(0)^T) / \|K(0)\|_2^2$": float(
                norms.spectral.sel(depth=2)
            )
        },
        premises={
            "every run begins in the kernel regime (largest distance)": (start < 0.01, start),
            "every run leaves the kernel regime (least last distance)": (
                bool(late[..., -1].min() > LEFT),
                float(late[..., -1].min()),
            ),
        },
        controls={
            r"an exit that depends on $\alpha^D$ alone: $D = 3$ at $\alpha^D = 1$ for $D = 2$ at "
            "0.1": (deeper.control(margins[1, 1] / margins[0, 0])),
            r"an exit that depends on depth alone: $D = 10$ at $\alpha^D = 1$ for $D = 2$ at 0.1": (
                smaller.control(margins[-1, 1] / margins[0, 0])
            ),
        },
        findings=[
            rf"$\log(1/\mathrm{{loss}})$ where the kernel distance is {LEFT:g}, over $\alpha^D$: "
            + ", ".join(
                rf"{by_scale[i, j]:.3g} ($D = {D}$, $\alpha^D = {scale:g}$)"
                for i, D in enumerate(dataset.depth.values)
                for j, scale in enumerate(dataset.scale.values)
            )
        ],
    )


def draw(dataset: Dataset, _: Dataset) -> Figure:
    """The cosine distance of the tangent kernel from the start's, against the smoothed margin."""
    picture, (axes,) = sheet_of(dataset, widths=(7.6,), height=4.8)
    draw_along(axes, dataset, "kernel_distance", loc="upper left")
    axes.set_ylabel(r"kernel distance $1 - \cos(K(t), K(0))$")
    return picture


experiment = Experiment(
    "M-F9",
    statement="Training leaves the kernel regime at a larger loss when the net is deeper and"
    " when the start is smaller.",
    place="appendix H.4, Figure 9",
    study=(study, norms),
    check=check,
    draw=draw,
    title=TITLE,
    ours="the three points (those of Figure 3(b)), and 0.01 for the distance at which the regime"
    " is left",
)
