"""W-F3: depth hastens the way from l2 to l1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit.figures.recovery import axis_of_powers, recovery, threshold_line
from tacit.figures.registry import Parameters, Progress, figure
from tacit.plotting.style import CYCLE, GREY, caption_of, end_label, sheet

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PRESETS: dict[str, Parameters] = {
    "quick": {
        "depths": [2, 3, 4, 10],
        "z_max": 10.0,
        "points": 201,
        "ratio_dimension": 1000,
        "log10_alphas": [2.0, -6.0],
        "dimension": 300,
        "sparsity": 5,
        "noise": 0.1,
        "level": 0.025,
        "seeds": 9,
        "sample_sizes": [20, 30, 34, 38, 44, 54, 70, 100, 140],
        "l1_sample_sizes": [16, 60, 2],
        "log10_mu_range": [1.0, -30.0],
        "per_decade": 3,
    },
    "paper": {
        "depths": [2, 3, 4, 10],
        "z_max": 10.0,
        "points": 401,
        "ratio_dimension": 1000,
        "log10_alphas": [2.0, -6.0],
        "dimension": 1000,
        "sparsity": 5,
        "noise": 0.1,
        "level": 0.025,
        "seeds": 9,
        "sample_sizes": [30, 44, 48, 52, 56, 60, 70, 80, 100, 130, 170, 220, 300],
        "l1_sample_sizes": [30, 100, 2],
        "log10_mu_range": [1.0, -60.0],
        "per_decade": 4,
    },
}


def data(parameters: Parameters, progress: Progress | None = None) -> xarray.Dataset:
    """q_D near zero (a), the ratio of Q at two vectors (b), the largest alpha^D over N (c)."""
    depths = list(parameters["depths"])
    dataset = recovery(parameters, depths, progress)
    z = np.linspace(-parameters["z_max"], parameters["z_max"], parameters["points"])
    high, low = parameters["log10_alphas"]
    alpha = np.logspace(high, low, parameters["points"])
    d = parameters["ratio_dimension"]
    dataset = dataset.assign_coords(z=z, alpha=alpha)
    dataset["q"] = (("depth", "z"), [unit_curvature(depth, z) for depth in depths])
    ratios = [[panel_b(depth, value, d)["ratio"] for value in alpha] for depth in depths]
    dataset["ratio"] = (("depth", "alpha"), ratios)
    dataset["dense_limit"], dataset["sparse_limit"] = 1.0, d**-0.5
    texts = {
        "z": "predictor in units of the initial scale, z = beta/alpha^D",
        "alpha": "scale of the initialization",
        "q": "q_D divided by its curvature at zero",
        "ratio": f"Q(e_1) / Q(1/sqrt(d)) for d = {d}",
        "dense_limit": "the ratio for the squared l2 norm",
        "sparse_limit": "the ratio for the l1 norm",
    }
    for name, text in texts.items():
        dataset[name].attrs.update(long_name=text, units="1")
    return dataset


def unit_curvature(depth: int, z: np.ndarray) -> np.ndarray:
    """q_D(z) / q_D''(0): every depth starts as z^2/2, so the bend towards |z| can be compared."""
    from tacit.regularizers.q import Q

    q = Q(depth=depth, alpha=1.0)
    return q.terms(z) * q.slope(np.zeros(1))  # q'' = 1 / b', as q' is the inverse of b


def ratio(depth: int, alpha: float, dimension: int) -> float:
    """Q(e_1) / Q(1/sqrt(d)): 1 for a squared l2 norm, 1/sqrt(d) for the l1 norm."""
    from tacit.regularizers.q import Q

    q = Q(depth=depth, alpha=alpha)
    one, spread = q.terms(np.array([1.0, dimension**-0.5]))
    return float(one / (dimension * spread))


def panel_a(depth: int, z: float) -> dict[str, float]:
    """`q`, one point of the curves of panel (a)."""
    return {"q": float(unit_curvature(depth, np.array([z]))[0])}


def panel_b(depth: int, alpha: float, ratio_dimension: int) -> dict[str, float]:
    """`ratio`, one point of the curves of panel (b)."""
    return {"ratio": ratio(depth, alpha, ratio_dimension)}


@figure(
    "W-F3",
    title="Depth hastens the rich limit: beyond D = 2 a moderate scale is enough",
    source="Woodworth et al. 2020, section 5, Figure 3",
    data=data,
    presets=PRESETS,
    constructed="d, r*, D, the seeds (median in c) and all grids; (a) has curvature 1 at zero",
)
def draw(dataset: xarray.Dataset) -> Figure:
    """q_D, the transition of the ratio and the largest scale that recovers the truth."""
    caption = caption_of(dataset.attrs)
    picture, (a, b, c) = sheet(dataset.title, caption, widths=(4.4, 4.4, 4.4), height=4.4)
    for colour, depth in zip(CYCLE, dataset.depth.values, strict=False):
        row, label = dataset.sel(depth=depth), f"$D = {depth}$"
        a.plot(row.z, row.q, color=colour, label=label)
        b.plot(row.alpha, row.ratio, color=colour, label=label)
        median = row.median_log_mu / np.log(10)
        c.plot(row.sample_size, median, "o-", color=colour, markersize=4, label=label)
    a.set_title("(a) deeper: sooner linear")
    a.set(xlabel=r"$z = \beta_i/\alpha^D$", ylabel="$q_D(z)/q_D''(0)$")
    a.legend(loc="upper center")
    _ratio_guides(b, dataset)
    threshold_line(c, dataset)
    c.legend(loc="lower right")
    c.set_title("(c) deeper: larger starts recover the truth")
    axis_of_powers(c, rf"largest $\alpha^D$ with error $\leq {float(dataset.level):g}$")
    return picture


def _ratio_guides(axes: Axes, dataset: xarray.Dataset) -> None:
    """Panel (b): the two limits as dashed lines with their names."""
    axes.set_title(r"(b) from $\ell_2$ (above) to $\ell_1$ (below)")
    axes.set(xscale="log", yscale="log", xlabel=r"initial scale $\alpha$")
    axes.set_ylabel(r"$Q(e_1)\,/\,Q(\mathbf{1}/\sqrt{d})$")
    left, right = float(dataset.alpha.min()), float(dataset.alpha.max())
    for x, limit, text, side in (
        (left, float(dataset.dense_limit), r"$1$ for $\ell_2$", "left"),
        (right, float(dataset.sparse_limit), r"$1/\sqrt{d}$ for $\ell_1$", "right"),
    ):
        axes.axhline(limit, color=GREY, linestyle="--", linewidth=1)
        end_label(axes, x, limit, text, GREY, va="bottom", ha=side, xytext=(0, 4))
    axes.set_ylim(0.7 * float(dataset.sparse_limit), 1.7)
