"""Drawing trajectories of directions in the plane of azimuth and pitch, with their landmarks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from penchant.arguments import Array
from penchant.plotting.style import BLACK, GREEN, GREY, ORANGE, PURPLE, RED, SKY, end_label

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes

Style = dict[str, Any]
Q_PATH: Style = {"color": BLACK, "linewidth": 1.5, "linestyle": "--", "zorder": 4}
LIMIT: Style = {"color": RED, "linewidth": 2.2, "linestyle": (0, (1, 1)), "zorder": 5}
EDGE: Style = {"color": ORANGE, "linewidth": 5, "solid_capstyle": "round", "zorder": 1}
CROSS: Style = {"color": GREY, "linewidth": 0.9, "linestyle": ":", "zorder": 2}


def _mark(marker: str, colour: str, size: float, zorder: int) -> Style:
    edge = {"markeredgecolor": BLACK, "markeredgewidth": 0.8}
    own = {"marker": marker, "color": colour, "markersize": size, "zorder": zorder}
    return {"linestyle": "none", **own, **edge}


SQUARE = _mark("s", PURPLE, 6, 6)
DIAMOND = _mark("D", RED, 5, 6)
CIRCLE = _mark("o", GREEN, 9, 7)
STAR = _mark("*", ORANGE, 14, 7)
TRIANGLE = _mark("^", SKY, 9, 8)
LOCAL = _mark("^", "white", 7, 6)
START = _mark("X", BLACK, 8, 7)
END = _mark("o", GREY, 6, 9)


def shades(alphas: Sequence[float]) -> dict[float, Any]:
    """One colour for every alpha, from bright for the smallest to dark for the largest."""
    from matplotlib import colormaps

    ordered = sorted(set(alphas))
    places = np.linspace(0.92, 0.0, len(ordered))
    return {alpha: colormaps["viridis"](at) for alpha, at in zip(ordered, places, strict=True)}


def draw_curves(
    axes: Axes, lines: Mapping[float, Array], colours: Mapping[float, Any], **style: Any
) -> None:
    """The trajectory of every alpha, points along the first axis."""
    for alpha, line in sorted(lines.items(), reverse=True):
        axes.plot(*line.T, color=colours[alpha], zorder=3, **style)


def draw_directions(axes: Axes, lines: Mapping[float, Array], colours: Mapping[float, Any]) -> None:
    """The same in the plane of azimuth and pitch."""
    draw_curves(axes, lines, colours)
    axes.set(xlabel="azimuth (degrees)", ylabel="pitch (degrees)")


def draw_cross_lines(axes: Axes, cross: Array, row: xarray.Dataset) -> None:
    """For every marked mu the points of all alphas with smoothed margin alpha^D / mu, joined.

    `cross` has the alphas, from the largest on, then the marks, then azimuth and pitch.
    """
    for mark, points in enumerate(np.moveaxis(cross, 1, 0)):
        axes.plot(*np.vstack([row.q_mark.values[mark], points]).T, **CROSS)


def draw_landmarks(axes: Axes, row: xarray.Dataset) -> None:
    """Start, l1 set, l2, stationary points and the Q path."""
    axes.plot(*row.q_path.values.T, **Q_PATH)
    spread = row.l1.values
    if np.ptp(spread, axis=0).max() > 1e-6:
        axes.plot(*spread.T, **EDGE)
    axes.plot(*spread[[0, -1]].T, **STAR)
    axes.plot(*row.l2.values, **CIRCLE)
    axes.plot(*row.start.values, **START)
    places = row.stationary.values
    places = places[np.isfinite(places).all(axis=1)]
    axes.plot(*places[:1].T, **TRIANGLE)
    axes.plot(*places[1:].T, **LOCAL)


def fit(axes: Axes, lines: Mapping[float, Array], row: xarray.Dataset) -> None:
    """Limits around the trajectories and the Q path; a stationary point far off stays outside."""
    points = np.vstack([*lines.values(), row.q_path.values])
    low, high = points.min(axis=0), points.max(axis=0)
    (left, bottom), (right, top) = low - 0.06 * (high - low), high + 0.06 * (high - low)
    axes.set(xlim=(left, right), ylim=(bottom, top))


def draw_limit(axes: Axes, row: xarray.Dataset) -> None:
    """Where flows of huge alpha go, and at each marked mu how far that is from the Q path."""
    axes.plot(*row.limit.values.T, **LIMIT)
    axes.plot(*row.limit_mark.values.T, **DIAMOND)


def label_point(axes: Axes, point: Array, text: str, colour: str, **placing: Any) -> None:
    """Write `text` next to a point of the plane."""
    end_label(axes, float(point[0]), float(point[1]), text, colour, **placing)


def name_marks(
    axes: Axes,
    points: Array,
    marks: Sequence[float],
    skip: Sequence[float] = (),
    **placing: Any,
) -> None:
    """Squares on the Q path with their values of mu beside them."""
    axes.plot(*points.T, **SQUARE)
    for mu, point in zip(marks, points, strict=True):
        if not np.isclose(mu, skip).any():
            label_point(axes, point, f"{mu:g}", PURPLE, **placing)


def key(
    axes: Axes,
    colours: Mapping[float, Any],
    limit: str = "",
    deeper: str = "",
    start: str = "start: mean of the data",
    l1: str = r"$\ell_1$ max margin",
    edge: str = "",
    marks: str = r"$Q_\mu$ max margins (written: $\mu$)",
    cross: str = r"one $\mu = \alpha^D/\tilde\gamma$, all $\alpha$",
    end: str = "",
    flows: bool = True,
) -> None:
    """Empty artists that name everything a panel may show; an empty text leaves one out.

    Without `flows` the colours of the alphas are left to a scale.
    """
    named: list[tuple[str, Style]] = [
        (start, START),
        (r"$\ell_2$ max margin", CIRCLE),
        (l1, STAR),
        (edge, EDGE),
        (deeper and f"{deeper} max margin", TRIANGLE),
        (deeper and f"{deeper} max margin, only local", LOCAL),
        (marks, _on_line(Q_PATH, SQUARE)),
        ("" if marks else r"$Q_\mu$ max margins, $\mu$ falling", Q_PATH),
        (limit, _on_line(LIMIT, DIAMOND)),
        (cross, CROSS),
        (end, END),
    ]
    for text, style in named:
        if text:
            axes.plot([], [], label=text, **style)
    for alpha, colour in sorted(colours.items(), reverse=True) if flows else ():
        axes.plot([], [], color=colour, label=rf"flow from $\alpha = {alpha:g}$")


def _on_line(line: Style, mark: Style) -> Style:
    """A line that carries a mark."""
    marker = {name: mark[name] for name in ("marker", "markersize", "markeredgecolor")}
    return {**line, **marker, "markerfacecolor": mark["color"]}


def scale_of(axes: Axes, colours: Mapping[float, Any]) -> None:
    """Turn a panel into the scale that says which colour is which alpha, the largest on top."""
    for position, (alpha, colour) in enumerate(sorted(colours.items())):
        axes.barh(position, 1.0, height=1.0, color=colour)
        axes.text(1.15, position, f"{alpha:g}", va="center", fontsize=9)
    axes.set(xlim=(0, 1), ylim=(-0.5, len(colours) - 0.5))
    axes.set_title(r"flow from $\alpha$ =", fontsize=9)
    axes.set_axis_off()
