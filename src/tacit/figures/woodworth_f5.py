"""W-F5: the width moves matrix completion into the kernel regime, at alpha^2 k near 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arguments import Array
from tacit.figures.registry import Parameters, Progress, figure
from tacit.figures.style import BLACK, PALE, RED, caption_of, sheet

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PRESETS: dict[str, Parameters] = {
    "quick": {
        "dimension": 10,
        "rank": 1,
        "samples": 60,
        "seeds": 3,
        "rtol": 1e-4,
        "loss": 1e-10,
        "log10_alphas": [-2.5, 0.0],
        "alphas": 12,
        "log10_widths": [1.0, 3.0],
        "widths": 8,
    },
    "paper": {
        "dimension": 10,
        "rank": 1,
        "samples": 60,
        "seeds": 9,
        "rtol": 1e-6,
        "loss": 1e-16,
        "log10_alphas": [-3.0, 0.5],
        "alphas": 36,
        "log10_widths": [1.0, 3.0],
        "widths": 17,
    },
}
MEASURES = ("excess", "move")
LABELS = {
    "alpha": "standard deviation of the entries of U and V at the start",
    "k": "width: columns of U and V",
    "excess": "nuclear norm above that of the truth, over that of the seen entries alone (median)",
    "move": "RMS change of the hidden entries in training, over their RMS in the truth (median)",
    "excess_seeds": "the same excess for every seed",
    "move_seeds": "the same move for every seed",
    "transition": "alpha at which the measure is halfway between rich and kernel regime",
    "width": "decades of alpha from 10 % to 90 % of the transition",
    "scale": "alpha^2 k at the transition",
    "floor": "least move over all alpha: 0 would be a kernel regime in which nothing unseen moves",
    "limit_scale": "alpha^2 k at the transition of infinite width",
    "limit_width": "decades of alpha from 10 % to 90 % at infinite width",
}


def data(parameters: Parameters, progress: Progress | None = None) -> xarray.Dataset:
    """Both measures over alpha, width and seed, their medians and where they turn, per width."""
    (low, high), (least, most) = parameters["log10_alphas"], parameters["log10_widths"]
    given = {name: parameters[name] for name in ("dimension", "rank", "samples", "rtol", "loss")}
    alphas = np.logspace(low, high, parameters["alphas"])
    widths = np.unique(np.rint(np.logspace(least, most, parameters["widths"])))
    shape = parameters["seeds"], len(widths) + 1, len(alphas)  # the last row: infinite width
    found = np.empty((2, *shape))
    for done, (seed, row, column) in enumerate(np.ndindex(shape), start=1):
        k = int(widths[row]) if row < len(widths) else None
        scale = 1.0 if k else np.sqrt(widths[-1])
        one = cell(float(scale * alphas[column]), k, seed, **given)
        found[:, seed, row, column] = [one[name] for name in MEASURES]
        if progress:
            progress(done, int(np.prod(shape)))
    return _labelled(alphas, widths.astype(int), found)


def cell(
    alpha: float,
    k: int | None,
    seed: int,
    *,
    dimension: int,
    rank: int,
    samples: int,
    rtol: float,
    loss: float,
) -> dict[str, float]:
    """Excess nuclear norm and RMS move of hidden entries at the end of training; scale alpha^2 k.

    The first is in units of its value for the seen entries alone, zero elsewhere; the second in
    units of the RMS of the hidden entries of the truth. An infinite width (None) is the start
    with lifted matrix alpha^2 I, towards which wide Gaussian starts of k a^2 = alpha^2 tend.
    """
    from tacit.models.factorization import Factorization
    from tacit.problems.matrices import low_rank_completion
    from tacit.records import NumericalError
    from tacit.training.exact.matrices.flow import MatrixFlow
    from tacit.training.record import LogSpaced
    from tacit.training.stop import Interpolated
    from tacit.training.train import train

    problem = low_rank_completion(samples=samples, dimension=dimension, rank=rank, seed=seed)
    if k is None:
        side, zero = alpha * np.eye(dimension), np.zeros((dimension, dimension))
        model = Factorization(factors=(np.hstack([side, zero]), np.hstack([zero, side])))
    else:
        model = Factorization(k, alpha=alpha, seed=seed)
    flow = MatrixFlow(rtol=rtol)
    path = train(model, problem, flow, stop=Interpolated(loss), record=LogSpaced(1))
    if not path.outcome.ok:
        raise NumericalError("W-F5", path.outcome)
    assert problem.truth is not None
    truth, hidden = problem.truth, problem.hidden
    least = np.linalg.norm(truth, "nuc")
    kernel = np.linalg.norm(np.where(problem.observed, truth, 0.0), "nuc") - least
    if kernel <= 0:
        raise ValueError(
            f"W-F5: at seed {seed} the seen entries alone have a smaller nuclear norm than the "
            "truth, so there is no excess to follow; take more samples"
        )
    excess = (np.linalg.norm(path.predictor, "nuc") - least) / kernel
    moved = path.predictor - model.matrix(model.start(problem.dimension))
    move = np.sqrt(np.mean(moved[hidden] ** 2) / np.mean(truth[hidden] ** 2))
    return {"excess": float(excess), "move": float(move), "scale": alpha**2 * (k or 1)}


def crossing(alphas: Array, rising: Array, level: float) -> float:
    """The alpha at which a curve first reaches `level`, linear in log alpha; NaN if outside."""
    above = np.flatnonzero(rising >= level)
    if len(above) == 0 or above[0] == 0:
        return float("nan")
    pair = slice(above[0] - 1, above[0] + 1)
    return float(np.exp(np.interp(level, rising[pair], np.log(alphas[pair]))))


def turn(alphas: Array, row: Array, measure: str) -> tuple[float, float, float]:
    """(alpha halfway, decades of alpha from 10 % to 90 %, lowest value) of one row of the map.

    The excess goes from 0 to 1. The move falls from 1 to its least value at this width, and grows
    again with alpha^2, as the start itself does; the fall is what is measured.
    """
    floor = float(row.min())
    rising = row if measure == "excess" else (1 - row) / (1 - floor)
    low, half, high = (crossing(alphas, rising, level) for level in (0.1, 0.5, 0.9))
    return half, float(np.log10(high / low)), floor


def _labelled(alphas: Array, widths: Array, found: Array) -> xarray.Dataset:
    """The dataset: medians over the seeds, and where every row of them turns."""
    import xarray

    medians = np.median(found, axis=1)
    table = np.array(
        [[turn(alphas, row, name) for row in medians[i]] for i, name in enumerate(MEASURES)]
    )  # measure x k (the last: infinite) x (transition, width, floor)
    grid, line = ("k", "alpha"), ("measure", "k")
    variables: dict[str, Any] = {
        "excess": (grid, medians[0, :-1]),
        "move": (grid, medians[1, :-1]),
        "excess_seeds": (("seed", *grid), found[0, :, :-1]),
        "move_seeds": (("seed", *grid), found[1, :, :-1]),
        "transition": (line, table[:, :-1, 0]),
        "width": (line, table[:, :-1, 1]),
        "scale": (line, table[:, :-1, 0] ** 2 * widths),
        "floor": ("k", table[1, :-1, 2]),
        "limit_scale": ("measure", table[:, -1, 0] ** 2 * widths[-1]),
        "limit_width": ("measure", table[:, -1, 1]),
    }
    coordinates = {"alpha": alphas, "k": widths, "measure": list(MEASURES)}
    dataset = xarray.Dataset(variables, coordinates)
    for name, text in LABELS.items():
        units = "decades" if name in ("width", "limit_width") else "1"
        dataset[name].attrs.update(long_name=text, units=units)
    return dataset.assign_attrs(summary=summary(dataset))


def summary(dataset: xarray.Dataset) -> str:
    """Where every width turns, by both measures, beside alpha^2 k = 1; one line per width."""
    lines = [
        "where the transition sits, as alpha^2 k halfway (1 on the line of the source), and",
        "how many decades of alpha it takes from 10 % to 90 %",
        "     k   excess nuclear norm   move of unseen entries",
    ]
    for k in dataset.k.values:
        row = dataset.sel(k=k)
        cells = [
            f"{float(row.scale.sel(measure=m)):7.3f} in {float(row.width.sel(measure=m)):.2f}"
            for m in MEASURES
        ]
        lines.append(f"{k:6d}   {cells[0]:<19}   {cells[1]}")
    limit = [
        f"{float(dataset.limit_scale.sel(measure=m)):7.3f} in "
        f"{float(dataset.limit_width.sel(measure=m)):.2f}"
        for m in MEASURES
    ]
    return "\n".join([*lines, f"   inf   {limit[0]:<19}   {limit[1]}"])


@figure(
    "W-F5",
    title="Matrix completion leaves the rich regime near alpha^2 k = 1, at every width k",
    source="Woodworth et al. 2020, section 6 and Appendix A, Figure 5",
    data=data,
    presets=PRESETS,
    constructed="the grid, the seeds (median), the units: the excess nuclear norm over that of the "
    "seen entries alone, the move over the RMS of the hidden truth; gradient flow to its end "
    "instead of steps of 1e-5",
)
def draw(dataset: xarray.Dataset) -> Figure:
    """Both maps with the line alpha^2 k = 1 and the measured transition of every width."""
    picture, (a, b) = sheet(dataset.title, caption_of(dataset.attrs), widths=(6.0, 6.0), height=5.2)
    _map(picture, a, dataset, "excess", "(a) excess nuclear norm: none at small scale")
    _map(picture, b, dataset, "move", "(b) unseen entries move less, and stay put only if wide")
    b.text(
        0.96,
        0.5,
        r"large starts move all, $\propto \alpha^2$",
        transform=b.transAxes,
        color="white",
        rotation=90,
        ha="center",
        va="center",
    )
    return picture


def _map(picture: Figure, axes: Axes, dataset: xarray.Dataset, measure: str, title: str) -> None:
    """One map; colours run from the rich regime (dark) to the kernel regime (light)."""
    values, k = dataset[measure].values, dataset.k.values
    colours = "viridis" if measure == "excess" else "viridis_r"
    mesh = axes.pcolormesh(
        dataset.alpha,
        k,
        np.clip(values, 0, 1),
        cmap=colours,
        vmin=0,
        vmax=1,
        shading="nearest",
        rasterized=True,
    )
    bar = picture.colorbar(mesh, ax=axes, extend="max", pad=0.01)
    bar.set_label(
        {
            "excess": r"0: that of $Y^*$, 1: seen entries, zeros elsewhere",
            "move": "RMS move / RMS of the hidden truth",
        }[measure]
    )
    axes.set(xscale="log", yscale="log", xlabel=r"initial scale $\alpha$", ylabel=r"width $k$")
    edges = axes.get_xlim(), axes.get_ylim()
    axes.plot(k**-0.5, k, color="white", linewidth=5)
    axes.plot(k**-0.5, k, color=BLACK, linewidth=2, label=r"$\alpha^2 k = 1$")
    row = dataset.sel(measure=measure)
    axes.plot(
        row.transition,
        k,
        "o",
        color=RED,
        markeredgecolor="white",
        markersize=8,
        label="measured: halfway",
    )
    limit = np.sqrt(float(row.limit_scale) / k)
    axes.plot(limit, k, "--", color="white", linewidth=2, label=r"halfway at $k=\infty$")
    axes.set(xlim=edges[0], ylim=edges[1])
    axes.grid(visible=False)
    axes.legend(loc="lower left", frameon=True, facecolor=PALE, framealpha=0.95)
    first, last = float(row.width[0]), float(row.width[-1])
    reach = rf"{first:.2f} decades of $\alpha$ at $k$ = {k[0]}, {last:.2f} at {k[-1]}"
    axes.set_title(f"{title}\n10 % to 90 %: {reach}")
