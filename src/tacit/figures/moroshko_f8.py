"""M-F8: in ten dimensions, which stationary point of the l_{2/3} margin a depth-3 net ends at."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from tacit.arguments import one_of
from tacit.figures.cells import Values, cell_of
from tacit.figures.excess import FOLLOWED, draw_excess, excess_curve, excess_plane, least_norm
from tacit.figures.registry import Parameters, Progress, figure
from tacit.plotting import plane
from tacit.plotting.style import caption_of, sheet
from tacit.plotting.transition import LEGEND

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tacit.problems.classification import Classification

SETS, NORMS = ("uniform", "spiked"), (2 / 3, 2.0)
ALPHAS = [0.1, 0.3, 0.5, 1.0, 2.0, 10.0]
PRESETS: dict[str, Parameters] = {
    "quick": {
        "depth": 3,
        "alphas": {"uniform": ALPHAS, "spiked": ALPHAS},
        "seeds": [8, 0],
        "points": 120,
        "end": 1e7,
        "least_end": 1e5,
        "log10_mus": [4.0, -8.0],
        "q_points": 121,
        "rtol": 1e-6,
    },
    "paper": {
        "depth": 3,
        "alphas": {"uniform": ALPHAS, "spiked": ALPHAS},
        "seeds": [8, 0],
        "points": 400,
        "end": 1e9,
        "least_end": 1e7,
        "log10_mus": [6.0, -10.0],
        "q_points": 321,
        "rtol": 1e-10,
    },
}


def data(parameters: Parameters, progress: Progress | None = None) -> xarray.Dataset:
    """Excess l_{2/3} and l2 norms along trajectories on two sets of points in R^10."""
    problems = {name: drawn(name, tuple(parameters["seeds"])) for name in SETS}
    return excess_plane(problems, NORMS, parameters, progress)


@functools.lru_cache(maxsize=8)
def drawn(curve_set: str, seeds: tuple[int, int]) -> Classification:
    """The points of a set, drawn with its own one of the two seeds."""
    from tacit.problems.classification import spiked_points, uniform_points

    place = SETS.index(one_of("M-F8", "set", curve_set, SETS))
    return (uniform_points, spiked_points)[place](seed=seeds[place])


@functools.lru_cache(maxsize=8)
def least(curve_set: str, seeds: tuple[int, int]) -> tuple[float, float]:
    """Both least norms at margin 1; the first is searched for, which takes longer than a run."""
    first, second = (least_norm(drawn(curve_set, seeds), p) for p in NORMS)
    return first, second


@cell_of("curve_set", "alpha", "seeds", FOLLOWED)
def cell(parameters: Parameters) -> Values:
    """One trajectory in the plane of excess norms, and where it ends."""
    first, second = parameters["seeds"]
    which = parameters["curve_set"], (first, second)
    return excess_curve(drawn(*which), parameters["alpha"], NORMS, least(*which), parameters)


@figure(
    "M-F8",
    title="Ten dimensions: the start chooses among many local l2/3 margins, unless data are sparse",
    source="Moroshko et al. 2020, appendix H.3, Figure 8",
    data=data,
    presets=PRESETS,
    constructed="the seeds of the points and the values of alpha. The quasi-norm is "
    "(sum |w_i|^2/3)^3/2, taken of the predictor divided by its margin; stationary points are "
    "those found from many starts",
)
def draw(dataset: xarray.Dataset) -> Figure:
    """The plane of excess norms for random data, for sparse data, and a closer look at these."""
    caption = caption_of(dataset.attrs)
    picture, (a, b, c) = sheet(dataset.title, caption, widths=(5.5, 5.5, 5.5), height=5.0)
    colours = plane.shades(dataset.alpha.values.tolist())
    for axes, name, nearest, title in (
        (a, "uniform", 12, "(a) random data: each start has its own minimum"),
        (b, "spiked", 8, "(b) sparse data: all end at the global one"),
        (c, "spiked", 0, r"(c) closer look at (b): along the $Q_\mu$ path"),
    ):
        draw_excess(axes, dataset, name, colours)
        _view(axes, dataset, name, title, nearest)
        axes.set(xlabel=r"excess $\ell_{2/3}$ quasi-norm", ylabel=r"excess $\ell_2$ norm")
    plane.key(c, colours, cross="", marks="", deeper=r"$\ell_{2/3}$", end="end of a flow")
    c.legend(**LEGEND)
    return picture


def _view(axes: Axes, dataset: xarray.Dataset, name: str, title: str, nearest: int) -> None:
    """Limits around the trajectories and the `nearest` local minima, and how many those hold."""
    curves, row = plane.curves_of(dataset, name).trajectory.values, dataset.sel(set=name)
    places = row.stationary.values
    places = places[np.isfinite(places).all(axis=1)]
    shown = places[np.argsort(places.sum(axis=1))][:nearest]
    high = 1.05 * np.nanmax(np.vstack([curves.reshape(-1, 2), shown]), axis=0)
    axes.set(xlim=(-0.05 * high[0], high[0]), ylim=(-0.05 * high[1], high[1]))
    inside = int((places <= high).all(axis=1).sum())
    axes.set_title(f"{title}\n{inside} of the {len(places)} local minima found are in view")
