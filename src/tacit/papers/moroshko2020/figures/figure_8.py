"""Figure 8: in ten dimensions, which local l_{2/3} max margin a depth-3 net ends at."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.evidence.evidence import Evidence, at_least, at_most, within
from tacit.lazy import Axes, Dataset, Figure
from tacit.measures.directions import angle
from tacit.papers.experiment import Experiment
from tacit.papers.moroshko2020.figures.excess import PAIR, SEEDS, draw_excess, studies
from tacit.papers.moroshko2020.figures.trajectories import lines_on
from tacit.plotting import plane
from tacit.plotting.style import sheet_of
from tacit.plotting.transition import LEGEND

TITLE = "In ten dimensions the start decides among local ℓ₂/₃ margins, unless the data are sparse"
study, landmarks = studies(
    "M-F8",
    list(SEEDS),
    [0.1, 0.3, 0.5, 1.0, 2.0, 10.0],
    [0.1, 10.0],
    title=TITLE,
    orders=(2 / 3, 2.0),
    depth=3,
    own={"points": 120, "end": 1e7, "least_end": 1e5},
    draw={"x": "alpha", "colour": "excess"},
)


def nearest(ends: Array, minima: Array) -> tuple[Array, Any]:
    """Degrees from each end to the nearest of the minima, and its number."""
    away = np.array([[float(angle(end, point)) for point in minima] for end in ends])
    return away.min(axis=1), away.argmin(axis=1)


def check(dataset: Dataset, landmarks: Dataset) -> Evidence:
    """Where the ends are among the stationary points, on random and on sparse data."""
    data = dataset.sortby("alpha")
    ends = {name: data.predictor.sel(curve_set=name).values for name in SEEDS}
    minima = {name: landmarks.minimum.sel(curve_set=name).dropna("place").values for name in SEEDS}
    l1 = {name: landmarks.l1_point.sel(curve_set=name).values for name in SEEDS}
    at = {name: nearest(ends[name], minima[name]) for name in SEEDS}
    stay = within(max(away.max() for away, _ in at.values()), tolerance=1.0)
    chosen = at_least(len(set(at["uniform"][1].tolist())), 2)
    best = within(
        max(float(angle(end, minima["spiked"][0])) for end in ends["spiked"]), tolerance=1.0
    )
    same = within(angle(l1["spiked"], minima["spiked"][0]), tolerance=1e-4)
    spread = [float(angle(l1["uniform"], end)) for end in ends["uniform"]]
    close = at_most(spread[-1] / spread[0], 0.5)
    l2_away = landmarks.sel(curve_set="spiked")
    counts = {name: len(points) for name, points in minima.items()}
    return Evidence(
        ran=f"exact flows of depth 3 from {data.sizes['alpha']} alphas on 10 points with entries"
        " U(0, 1) and on 4 sparse points in ten dimensions, to log(1/loss) = 1e7 alpha³ or beyond;"
        f" {counts['uniform']} and {counts['spiked']} local minima of the l_{{2/3}} margin found"
        " from many starts",
        checks={
            "both: largest angle of an end to a local minimum of l_{2/3}, degrees": stay,
            "(a) random data: number of different minima reached": chosen,
            "(b) sparse data: largest angle of an end to the global minimum, degrees": best,
            "(b) sparse data: angle between the l1 and the l_{2/3} max margin, degrees": same,
            "(a) random data: angle of the end to l1, largest start over smallest": close,
        },
        premises={
            "there are many local minima": (
                min(counts.values()) > 5,
                f"{counts['uniform']} and {counts['spiked']}",
            )
        },
        controls={
            "the l1 max margin of the random data as an endpoint": stay.control(
                nearest(l1["uniform"][None], minima["uniform"])[0][0]
            ),
            "sparse data: number of different minima reached": chosen.control(
                len(set(at["spiked"][1].tolist()))
            ),
            "the second best local minimum on sparse data": best.control(
                angle(minima["spiked"][1], minima["spiked"][0])
            ),
            "random data: angle between the l1 and the l_{2/3} max margin": same.control(
                angle(l1["uniform"], minima["uniform"][0])
            ),
        },
        findings=[
            "(a): excess l_{2/3} quasi-norm of the endpoints, from the smallest start to the"
            " largest: "
            + ", ".join(f"{float(v):.3f}" for v in data.excess.sel(curve_set="uniform"))
            + "; degrees from l1: "
            + ", ".join(f"{value:.1f}" for value in spread)
            + f"; (b): the l2 max margin has excess {float(l2_away.l2[0]):.2f}",
        ],
    )


def draw(dataset: Dataset, landmarks: Dataset) -> Figure:
    """The plane of excess norms for random data, for sparse data, and a closer look at these."""
    picture, (a, b, c) = sheet_of(dataset, widths=(5.5, 5.5, 5.5), height=5.0)
    colours = plane.shades(dataset.alpha.values.tolist())
    for axes, name, near, text in (
        (a, "uniform", 12, "(a) random data: each start ends at its own minimum"),
        (b, "spiked", 8, "(b) sparse data: all end at the global minimum"),
        (c, "spiked", 0, r"(c) detail of (b): along the $Q_\mu$ path"),
    ):
        lines, row = lines_on(dataset, name, PAIR), landmarks.sel(curve_set=name)
        draw_excess(axes, lines, row, colours)
        _view(axes, np.vstack(list(lines.values())), row, text, near)
        axes.set(xlabel=r"excess $\ell_{2/3}$ quasi-norm", ylabel=r"excess $\ell_2$ norm")
    plane.key(c, colours, cross="", marks="", deeper=r"$\ell_{2/3}$", end="end of a flow")
    c.legend(**LEGEND)
    return picture


def _view(axes: Axes, curves: Array, row: Dataset, title: str, near: int) -> None:
    """Limits around the trajectories and the `near` next local minima, and how many those hold."""
    places = row.stationary.dropna("place").values
    shown = places[np.argsort(places.sum(axis=1))][:near]
    high = 1.05 * np.nanmax(np.vstack([curves, shown]), axis=0)
    axes.set(xlim=(-0.05 * high[0], high[0]), ylim=(-0.05 * high[1], high[1]))
    inside = int((places <= high).all(axis=1).sum())
    axes.set_title(f"{title}\n{inside} of the {len(places)} local minima found are in view")


experiment = Experiment(
    "M-F8",
    statement="On random data in ten dimensions training a depth-3 net ends at different local"
    " minima of the l_{2/3} margin problem, near l1 from a large start; on sparse data"
    " training from every start ends at the global minimum, which is the l1 max margin.",
    place="appendix H.3, Figure 8",
    study=(study, landmarks),
    check=check,
    draw=draw,
    title=TITLE,
    ours="the seeds of the points and the values of alpha. The quasi-norm is"
    " (sum |w_i|^2/3)^3/2, taken of the predictor divided by its margin; stationary points are"
    " those found from many starts",
    seconds=2,
)
