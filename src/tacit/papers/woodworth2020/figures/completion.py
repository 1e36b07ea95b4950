"""Matrix completion by factors from Gaussian starts: runs, where they turn, and their picture."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.lazy import Axes, Dataset, Figure
from tacit.measures.curves import crossing
from tacit.models.factorization import Factorization
from tacit.plotting.style import BLACK, BLUE, GREEN, PALE, RED, sheet_of
from tacit.problems.matrices import low_rank_completion
from tacit.records import NumericalError
from tacit.regularizers.spectral import Nuclear
from tacit.solvers.interpolate import interpolate
from tacit.training.exact.matrices.flow import MatrixFlow
from tacit.training.exact.matrices.greedy_rank import greedy_rank
from tacit.training.path import Path
from tacit.training.record import LogSpaced
from tacit.training.stop import Interpolated
from tacit.training.train import train

SCALES = {  # what the colours of each measure mean
    "excess": r"0: as $Y^*$, 1: seen entries, zeros elsewhere",
    "move": "RMS change / RMS of the hidden truth",
}
MEASURES = tuple(SCALES)


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
    problem = low_rank_completion(samples=samples, dimension=dimension, rank=rank, seed=seed)
    if k is None:
        side, zero = alpha * np.eye(dimension), np.zeros((dimension, dimension))
        model = Factorization(factors=(np.hstack([side, zero]), np.hstack([zero, side])))
    else:
        model = Factorization(k, alpha=alpha, seed=seed)
    path = flow(problem, model, rtol, loss)
    assert problem.truth is not None
    truth, hidden = problem.truth, problem.hidden
    least = np.linalg.norm(truth, "nuc")
    kernel = np.linalg.norm(np.where(problem.observed, truth, 0.0), "nuc") - least
    if kernel <= 0:
        raise ValueError(
            f"Figure 5: at seed {seed} the seen entries alone have a smaller nuclear norm than the "
            "truth, so there is no excess to follow; take more samples"
        )
    excess = (np.linalg.norm(path.predictor, "nuc") - least) / kernel
    moved = path.predictor - model.matrix(model.start(problem.dimension))
    move = np.sqrt(np.mean(moved[hidden] ** 2) / np.mean(truth[hidden] ** 2))
    return {"excess": float(excess), "move": float(move), "scale": alpha**2 * (k or 1)}


def rich(
    seed: int,
    *,
    alpha: float,
    k: int,
    dimension: int,
    rank: int,
    samples: int,
    rtol: float,
    loss: float,
) -> dict[str, Any]:
    """Where a small start ends: distances, relative to it, of what may be the rich limit.

    The nuclear norms are relative to that of the truth.
    """
    problem = low_rank_completion(samples=samples, dimension=dimension, rank=rank, seed=seed)
    assert problem.truth is not None
    end = flow(problem, Factorization(k, alpha=alpha, seed=seed), rtol, loss).predictor
    least = interpolate(problem, Nuclear()).matrix
    low = greedy_rank(problem)
    seen = np.where(problem.observed, problem.truth, 0.0)
    targets = {"truth": problem.truth, "greedy": low.end, "nuclear": least, "frobenius": seen}
    found = {f"to_{name}": _apart(target, end) for name, target in targets.items()}
    norms = [float(np.linalg.norm(matrix, "nuc")) for matrix in (end, least, problem.truth)]
    return {
        **found,
        "stages": int(low.ranks[-1]),
        "norm": norms[0] / norms[2],
        "least": norms[1] / norms[2],
    }


def flow(problem: Any, model: Any, rtol: float, loss: float) -> Path:
    """The path of gradient flow to zero loss."""
    method = MatrixFlow(rtol=rtol)
    path = train(model, problem, method, stop=Interpolated(loss), record=LogSpaced(1))
    if not path.outcome.ok:
        raise NumericalError("Figure 5", path.outcome)
    return path


def _apart(one: Array, other: Array) -> float:
    return float(np.linalg.norm(one - other) / np.linalg.norm(other))


def turn(alphas: Array, row: Array, measure: str) -> tuple[float, float, float, float]:
    """(alpha at 10 %, halfway, decades of alpha from 10 % to 90 %, lowest value) of one row.

    The excess goes from 0 to 1. The move falls from 1 to its least value at this width, and grows
    again with alpha^2, as the start itself does; the fall is what is measured.
    """
    floor = float(row.min())
    rising = row if measure == "excess" else (1 - row) / (1 - floor)
    low, half, high = (crossing(np.log10(alphas), rising, level) for level in (0.1, 0.5, 0.9))
    return 10**low, 10**half, high - low, floor


def turns(dataset: Dataset, limit: Dataset) -> Dataset:
    """Medians over the seeds, and where every row of them turns; `limit_` is infinite width."""
    import xarray

    medians = dataset[list(MEASURES)].median("seed").transpose("k", "alpha")
    rows = limit[list(MEASURES)].median("seed").rename(alpha="limit_alpha")
    found = np.array(
        [[turn(dataset.alpha.values, row, m) for row in medians[m].values] for m in MEASURES]
    )
    ends = np.array([turn(limit.alpha.values, rows[m].values, m) for m in MEASURES])
    line = ("measure", "k")
    return medians.assign(
        departure=(line, found[..., 0]),
        transition=(line, found[..., 1]),
        width=(line, found[..., 2]),
        scale=(line, found[..., 1] ** 2 * dataset.k.values),
        floor=("k", found[1, :, 3]),
        limit_excess=rows.excess,
        limit_move=rows.move,
        limit_scale=("measure", ends[:, 1] ** 2),
        limit_width=("measure", ends[:, 2]),
    ).assign_coords(measure=xarray.DataArray(list(MEASURES), dims="measure"))


def gaps(found: Dataset) -> Array:
    """The largest distance, where alpha^2 k <= 1, to the excess at infinite width, by k."""
    places, far = np.log(found.limit_alpha.values), []
    for k in found.k.values:
        row = found.excess.sel(k=k)
        scale = found.alpha.values * np.sqrt(k)
        inside = (scale <= 1) & (scale >= found.limit_alpha.values[0])
        limit = np.interp(np.log(scale[inside]), places, found.limit_excess.values)
        far.append(np.abs(row.values[inside] - limit).max())
    return np.array(far)


def draw(dataset: Dataset, limit: Dataset, small: Dataset) -> Figure:
    """Both maps, the profile of every width over alpha^2 k, and the ends of small starts."""
    found = turns(dataset, limit)
    picture, (a, b, c, d) = sheet_of(dataset, widths=(5.2, 5.2, 4.4, 4.0), height=5.0)
    _map(picture, a, found, "excess", "(a) excess nuclear norm: zero at small scale")
    _map(picture, b, found, "move", "(b) unseen entries stay fixed only at large width")
    b.text(
        0.95,
        0.5,
        r"large starts change all, $\propto \alpha^2$",
        transform=b.transAxes,
        color="white",
        rotation=90,
        ha="center",
        va="center",
    )
    _profiles(c, found)
    _ends(d, small)
    return picture


def _profiles(axes: Axes, found: Dataset) -> None:
    """The excess over alpha^2 k, one curve per width."""
    from matplotlib import colormaps

    shades = colormaps["viridis"](np.linspace(0.0, 0.85, found.sizes["k"]))
    for shade, k in zip(shades, found.k.values, strict=True):
        axes.plot(found.alpha**2 * k, found.excess.sel(k=k), color=shade, label=f"$k$ = {k}")
    axes.plot(found.limit_alpha**2, found.limit_excess, "--", color=BLACK, label=r"$k = \infty$")
    axes.set(
        xscale="log",
        xlim=(1e-4, 1e2),
        ylim=(-0.03, 1.5),
        xlabel=r"$\alpha^2 k$",
        ylabel="excess nuclear norm (units of (a))",
        title="(c) one profile for wide factors,\nnot sharper than that of narrow ones",
    )
    axes.legend(loc="upper left")


def _ends(axes: Axes, small: Dataset) -> None:
    """How far the ends of small starts are from what may be the rich limit."""
    styles = (
        ("to_nuclear", "least nuclear norm", RED, "s"),
        ("to_greedy", "greedy low rank", GREEN, "^"),
        ("to_truth", "truth", BLUE, "o"),
    )
    for name, label, colour, marker in styles:
        axes.plot(small.seed, small[name], marker, color=colour, markersize=6, label=label)
    axes.set(
        yscale="log",
        ylim=(3e-7, 30),
        xlabel="seed of the matrix",
        ylabel="relative distance of the end",
        title="(d) small starts end at the least rank,\nnot always at the least nuclear norm",
    )
    axes.legend(loc="upper left", ncols=2, handlelength=1.0, columnspacing=1.0)


def _edges(middles: Array) -> Array:
    """The edges of cells on a logarithmic axis."""
    logs = np.log(middles)
    inner = (logs[1:] + logs[:-1]) / 2
    return np.exp([2 * logs[0] - inner[0], *inner, 2 * logs[-1] - inner[-1]])


def _map(picture: Figure, axes: Axes, dataset: Dataset, measure: str, title: str) -> None:
    """One map; colours run from the rich regime (dark) to the kernel regime (light)."""
    values, k = dataset[measure].values, dataset.k.values
    colours = "viridis" if measure == "excess" else "viridis_r"
    mesh = axes.pcolormesh(
        _edges(dataset.alpha.values),
        _edges(k),
        np.clip(values, 0, 1),
        cmap=colours,
        vmin=0,
        vmax=1,
        rasterized=True,
    )
    picture.colorbar(mesh, ax=axes, extend="max", pad=0.01, label=SCALES[measure])
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
