"""The panels of Figure 5: both maps, the profile of every width, and the ends of small starts."""

from __future__ import annotations

import numpy as np

from penchant.lab import Array, Axes, Dataset, Figure
from penchant.plotting import BLACK, BLUE, PALE, RED, sheet_of
from penchant_papers.woodworth2020.figures.completion import turns

SCALES = {  # what the colours of each measure mean
    "excess": r"0: as $Y^*$, 1: seen entries, zeros elsewhere",
    "move": "RMS change / RMS of the hidden truth",
}


def draw(dataset: Dataset, limit: Dataset, small: Dataset, steps: Dataset) -> Figure:
    """Both maps, the profile of every width over alpha^2 k, and the ends of small starts."""
    grid = medians(dataset, limit)
    picture, (a, b, c, d) = sheet_of(dataset, widths=(5.2, 5.2, 4.4, 4.0), height=5.0)
    _map(picture, a, grid, "excess", "(a) excess nuclear norm: zero at small scale")
    _map(picture, b, grid, "move", "(b) unseen entries stay fixed only at large width")
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
    _profiles(c, grid)
    _ends(d, small)
    return picture


def medians(dataset: Dataset, limit: Dataset) -> Dataset:
    """Medians over the matrices: of the maps, and of where each width turns."""
    rows = dataset[["excess", "move"]].median("seed").transpose("k", "alpha")
    end = limit[["excess", "move"]].median("seed").rename(alpha="limit_alpha")
    finite, infinite = turns(dataset).median("seed"), turns(limit).median("seed")
    return rows.assign(
        transition=10**finite.half,
        width=finite.width,
        limit_excess=end.excess,
        limit_scale=10 ** (2 * infinite.half),
    )


def _profiles(axes: Axes, grid: Dataset) -> None:
    """The excess over alpha^2 k, one curve per width."""
    from matplotlib import colormaps

    shades = colormaps["viridis"](np.linspace(0.0, 0.85, grid.sizes["k"]))
    for shade, k in zip(shades, grid.k.values, strict=True):
        axes.plot(grid.alpha**2 * k, grid.excess.sel(k=k), color=shade, label=f"$k$ = {k}")
    axes.plot(grid.limit_alpha**2, grid.limit_excess, "--", color=BLACK, label=r"$k = \infty$")
    axes.set(
        xscale="log",
        xlim=(1e-4, 1e2),
        ylim=(-0.03, 1.5),
        xlabel=r"$\alpha^2 k$",
        ylabel="excess nuclear norm (units of (a))",
        title="(c) one profile for wide factors,\nwider than that of narrow ones",
    )
    axes.legend(loc="upper left")


def _ends(axes: Axes, small: Dataset) -> None:
    """How far the ends of small starts are from what may be the rich limit."""
    styles = (
        ("to_nuclear", "least nuclear norm", RED, "s"),
        ("to_truth", "truth", BLUE, "o"),
    )
    for name, label, colour, marker in styles:
        row = small[name].sel(elsewhere=True)
        axes.plot(range(row.size), row, marker, color=colour, markersize=6, label=label)
    axes.set(
        yscale="log",
        ylim=(1e-9, 30),
        xlabel="matrix whose least nuclear norm is elsewhere",
        ylabel="relative distance of the end",
        title="(d) small starts end at the least rank,\nnot at the least nuclear norm",
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
    axes.set_title(title)
