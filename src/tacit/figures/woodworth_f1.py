"""W-F1: the scale of the start decides between l2 and l1, and with it the generalization."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit.figures.cells import Values, cell_of
from tacit.figures.recovery import (
    NESTED,
    PLANTED,
    axis_of_powers,
    planted,
    population_error,
    predictor,
    recovery,
    threshold_line,
)
from tacit.figures.registry import Parameters, Progress, figure
from tacit.plotting.style import BLACK, BLUE, GREY, RED, caption_of, sheet

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PRESETS: dict[str, Parameters] = {
    "quick": {
        "dimension": 1000,
        "samples": 100,
        "sparsity": 5,
        "noise": 0.1,
        "level": 0.025,
        "log10_alphas": [1.0, -6.0],
        "alphas": 57,
        "seeds": 9,
        "sample_sizes": [40, 46, 50, 55, 60, 70, 80, 100, 130, 170],
        "l1_sample_sizes": [36, 76, 4],
        "log10_mu_range": [0.0, -40.0],
        "per_decade": 3,
    },
    "paper": {
        "dimension": 1000,
        "samples": 100,
        "sparsity": 5,
        "noise": 0.1,
        "level": 0.025,
        "log10_alphas": [1.0, -6.0],
        "alphas": 141,
        "seeds": 25,
        "sample_sizes": [30, 40, 44, 46, 48, 50, 52, 55, 60, 70, 80, 100, 130, 170, 230, 300],
        "l1_sample_sizes": [30, 100, 2],
        "log10_mu_range": [0.0, -60.0],
        "per_decade": 4,
    },
}


def data(parameters: Parameters, progress: Progress | None = None) -> xarray.Dataset:
    """One problem along alpha (panels a and b), and the largest alpha over N (panel c)."""
    dataset = recovery(parameters, depths=[2], progress=progress).sel(depth=2, drop=True)
    for name in ("log_mu", "median_log_mu"):
        text = dataset[name].long_name.replace("log_mu", "log_alpha").replace("alpha^D", "alpha")
        dataset[name.replace("mu", "alpha")] = (dataset[name] / 2).assign_attrs(
            long_name=text, units="1"
        )
    dataset = dataset.drop_vars(["log_mu", "median_log_mu"])
    return dataset.merge(_one_problem(parameters), combine_attrs="no_conflicts")


@cell_of("log10_alpha", NESTED, PLANTED)
def cell(parameters: Parameters) -> Values:
    """One trial for panel (c): error and norms of the predictor from alpha = 10^log10_alpha."""
    given = {name: parameters[name] for name in (*NESTED, *PLANTED)}
    return predictor(log10_mu=2 * parameters["log10_alpha"], depth=2, **given)


def _one_problem(parameters: Parameters) -> xarray.Dataset:
    """Population error and excess norms of the predictor along alpha, for the seed 0."""
    import xarray

    from tacit.regularizers.norms import L1, L2
    from tacit.solvers.interpolate import interpolate
    from tacit.solvers.interpolation_path import interpolate_path

    X, y, truth = planted(parameters, parameters["samples"], seed=0)
    high, low = parameters["log10_alphas"]
    log_alphas = np.log(10) * np.linspace(high, low, parameters["alphas"])
    path = interpolate_path(X, y, depth=2, log_alphas=log_alphas, measure=lambda end: end.beta)
    beta = np.array(path)
    ends = {1: interpolate(X, y, L1()).beta, 2: interpolate(X, y, L2()).beta}
    variables = {"population_error": ("alpha", population_error(beta, truth))}
    for order, end in ends.items():
        excess = np.linalg.norm(beta, order, axis=1) - np.linalg.norm(end, order)
        variables[f"excess_l{order}"] = ("alpha", excess)
    dataset = xarray.Dataset(variables, coords={"alpha": np.exp(log_alphas)})
    dataset.alpha.attrs.update(long_name="scale of the initialization", units="1")
    dataset.population_error.attrs.update(long_name="|beta - truth|_2^2", units="1")
    for order in ends:
        name = f"l{order} norm above the least l{order} norm of an interpolating predictor"
        dataset[f"excess_l{order}"].attrs.update(long_name=name, units="1")
    return dataset


@figure(
    "W-F1",
    title="Small starts find the sparse predictor, large ones the dense: scale decides",
    source="Woodworth et al. 2020, section 4, Figure 1",
    data=data,
    presets=PRESETS,
    constructed="d, N, r*, the seeds (median in c) and the grids; noise variance 0.01, truth "
    "entries 1/sqrt(r*) and the level 0.025 are the source's",
)
def draw(dataset: xarray.Dataset) -> Figure:
    """Error, excess norms and the largest scale that generalises, in three panels."""
    caption = caption_of(dataset.attrs)
    picture, (a, b, c) = sheet(dataset.title, caption, widths=(4.4, 4.4, 4.4), height=4.3)
    a.plot(dataset.alpha, dataset.population_error, color=BLACK)
    a.set_title("(a) error falls with the scale")
    a.set(xscale="log", ylim=(0, None), xlabel=r"initial scale $\alpha$")
    a.set_ylabel(r"population error $\|\beta-\beta^*\|_2^2$")
    b.plot(dataset.alpha, dataset.excess_l1, color=BLUE, label=r"$\ell_1$ norm above the least")
    b.plot(dataset.alpha, dataset.excess_l2, color=RED, label=r"$\ell_2$ norm above the least")
    b.set_title(r"(b) least $\ell_1$ on the left, least $\ell_2$ on the right")
    b.set(xscale="log", xlabel=r"initial scale $\alpha$", ylabel="excess norm")
    b.legend(loc="center left")
    _largest_alpha(c, dataset)
    return picture


def _largest_alpha(axes: Axes, dataset: xarray.Dataset) -> None:
    """Panel (c): every seed as a dot, the median as a line, the l1 threshold as a dashed line."""
    ten = np.log(10)
    for seed in dataset.seed:
        dots = dataset.log_alpha.sel(seed=seed)
        dots = dots.where(np.isfinite(dots)) / ten
        axes.plot(dataset.sample_size, dots, ".", color=GREY, markersize=4, zorder=1)
    median = dataset.median_log_alpha / ten
    axes.plot(dataset.sample_size, median, "o-", color=BLACK, markersize=4, label="median")
    axes.plot([], [], ".", color=GREY, label="single seeds")
    threshold_line(axes, dataset)
    axes.set_title("(c) more samples allow larger starts")
    axis_of_powers(axes, rf"largest $\alpha$ with error $\leq {float(dataset.level):g}$")
    axes.legend(loc="lower right")
