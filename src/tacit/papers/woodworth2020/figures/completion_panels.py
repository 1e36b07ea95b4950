"""The panels of Figure 5: both maps, the profiles of the widths, the ends of small starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit.arguments import Array
from tacit.papers.woodworth2020.figures.completion import turns
from tacit.plotting.style import BLACK, BLUE, GREEN, PALE, RED, caption_of, sheet

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw(dataset: xarray.Dataset, limit: xarray.Dataset, small: xarray.Dataset) -> Figure:
    """Both maps, the profile of every width over alpha^2 k, and the ends of small starts."""
    found, attributes = turns(dataset, limit), dataset.attrs
    picture, (a, b, c, d) = sheet(
        attributes["title"], caption_of(attributes), widths=(5.2, 5.2, 4.4, 4.0), height=5.0
    )
    _map(picture, a, found, "excess", "(a) excess nuclear norm: none at small scale")
    _map(picture, b, found, "move", "(b) unseen entries move less, and rest only if wide")
    b.text(
        0.95,
        0.5,
        r"large starts move all, $\propto \alpha^2$",
        transform=b.transAxes,
        color="white",
        rotation=90,
        ha="center",
        va="center",
    )
    _profiles(c, found)
    _ends(d, small)
    return picture


def _profiles(axes: Axes, found: xarray.Dataset) -> None:
    """The excess over alpha^2 k, a curve a width."""
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


def _ends(axes: Axes, small: xarray.Dataset) -> None:
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


def _map(picture: Figure, axes: Axes, dataset: xarray.Dataset, measure: str, title: str) -> None:
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
