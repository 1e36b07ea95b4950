"""Figure 5: the width moves matrix completion into the kernel regime, at alpha^2 k near 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit.arguments import Array
from tacit.evidence.evidence import Check, Evidence
from tacit.papers.experiment import Experiment
from tacit.plotting.style import BLACK, PALE, RED, caption_of, sheet
from tacit.studies.sizes import sized

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MEASURES = ("excess", "move")


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


GIVEN = {"dimension": 10, "rank": 1, "samples": 60, "rtol": 1e-4, "loss": 1e-10}
LABELS = {
    "alpha": "initial scale alpha: standard deviation of the entries of U and V",
    "k": "width k: columns of U and V",
    "excess": "nuclear norm above that of the truth, over that of the seen entries alone",
    "move": "RMS change of the hidden entries in training, over their RMS in the truth",
    "scale": "alpha^2 k",
}
study = sized(
    "W-F5",
    title="The width moves matrix completion into the kernel regime, at alpha^2 k near 1",
    function=cell,
    arguments=GIVEN,
    grid={
        "alpha": {"logspace": [-2.5, 0.0, 12]},
        "k": {"logspace": [1.0, 3.0, 8], "round": True},
    },
    seeds=3,
    labels=LABELS,
    draw={
        "x": "alpha",
        "y": "k",
        "colour": "excess",
        "contours": {"excess": 0.5, "scale": 1.0},
        "range": [0.0, 1.0],
    },
    tiny={"grid": {"k": [10, 100, 1000]}, "seeds": 1},
    full={
        "arguments": {"rtol": 1e-6, "loss": 1e-16},
        "grid": {
            "alpha": {"logspace": [-3.0, 0.5, 36]},
            "k": {"logspace": [1.0, 3.0, 17], "round": True},
        },
        "seeds": 9,
    },
)
limit = sized(
    "W-F5-infinite",
    title="The same at infinite width, over alpha sqrt(k)",
    function=cell,
    arguments={**GIVEN, "k": None},
    grid={"alpha": {"logspace": [-1.0, 1.5, 12]}},
    seeds=3,
    labels=LABELS,
    draw={"x": "alpha", "colour": "excess"},
    tiny={"seeds": 1},
    full={
        "arguments": {"rtol": 1e-6, "loss": 1e-16},
        "grid": {"alpha": {"logspace": [-1.5, 2.0, 36]}},
        "seeds": 9,
    },
)


def turns(dataset: xarray.Dataset, limit: xarray.Dataset) -> xarray.Dataset:
    """Medians over the seeds, and where every row of them turns; `limit_` is infinite width."""
    import xarray

    medians = dataset[list(MEASURES)].median("seed").transpose("k", "alpha")
    rows = limit[list(MEASURES)].median("seed")
    found = np.array(
        [[turn(dataset.alpha.values, row, m) for row in medians[m].values] for m in MEASURES]
    )
    ends = np.array([turn(limit.alpha.values, rows[m].values, m) for m in MEASURES])
    line = ("measure", "k")
    return medians.assign(
        transition=(line, found[..., 0]),
        width=(line, found[..., 1]),
        scale=(line, found[..., 0] ** 2 * dataset.k.values),
        floor=("k", found[1, :, 2]),
        limit_scale=("measure", ends[:, 0] ** 2),
        limit_width=("measure", ends[:, 1]),
    ).assign_coords(measure=xarray.DataArray(list(MEASURES), dims="measure"))


def check(dataset: xarray.Dataset, limit: xarray.Dataset) -> Evidence:
    """The transition lies at alpha^2 k of order one at every width, and sharpens with k."""
    row = turns(dataset, limit).sel(measure="excess")
    k = dataset.k.values
    spread = Check(
        "largest |log10 alpha^2 k| at the transition", np.abs(np.log10(row.scale)).max(), 0, 0.5
    )
    slope = np.polyfit(np.log(k), np.log(row.transition), 1)[0]
    exponent = Check("exponent of the transition in alpha ~ k^s", slope, -0.5, 0.05)
    sharper = Check(
        "decades from 10 % to 90 % at the largest width over those at the smallest",
        float(row.width[-1] / row.width[0]),
        predicted=1.0,
        kind="at most",
    )
    return Evidence(
        ran=f"{dataset.sizes['alpha']} x {dataset.sizes['k']} starts of a factorization of "
        f"{dataset.sizes['seed']} matrices, followed to their end by exact gradient flow",
        checks=[exponent, spread, sharper],
        controls={
            "the transition is at alpha k = const": exponent.control(predicted=-1.0),
            "the transition is at one alpha": exponent.control(predicted=0.0),
        },
    )


def draw(dataset: xarray.Dataset, limit: xarray.Dataset) -> Figure:
    """Both maps with the line alpha^2 k = 1 and the measured transition of every width."""
    found = turns(dataset, limit)
    title = "Matrix completion leaves the rich regime near alpha^2 k = 1, at every width k"
    picture, (a, b) = sheet(title, caption_of(dataset.attrs), widths=(6.0, 6.0), height=5.2)
    _map(picture, a, found, "excess", "(a) excess nuclear norm: none at small scale")
    _map(picture, b, found, "move", "(b) unseen entries move less, and stay put only if wide")
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


experiment = Experiment(
    "W-F5",
    statement="Matrix completion by gradient flow turns from the rich to the kernel regime at"
    " alpha^2 k of order one, at every width k, and the turn is sharper the wider the factors are.",
    place="section 6 and Appendix A, Figure 5",
    study=(study, limit),
    check=check,
    draw=draw,
    title="Matrix completion leaves the rich regime near alpha^2 k = 1, at every width k",
    ours="the grid, the seeds (median), the units: the excess nuclear norm over that of the seen"
    " entries alone, the move over the RMS of the hidden truth; gradient flow to its end instead"
    " of steps of 1e-5",
    seconds=20,
)
