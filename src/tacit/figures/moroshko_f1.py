"""M-F1, a diagram: the corner of large scale and high accuracy depends on the way into it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.figures.registry import Parameters, Progress, figure
from tacit.plotting.style import BLUE, GREEN, GREY, PURPLE, RED, caption_of, sheet

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def data(parameters: Parameters, progress: Progress | None = None) -> xarray.Dataset:
    """The lines alpha^D / log(1/eps) = mu in the plane whose sides are folded to [0, 1].

    A quantity a in [0, inf] is shown at a / (1 + a), so that both limits are on the page.
    """
    import xarray

    mu = np.asarray(parameters["mu"], dtype=float)
    scale = np.linspace(0.0, 1.0, 201)
    folded = [[cell(row, at)["accuracy"] for at in scale] for row in mu]
    dataset = xarray.Dataset(
        {"accuracy": (("mu", "scale"), folded)}, coords={"mu": mu, "scale": scale}
    )
    dataset.mu.attrs.update(long_name="alpha^D / log(1/eps)", units="1")
    dataset.scale.attrs.update(long_name="alpha^D folded to [0, 1]", units="1")
    dataset.accuracy.attrs.update(long_name="log(1/eps) folded to [0, 1]", units="1")
    return dataset


def cell(mu: float, scale: float) -> dict[str, float]:
    """`accuracy`, one point of the line of mu: log(1/eps) folded, where alpha^D folded is scale."""
    if scale == 1:
        return {"accuracy": 1.0}
    accuracy = scale / (1 - scale) / mu
    return {"accuracy": accuracy / (1 + accuracy)}


@figure(
    "M-F1",
    title="Which limit is taken first decides: kernel or rich",
    source="Moroshko et al. 2020, section 1, Figure 1",
    data=data,
    presets={"quick": {"mu": [0.25, 1.0, 4.0]}, "paper": {"mu": [0.25, 1.0, 4.0]}},
    constructed="the values of mu, and the folding a -> a / (1 + a) of both axes",
)
def draw(dataset: xarray.Dataset) -> Figure:
    """The plane of scale and accuracy with both limits, and the lines that meet in its corner."""
    picture, (axes,) = sheet(dataset.title, caption_of(dataset.attrs), widths=(7.6,), height=5.6)
    for row, style in zip(dataset.mu.values, ("--", "-", "-."), strict=False):
        line = dataset.accuracy.sel(mu=row)
        axes.plot(
            dataset.scale, line, style, color=PURPLE, linewidth=1.6, label=rf"$\mu$ = {row:g}"
        )
    _limits(axes)
    axes.set(xlim=(0, 1.0), ylim=(0, 1.0))
    axes.set_xticks([0, 0.5, 1], ["0", "1", r"$\infty$"])
    axes.set_yticks([0, 0.5, 1], ["0", "1", r"$\infty$"])
    axes.set_xlabel(r"scale of the initialization, $\alpha^D$")
    axes.set_ylabel(r"training accuracy $\log(1/\epsilon)$, with $\epsilon$ the loss")
    axes.grid(False)
    title = "both together, with\n" + r"$\mu = \alpha^D / \log(1/\epsilon)$ kept:"
    key = axes.legend(loc="upper left", bbox_to_anchor=(1.04, 0.6), title=title)
    key.set_alignment("left")
    return picture


def _limits(axes: Axes) -> None:
    """The two edges that are limits, the two ways into the corner and what each one finds."""
    thick: dict[str, Any] = {"linewidth": 7, "solid_capstyle": "butt", "clip_on": False}
    axes.plot([0, 0.97], [1, 1], color=RED, **thick)
    axes.plot([1, 1], [0, 0.97], color=BLUE, **thick)
    axes.plot(1, 1, "o", markersize=15, color=GREEN, clip_on=False, zorder=5)
    middle: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 10}
    axes.text(0.18, 0.93, r"$\epsilon \to 0$ first: rich, $\ell_{2/D}$", color=RED, **middle)
    axes.text(0.70, 0.18, r"$\alpha \to \infty$ first: kernel, $\ell_2$", color=BLUE, **middle)
    axes.annotate(
        "both at once: the\nmargin of least $Q_\\mu$, from\n"
        r"$\ell_2$ (large $\mu$) to $\ell_1$ (small $\mu$)",
        (1.01, 0.985),
        (1.06, 0.82),
        color=GREEN,
        fontsize=10,
        annotation_clip=False,
        arrowprops={"arrowstyle": "-", "color": GREEN},
    )
    arrow = {"arrowstyle": "-|>", "linewidth": 1.4, "mutation_scale": 14}
    for start, end, colour in (
        ((0.36, 0.22), (0.36, 0.97), RED),
        ((0.36, 0.22), (0.97, 0.22), BLUE),
    ):
        axes.annotate("", end, start, arrowprops={**arrow, "color": colour})
    axes.plot(0.36, 0.22, "o", color=GREY, markersize=7)
    axes.text(0.29, 0.175, "a finite run", color=GREY, **middle)
