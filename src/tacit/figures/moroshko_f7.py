"""M-F7: which of many l1 max margins training ends at, seen by its l2 norm."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.figures.cells import Values, cell_of
from tacit.figures.excess import FOLLOWED, draw_excess, excess_curve, excess_plane, least_norm
from tacit.figures.registry import Parameters, Progress, figure
from tacit.plotting import plane
from tacit.plotting.style import BLACK, caption_of, sheet

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

SET, NORMS = "M-F3c", (1.0, 2.0)
ALPHAS = {SET: [0.001, 0.1, 0.3, 0.5, 1.0, 3.0, 100.0]}
EDGE = r"all $\ell_1$ max margins"
PRESETS: dict[str, Parameters] = {
    "quick": {
        "depth": 2,
        "alphas": ALPHAS,
        "points": 120,
        "end": 1e7,
        "least_end": 1e4,
        "log10_mus": [4.0, -8.0],
        "q_points": 121,
        "rtol": 1e-6,
    },
    "paper": {
        "depth": 2,
        "alphas": ALPHAS,
        "points": 400,
        "end": 1e9,
        "least_end": 1e6,
        "log10_mus": [6.0, -10.0],
        "q_points": 321,
        "rtol": 1e-10,
    },
}


def data(parameters: Parameters, progress: Progress | None = None) -> xarray.Dataset:
    """Excess l1 and l2 norms along trajectories on the points of M-F3c."""
    from tacit.problems.classification import three_points

    return excess_plane({SET: three_points(SET)}, NORMS, parameters, progress)


@cell_of("alpha", FOLLOWED)
def cell(parameters: Parameters) -> Values:
    """One trajectory in the plane of excess norms, and where it ends."""
    from tacit.problems.classification import three_points

    problem = three_points(SET)
    least = [least_norm(problem, p) for p in NORMS]
    return excess_curve(problem, parameters["alpha"], NORMS, least, parameters)


@figure(
    "M-F7",
    title="Of many l1 margins large starts take the least l2 norm, small ones the largest",
    source="Moroshko et al. 2020, appendix H.2, Figure 7",
    data=data,
    presets=PRESETS,
    constructed="the three points (those of M-F3c) and the values of alpha. Every predictor is "
    "divided by its margin before its norms are taken",
)
def draw(dataset: xarray.Dataset) -> Figure:
    """The plane of excess norms, in which every l1 max margin is on the left edge."""
    picture, (axes,) = sheet(dataset.title, caption_of(dataset.attrs), widths=(9.2,), height=5.6)
    colours = plane.shades(dataset.alpha.values.tolist())
    draw_excess(axes, dataset, "M-F3c", colours)
    plane.key(axes, colours, cross="", marks="", l1="", edge=EDGE)
    curves = plane.curves_of(dataset, "M-F3c")
    for place, text, lift in (
        (0, r"large $\alpha$: least $\ell_2$ norm", -26),
        (-1, r"small $\alpha$: largest $\ell_2$ norm", 4),
    ):
        plane.tell(axes, curves.trajectory.values[place, -1], text, BLACK, xytext=(14, lift))
    axes.set(xlabel=r"excess $\ell_1$ norm, $\|w\|_1 / \min\|w\|_1 - 1$ (at margin 1)")
    axes.set(ylabel=r"excess $\ell_2$ norm, $\|w\|_2 / \min\|w\|_2 - 1$ (at margin 1)")
    axes.legend(loc="center left", bbox_to_anchor=(1.02, 0.5))
    return picture
