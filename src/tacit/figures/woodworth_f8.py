"""W-F8: the training curves of a VGG11-like net from small to large starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.figures.registry import Parameters, Progress, figure
from tacit.figures.woodworth_f6c import told
from tacit.figures.woodworth_f6d import PRESETS, data
from tacit.plotting.style import BLACK, GREY, sheet

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# one step for all starts, as W has it: its window at depth 8 is narrow
CURVES: dict[str, Parameters] = {
    "quick": {**PRESETS["quick"], "alphas": [0.7, 0.85, 1.0, 2.0], "even": False},
    "paper": PRESETS["paper"],
}
PANELS = (
    ("loss", "training loss"),
    ("accuracy", "training accuracy"),
    ("curve_error", "share of test images judged wrongly"),
)


def curves(parameters: Parameters, progress: Progress | None = None) -> xarray.Dataset:
    """The same runs as in W-F6d, told by how long they took."""
    dataset = data(parameters, progress)
    return dataset.assign_attrs(summary=f"{dataset.summary}\n{slowness(dataset)}")


def slowness(dataset: xarray.Dataset) -> str:
    """The epochs to 100% training accuracy by alpha."""
    counts = [
        f"{count:.0f} ({alpha:g})" if np.isfinite(count) else f"never ({alpha:g})"
        for alpha, count in zip(dataset.alpha.values, memorized(dataset), strict=True)
    ]
    return "first recorded epoch with 100% training accuracy, by alpha: " + ", ".join(counts)


def memorized(dataset: xarray.Dataset) -> Any:
    """The first recorded epoch with every training image right, per alpha; NaN if none has."""
    return dataset.epoch.where(dataset.accuracy == 1).min("record").values


@figure(
    "W-F8",
    title="With one step for all, a smaller start learns later; too large a start never learns",
    source="Woodworth et al. 2020, Appendix B, Figure 8",
    data=curves,
    presets=CURVES,
    constructed="the alphas; in the preset quick also fewer channels, classes and images, larger "
    "steps, and an end at 100% training accuracy",
)
def draw(dataset: xarray.Dataset) -> Figure:
    """Training loss, training accuracy and test error over the epochs, one colour per start."""
    picture, panels = sheet(dataset.title, told(dataset.attrs), widths=(4.6, 4.6, 4.6), height=4.9)
    for letter, axes, (name, label) in zip("abc", panels, PANELS, strict=True):
        _panel(axes, dataset, name)
        axes.set(xscale="symlog", xlabel="epochs", ylabel=label, title=f"({letter}) {label}")
        axes.set_xlim(0, None)
    _blind(panels[0], int(dataset.attrs["classes"]))
    panels[1].set_ylim(0, 1.03)
    panels[2].set_ylim(0, 1.03)
    panels[1].legend(loc="upper left", handlelength=1.6)
    return picture


def _blind(axes: Axes, classes: int) -> None:
    """Marks the loss of a net that tells all classes to be equally likely."""
    level = np.log(classes)
    axes.set_ylim(0, 1.5 * level)
    axes.axhline(level, color=GREY, linewidth=1.0)
    axes.annotate(
        f"blind guess, log {classes}",
        (1, level),
        xytext=(0, 5),
        color=GREY,
        ha="right",
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        fontsize=9,
    )


def _panel(axes: Axes, dataset: xarray.Dataset, name: str) -> None:
    from matplotlib import colormaps

    shades = colormaps["viridis"](np.linspace(0.0, 0.88, dataset.sizes["alpha"]))
    for shade, alpha in zip(shades, dataset.alpha.values, strict=True):
        row = dataset.sel(alpha=alpha)
        axes.plot(row.epoch, row[name], color=shade, label=rf"$\alpha$ = {alpha:g}")
    axes.plot(
        dataset.output_epoch,
        dataset[f"output_{name}"],
        "--",
        color=BLACK,
        linewidth=1.5,
        label="output layer alone",
    )
