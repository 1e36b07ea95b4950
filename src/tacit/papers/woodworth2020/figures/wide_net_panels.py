"""The panels of Figure 6 (c): test error and turn of the tangent features over the scale."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arguments import Array
from tacit.plotting.style import BLACK, BLUE, GREY, RED, caption_of, sheet

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def best(rows: xarray.Dataset) -> float:
    """The step of the least mean test error among those that fit all; NaN if none does."""
    fits = (rows.train_accuracy == 1).all("seed")
    errors = rows.error.mean("seed").where(fits, np.inf).values
    return float(rows.step[errors.argmin()]) if np.isfinite(errors).any() else float("nan")


def at_best(printed: xarray.Dataset, name: str) -> Array:
    """A measure as printed at the best step of every alpha, by seed; NaN where no step fits."""
    rows = []
    for alpha in printed.alpha.values:
        row = printed.sel(alpha=alpha)
        step = best(row)
        rows.append(row[name].sel(step=step).values if step == step else row[name][0] * np.nan)
    return np.array(rows)


def draw(*datasets: xarray.Dataset) -> Figure:
    """Test error and grad distance over alpha: as printed, and without the start's outputs."""
    printed, _, kernel, output, _ = datasets
    attributes = printed.attrs
    told = f"{printed.instead.values.flat[0]} {caption_of(attributes)}".strip()
    picture, (a, b) = sheet(attributes["title"], told, widths=(6.0, 6.0), height=4.9)
    label = r"outputs of the start subtracted, step$/\alpha^2$"
    for axes, name, factor in ((a, "error", 100), (b, "turned", 1)):
        _curve(axes, printed.alpha, factor * at_best(printed, name), "as printed", RED, "s")
        machines = kernel[name].transpose("alpha", "seed").values
        _curve(axes, kernel.alpha, factor * machines, label, BLUE, "o")
        axes.set(xscale="log", xlabel=r"scale of the start $\alpha$")
        axes.axvline(1.0, color=GREY, linewidth=1.0, label=r"He's start, $\alpha = 1$")
    proxy = 100 * float(output.error.mean())
    a.axhline(proxy, color=BLACK, linestyle="--", linewidth=1.4, label="output layer alone")
    a.set(
        ylabel="test error (% of the test images)",
        title="(a) test error: large starts lose more than their kernel machine",
    )
    a.set_ylim(bottom=0)
    b.set(
        yscale="log",
        ylabel="grad distance (1 - cosine)",
        title="(b) tangent features: as printed no start keeps them",
    )
    a.legend(loc="lower right", frameon=True, edgecolor="none")
    b.legend(loc="lower left", frameon=True, edgecolor="none")
    return picture


def _curve(axes: Axes, x: Any, values: Array, label: str, colour: str, marker: str) -> None:
    """Means over the seeds, in a band from the least to the largest."""
    means = values.mean(axis=1)
    axes.plot(x, means, color=colour, marker=marker, markersize=4, label=label)
    low, high = values.min(axis=1), values.max(axis=1)
    axes.fill_between(x, low, high, color=colour, alpha=0.18, linewidth=0)
