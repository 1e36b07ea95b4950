"""M-F5: how small the loss must be for training to be near the l1 max margin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit.arguments import Array
from tacit.figures.accuracy import POINTS, along_accuracy, draw_along
from tacit.figures.excess import least_norm, relative_excess
from tacit.figures.registry import Parameters, Progress, figure
from tacit.figures.trajectories import follow
from tacit.plotting.style import CYCLE, GREY, caption_of, sheet

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PRESETS: dict[str, Parameters] = {
    "quick": {
        "depths": [2, 3, 10],
        "scales": [0.1, 1.0],
        "log10_margins": [-1.0, 5.0],
        "points": 91,
        "level": 0.05,
        "log10_starts": [-2.0, 3.0],
        "starts": 11,
        "fit": [10.0, 1000.0],
        "rtol": 1e-6,
    },
    "paper": {
        "depths": [2, 3, 10],
        "scales": [0.1, 1.0],
        "log10_margins": [-1.0, 6.0],
        "points": 281,
        "level": 0.05,
        "log10_starts": [-2.0, 3.0],
        "starts": 31,
        "fit": [10.0, 1000.0],
        "rtol": 1e-10,
    },
}
PER_DECADE = 30
REACH = 3e4  # the level is looked for up to this many alpha^D


def data(parameters: Parameters, progress: Progress | None = None) -> xarray.Dataset:
    """Excess l1 along the smoothed margin (a); the margin that brings it to the level (b)."""
    lowest, highest = parameters["log10_starts"]
    starts = np.logspace(lowest, highest, parameters["starts"])
    shape = len(parameters["depths"]), len(starts)
    first = shape[0] * len(parameters["scales"])  # trajectories of panel (a)
    report = progress and (lambda done, _: progress(done, first + shape[0] * shape[1]))
    dataset = along_accuracy(parameters, report).drop_vars("kernel_distance")
    dataset = dataset.assign_coords(start=starts)
    needed = np.empty(shape)
    for done, (i, j) in enumerate(np.ndindex(shape), start=1):
        depth, start = int(dataset.depth[i]), float(starts[j])
        needed[i, j] = cell(depth, start, parameters["level"], parameters["rtol"])["needed"]
        if report:
            report(first + done, 0)
    dataset["needed"] = (("depth", "start"), needed)
    low, high = parameters["fit"]
    inside, below = (starts >= 0.999 * low) & (starts <= 1.001 * high), starts <= 1.001
    lines = [line(starts[inside], row[inside]) for row in needed]
    dataset["slope"] = ("depth", np.array([slope for slope, _ in lines]))
    dataset["intercept"] = ("depth", np.array([intercept for _, intercept in lines]))
    small = [line(starts[below], row[below])[0] for row in needed]
    dataset["slope_below"] = ("depth", np.array(small))
    dataset["level"], dataset["fit_from"], dataset["fit_to"] = parameters["level"], low, high
    texts = {
        "start": "scale of the predictor at the start, alpha^D",
        "needed": "smoothed margin from which on the excess l1 norm stays below the level",
        "slope": f"slope of log(needed) against log(alpha^D) for alpha^D from {low:g} to {high:g}",
        "intercept": "log10 of the fitted line at alpha^D = 1",
        "slope_below": "the same slope for alpha^D up to 1",
        "fit_from": "smallest alpha^D of the fit",
        "fit_to": "largest alpha^D of the fit",
        "level": "excess l1 norm that counts as near",
    }
    for name, text in texts.items():
        dataset[name].attrs.update(long_name=text, units="1")
    return dataset


def cell(depth: int, start: float, level: float, rtol: float) -> dict[str, float]:
    """`needed`, one point of panel (b): the smoothed margin that a start of alpha^D needs."""
    return {"needed": needed_margin(depth, start, {"level": level, "rtol": rtol})}


def needed_margin(depth: int, scale: float, parameters: Parameters) -> float:
    """The smoothed margin from which on the excess l1 norm stays below the level.

    Between two recorded margins both logarithms are taken as linear in each other.
    """
    from tacit.problems.classification import three_points

    problem = three_points(POINTS)
    first, last = 1e-3 * min(1.0, scale), REACH * max(scale, 0.01)
    margins = np.geomspace(first, last, round(PER_DECADE * np.log10(last / first)))
    path = follow(problem, depth, scale ** (1 / depth), margins, parameters["rtol"])
    least = least_norm(problem, 1.0)
    excess = relative_excess(path.predictor.values, path.margin.values, 1.0, least)
    far = np.flatnonzero(~(excess <= parameters["level"]))
    if len(far) == 0 or far[-1] + 1 == len(margins):
        return float("nan")
    pair = slice(far[-1], far[-1] + 2)
    falling, target = -np.log(excess[pair]), -np.log(parameters["level"])
    return float(np.exp(np.interp(target, falling, np.log(margins[pair]))))


def line(x: Array, y: Array) -> tuple[float, float]:
    """(slope, intercept) of log10 y against log10 x, by least squares."""
    slope, intercept = np.polyfit(np.log10(x), np.log10(y), 1)
    return float(slope), float(intercept)


@figure(
    "M-F5",
    title="Only extremely small losses come near l1; depth and small starts help",
    source="Moroshko et al. 2020, section 5, Figure 5",
    data=data,
    presets=PRESETS,
    constructed="the three points (those of M-F3b). Excess l1: the l1 norm of w / (its margin "
    "min y_n <w, x_n>) over that of the l1 max margin, minus 1",
)
def draw(dataset: xarray.Dataset) -> Figure:
    """The fall of the excess l1 norm, and the accuracy that 5 % of it needs."""
    picture, (a, b) = sheet(dataset.title, caption_of(dataset.attrs), widths=(5.6, 6.4), height=5.0)
    draw_along(a, dataset, "excess_l1", loc="lower left")
    a.set(yscale="log", ylabel=r"excess $\ell_1$ norm", ylim=(1e-3, None))
    level = float(dataset.level)
    a.axhline(level, color=GREY, linewidth=1)
    a.annotate(
        f"{level:.0%}",
        (1, level),
        xycoords=("axes fraction", "data"),
        ha="right",
        va="bottom",
        color=GREY,
    )
    a.set_title("(a) the excess falls with the loss, faster when deep")
    _needed(b, dataset)
    return picture


def _needed(axes: Axes, dataset: xarray.Dataset) -> None:
    """Panel (b): the measured points, the fitted lines and their numbers."""
    x = dataset.start.values
    for colour, depth in zip(CYCLE, dataset.depth.values, strict=False):
        row = dataset.sel(depth=depth)
        slope, intercept = float(row.slope), float(row.intercept)
        text = rf"$D = {depth}$: $a = {slope:.3f}$, $b = {intercept:.2f}$"
        text += rf"; below 1: $a = {float(row.slope_below):.2f}$"
        axes.plot(x, row.needed, "o", color=colour, markersize=5, label=text)
        fitted = 10**intercept * x**slope
        axes.plot(x, fitted, ":", color=colour, linewidth=1.2)
        inside = (x >= 0.999 * row.fit_from.item()) & (x <= 1.001 * row.fit_to.item())
        axes.plot(x[inside], fitted[inside], color=colour, linewidth=1.2)
    axes.set(xscale="log", yscale="log", xlabel=r"scale of the start, $\alpha^D$")
    axes.set_ylabel(rf"$\tilde\gamma$ needed for {float(dataset.level):.0%} excess")
    axes.legend(
        loc="upper left", title=r"$\log_{10}\tilde\gamma = a\,\log_{10}\alpha^D + b$ (lines)"
    )
    axes.set_title(r"(b) $\tilde\gamma \propto \alpha^D$ above 1, but slower below")
