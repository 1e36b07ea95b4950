"""Drawing a transition: rows of measurements that share one time axis, and predicted times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penchant.arguments import text, with_parts
from penchant.door import Invalid, door
from penchant.plotting.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PALE,
    PURPLE,
    RED,
    require_axes,
    require_lengths,
    sheet,
)

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 8.4
LOWEST = 0.7  # of its height that a row keeps in a narrow picture
HEIGHTS = (2.3, 1.0, 1.0, 1.25, 1.0)  # accuracy, norm, turn, margins, kernel distance
PARTS = (
    *("title", "t", "train_accuracy", "test_accuracy", "accuracy_l1", "accuracy_l2"),
    *("parameter_norm", "decayed_norm", "turn", "share_l1", "share_l2", "kernel_distance"),
    *("forecast", "forecast_low", "forecast_high", "theory_norm", "theory_entry", "decay"),
)
LEGEND: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}


@door
def panel_rows(
    title: str, caption: str, heights: Sequence[float] = HEIGHTS, width: float = WIDTH
) -> tuple[Figure, list[Axes]]:
    """An empty figure with one row for every height in inches, on a common horizontal axis."""
    require_lengths(heights=heights, width=[width])
    picture, (whole,) = sheet(title, caption, widths=(width,), height=sum(heights) + 1.6)
    whole.remove()
    if (
        picture.get_figwidth() < width
    ):  # in a column of a paper rows are lower, but not as much as they are narrower
        picture.set_figheight(LOWEST * sum(heights) + 0.6)
    grid = picture.add_gridspec(len(heights), 1, height_ratios=list(heights))
    first = picture.add_subplot(grid[0, 0])
    rest = [picture.add_subplot(grid[k, 0], sharex=first) for k in range(1, len(heights))]
    for axes in [first, *rest[:-1]]:
        axes.tick_params(labelbottom=False)
    return picture, [first, *rest]


def band(axes: Sequence[Axes], low: float, high: float, label: str, **style: Any) -> None:
    """An interval through all rows, named in the legend of the first."""
    for number, panel in enumerate(axes):
        panel.axvspan(low, high, label=label if number == 0 else None, **style)


def _require_rows(axes: Sequence[Axes]) -> None:
    if not hasattr(axes, "__len__") or not len(axes):
        raise Invalid(f"axes must list axes of matplotlib, got {axes!r:.80}")
    for one in axes:
        require_axes(one)


@door
def mark(axes: Sequence[Axes], position: float, label: str, colour: str, line: str) -> None:
    """A vertical line through all rows, named in the legend of the first."""
    _require_rows(axes)
    text("label", label)
    for number, panel in enumerate(axes):
        panel.axvline(
            position,
            color=colour,
            linestyle=line,
            linewidth=1.4,
            zorder=2,
            label=label if number == 0 else None,
        )


@door
def draw_transition(dataset: xarray.Dataset, caption: str) -> Figure:
    """Accuracy, norm, turn, margins and kernel distance of one run under weight decay."""
    with_parts("dataset", dataset, "the dataset of a transition", *PARTS)
    text("caption", caption)
    picture, axes = panel_rows(dataset.title, caption)
    accuracy, norm, turn, margins, kernel = axes
    _draw_accuracy(accuracy, dataset)
    norm.plot(dataset.t, dataset.parameter_norm, color=BLUE, label=r"$\|\theta(t)\|$")
    norm.plot(
        dataset.t, dataset.decayed_norm, ":", color=BLACK, label=r"$\|\theta(0)\|\, e^{-\lambda t}$"
    )
    norm.set(ylabel="parameter\nnorm", yscale="log", ylim=_norm_limits(dataset))
    turn.plot(dataset.t, dataset.turn, color=PURPLE)
    turn.set(ylabel="turn from\nstart (degrees)", ylim=(0, 92), yticks=(0, 45, 90))
    margins.plot(dataset.t, dataset.share_l2, color=ORANGE, label=r"$\ell_2$ (kernel bias)")
    margins.plot(dataset.t, dataset.share_l1, "--", color=GREEN, label=r"$\ell_1$ (rich bias)")
    margins.set(ylabel="margin, share\nof largest", ylim=(0, 1.08), yticks=(0, 0.5, 1))
    kernel.plot(dataset.t, dataset.kernel_distance, color=RED)
    kernel.set(ylabel="kernel\ndistance", ylim=(-0.03, None), xlabel="training time $t$")
    _predictions(axes, dataset)
    for panel in (accuracy, norm, margins):
        panel.legend(**LEGEND)
    _time_axis(accuracy, dataset)
    picture.align_ylabels(axes)
    return picture


def _draw_accuracy(axes: Axes, dataset: xarray.Dataset) -> None:
    axes.plot(dataset.t, dataset.train_accuracy, color=BLUE, label="training accuracy")
    axes.plot(dataset.t, dataset.test_accuracy, color=RED, linewidth=3, label="test accuracy")
    for name, line in (("l2", "-"), ("l1", "--")):
        label = rf"test accuracy of $\ell_{name[1]}$ max margin"
        level = float(dataset[f"accuracy_{name}"])
        axes.axhline(level, color=GREY, linestyle=line, linewidth=0.9, zorder=1, label=label)
    axes.set(ylabel="accuracy", ylim=(0.47, 1.03))


def _predictions(axes: Sequence[Axes], dataset: xarray.Dataset) -> None:
    """The times predicted before training."""
    forecast, theory = float(dataset.forecast), float(dataset.theory_norm)
    low, high = float(dataset.forecast_low), float(dataset.forecast_high)
    band(axes, low, high, "interval of the forecast", color=PALE, zorder=0)
    mark(axes, forecast, f"forecast before training: {_time(forecast)}", BLACK, "--")
    mark(axes, theory, rf"$(1/\lambda)\,\log\|\theta(0)\|$ = {_time(theory)}", GREY, ":")
    entry = float(dataset.theory_entry)
    if entry > float(dataset.t[0]):
        text = rf"$(1/\lambda)\,\log\alpha$ = {_time(entry)}, $\alpha = {float(dataset.entry):.3g}$"
        mark(axes, entry, text, GREY, "-.")


def _time(t: float) -> str:
    return f"{t:,.0f}".replace(",", " ")


def _norm_limits(dataset: xarray.Dataset) -> tuple[float, float]:
    """Room for the parameters' own norm; the line of pure decay may leave at the bottom."""
    values = dataset.parameter_norm.values
    return float(values.min()) / 2, float(values.max()) * 1.6


def _time_axis(axes: Axes, dataset: xarray.Dataset) -> None:
    """Logarithmic time below, and in units of 1/lambda above."""
    rate = float(dataset.decay)
    axes.set(xscale="log", xlim=(float(dataset.t[0]), float(dataset.t[-1])))
    units: Any = (lambda t: rate * t, lambda s: s / rate)
    above = axes.secondary_xaxis("top", functions=units)
    above.set_xlabel(r"$\lambda t$")
    above.tick_params(labelsize=8)
