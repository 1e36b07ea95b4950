"""M-F6: the trajectories of M-F3 with the smoothed margin, log(1/loss), written along them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.figures.registry import Parameters, figure
from tacit.figures.trajectories import trajectories
from tacit.plotting import plane
from tacit.plotting.placing import FAR, Note, write_beside
from tacit.plotting.style import BLACK, caption_of
from tacit.plotting.transition import LEGEND

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
        "depth": 2,
        "alphas": ALPHAS,
        "marks": [1.0],
        "powers": POWERS,
        "points": 120,
        "end": 1e6,
        "least_end": 1e4,
        "log10_mus": [4.0, -8.0],
        "q_points": 121,
        "rtol": 1e-6,
    },
    "paper": {
        "depth": 2,
        "alphas": ALPHAS,
        "marks": [1.0],
        "powers": POWERS,
        "points": 400,
        "end": 1e8,
        "least_end": 1e6,
        "log10_mus": [6.0, -10.0],
        "q_points": 321,
        "rtol": 1e-10,
    },
}
TITLES = {
    "M-F3b": r"(b) the same support vectors all along",
    "M-F3c": r"(c) many $\ell_1$ margins",
    "M-F3d": r"(d) support vectors change",
}
BOX = {"boxstyle": "round,pad=0.15", "facecolor": "white"}


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
    caption = f"{caption_of(dataset.attrs)} The letters of the panels are those of Figure 3."
    picture, panels = plane.sheet_of_rows(dataset.title, caption, (5.7, 5.7, 5.7), 5.4, rows=1)
    colours = plane.shades(dataset.alpha.values.tolist())
    for axes, (name, title) in zip(panels, TITLES.items(), strict=True):
        plane.draw_curves(axes, dataset, name, colours)
        plane.draw_landmarks(axes, dataset, name)
        plane.fit(axes, dataset, name)
        axes.set_title(title)
    key = panels[-1]
    plane.key(key, colours, cross="", marks="", edge=r"all $\ell_1$ max margins (in c)")
    key.plot([], [], ".", color=BLACK, markersize=6, label=r"$\log(1/\mathrm{loss})$ = $10^n$")
    key.legend(**LEGEND)
    for axes, name in zip(panels, TITLES, strict=True):
        _numbers(axes, dataset, name, colours)
    return picture


def _numbers(axes: Axes, dataset: xarray.Dataset, name: str, colours: Mapping[float, Any]) -> None:
    """Dots at the powers of ten, and numbers beside them wherever there is room for one.

    For large alphas the power nearest to alpha^2 comes first and stands in a box.
    """
    from matplotlib.colors import to_hex

    row, curves = dataset.sel(set=name), plane.curves_of(dataset, name)
    powers = np.log10(curves.power.values)
    axes.plot(*curves.at_power.values.reshape(-1, 2).T, ".", color=BLACK, markersize=6, zorder=6)
    # how many decades each dot is from alpha^2; the large starts are told there, and first
    away = np.abs(powers - 2 * np.log10(curves.alpha.values[:, None]))
    told = (away < 0.5) & (curves.alpha.values[:, None] >= 10)
    known = np.isfinite(curves.at_power.values).all(axis=-1)
    notes = []
    for at in sorted(zip(*np.nonzero(known), strict=True), key=lambda k: (not told[k], away[k])):
        red, green, blue = (0.7 * part for part in colours[float(curves.alpha[at[0]])][:3])
        dark = to_hex((red, green, blue))
        style: dict[str, Any] = {"color": dark, "fontsize": 9, "zorder": 9}
        point, text = curves.at_power.values[at], rf"$10^{{{powers[at[1]]:.0f}}}$"
        if told[at]:
            framed = {**style, "bbox": {**BOX, "edgecolor": dark}}
            notes.append(Note(point, text, framed, far=(*FAR, 19.0)))
        else:
            notes.append(Note(point, text, style))
    marks = np.vstack([row.start, row.l2, row.l1[[0, -1]]])
    write_beside(axes, notes, [*curves.trajectory.values, row.l1.values, row.q_path.values], marks)
