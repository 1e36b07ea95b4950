"""M-F6: the trajectories of M-F3 with the smoothed margin, log(1/loss), written along them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arguments import Array
from tacit.figures import plane
from tacit.figures.registry import Parameters, figure
from tacit.figures.style import BLACK, caption_of
from tacit.figures.trajectories import trajectories

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ALPHAS = {
    "M-F3b": [0.1, 1.0, 100.0, 10000.0],
    "M-F3c": [0.001, 0.3, 1.0, 100.0],
    "M-F3d": [0.1, 1.0, 100.0],
}
POWERS = list(range(-6, 15))
PRESETS: dict[str, Parameters] = {
    "quick": {
        "depth": 2, "alphas": ALPHAS, "marks": [1.0], "powers": POWERS, "points": 120, "end": 1e6,
        "least_end": 1e4, "log10_mus": [4.0, -8.0], "q_points": 121, "rtol": 1e-6,
    },
    "paper": {
        "depth": 2, "alphas": ALPHAS, "marks": [1.0], "powers": POWERS, "points": 400, "end": 1e8,
        "least_end": 1e6, "log10_mus": [6.0, -10.0], "q_points": 321, "rtol": 1e-10,
    },
}  # fmt: skip
TITLES = {
    "M-F3b": r"(b) the same support vectors all along",
    "M-F3c": r"(c) many $\ell_1$ margins",
    "M-F3d": r"(d) support vectors change",
}
ROOM = (0.075, 0.05)  # of the panel's sides between two numbers
BOX = {"boxstyle": "round,pad=0.15", "facecolor": "white"}
BESIDE: dict[float, dict[str, Any]] = {  # on which side of its curve an alpha writes its numbers
    10000.0: {"ha": "right", "xytext": (-6, 6)},
    100.0: {"ha": "left", "xytext": (6, -8)},
}


@figure(
    "M-F6",
    title="How small the loss must be: at the l2 margin log(1/loss) is about alpha^2",
    source="Moroshko et al. 2020, appendix H.1, Figure 6",
    data=trajectories,
    presets=PRESETS,
    constructed="the three points of each set and the values of alpha. Dots: the powers of ten of "
    "the smoothed margin log(1/loss)",
)
def draw(dataset: xarray.Dataset) -> Figure:
    """The azimuth-pitch plane for each set, with numbers along the trajectories."""
    caption = caption_of(dataset.attrs)
    picture, panels = plane.sheet_of_rows(dataset.title, caption, (5.4, 5.0, 5.4), 5.8, rows=1)
    colours = plane.shades(dataset.alpha.values.tolist())
    for axes, (name, title) in zip(panels, TITLES.items(), strict=True):
        plane.draw_curves(axes, dataset, name, colours)
        plane.draw_landmarks(axes, dataset, name)
        plane.fit(axes, dataset, name)
        _numbers(axes, plane.curves_of(dataset, name), colours, dataset.sel(set=name).start.values)
        axes.set_title(title)
    plane.key(panels[0], colours, cross="", marks="", edge=r"all $\ell_1$ max margins (in c)")
    panels[0].legend(loc="upper left")
    return picture


def _numbers(
    axes: Axes, curves: xarray.Dataset, colours: Mapping[float, Any], start: Array
) -> None:
    """Dots at the powers of ten, and numbers beside them wherever there is room for one.

    For large alphas the power nearest to alpha^2 comes first and stands in a box.
    """
    from matplotlib.colors import to_hex

    low, high = np.array([axes.get_xlim(), axes.get_ylim()]).T
    taken = [(start - low) / (high - low)]
    powers = np.log10(curves.power.values)
    axes.plot(*curves.at_power.values.reshape(-1, 2).T, ".", color=BLACK, markersize=6, zorder=6)
    # how many decades each dot is from alpha^2; the large starts are told there, and first
    away = np.abs(powers - 2 * np.log10(curves.alpha.values[:, None]))
    told = (away < 0.5) & (curves.alpha.values[:, None] >= 10)
    for row, place in sorted(np.ndindex(away.shape), key=lambda k: (not told[k], k[0], away[k])):
        alpha, point = float(curves.alpha[row]), curves.at_power.values[row, place]
        placing = BESIDE.get(alpha, {"ha": "left", "xytext": (4, -7)})
        side = -0.06 if placing["ha"] == "right" else 0.05
        here = (point - low) / (high - low) + (side, -side / 2)
        if np.isfinite(here).all() and all((abs(here - other) > ROOM).any() for other in taken):
            red, green, blue = (0.7 * part for part in colours[alpha][:3])
            dark = to_hex((red, green, blue))
            box = {"bbox": {**BOX, "edgecolor": dark}} if told[row, place] else {}
            text = rf"$10^{{{powers[place]:.0f}}}$"
            plane.tell(axes, point, text, dark, zorder=9, **placing, **box)
            taken.append(here)
