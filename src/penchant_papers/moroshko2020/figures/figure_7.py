"""Figure 7: which of many l1 max margins training ends at, seen by its l2 norm."""

from __future__ import annotations

import numpy as np

from penchant.lab import Dataset, Evidence, Experiment, Figure, within
from penchant.plotting import BLACK, plane, sheet_of
from penchant_papers.moroshko2020.figures.excess import PAIR, draw_excess, studies
from penchant_papers.moroshko2020.figures.trajectories import lines_on

SET = "3c"
TITLE = "Of many ℓ₁ margins, large starts choose the least ℓ₂ norm and small starts the largest"
study, landmarks = studies(
    "M-F7",
    [SET],
    [0.001, 0.1, 0.3, 0.5, 1.0, 3.0, 100.0],
    [0.001, 1.0, 100.0],
    title=TITLE,
    orders=(1.0, 2.0),
    depth=2,
    own={"points": 120, "end": 1e7, "least_end": 1e4},
    draw={"x": "alpha", "colour": "excess_l2"},
)


def check(dataset: Dataset, landmarks: Dataset) -> Evidence:
    """The l2 norms of the ends against the least and the largest over all l1 max margins."""
    ends, row = dataset.sel(curve_set=SET).sortby("alpha"), landmarks.sel(curve_set=SET)
    small, large = float(ends.excess_l2[0]), float(ends.excess_l2[-1])
    # the l2 norm is convex, so largest at an end of the edge, least at the foot of the origin
    first, last = row.l1.values[[0, -1], 1]
    largest, least = max(first, last), float(least_on_edge(row))
    between = float(ends.excess_l2.sel(alpha=1.0))
    l1 = within(np.abs(ends.excess).max(), tolerance=2e-3)
    low = within(large, least, 2e-3)
    high = within(small, largest, 2e-3)
    return Evidence(
        ran=f"exact flows of depth 2 from {ends.sizes['alpha']} alphas on three points whose l1 max"
        " margins are an edge, to log(1/loss) = 1e7 alpha² or beyond",
        checks={
            "largest excess l1 norm of an endpoint": l1,
            "alpha = 100: excess l2 norm of the endpoint": low,
            "alpha = 0.001: excess l2 norm of the endpoint": high,
        },
        premises={
            "l1 max margins differ in their l2 norm": (largest - least > 0.1, largest - least)
        },
        controls={
            "the l2 max margin itself: its excess l1 norm": l1.control(row.l2[0]),
            "the other end of the edge for small starts": high.control(min(first, last)),
            "the endpoint from alpha = 1 in place of that of large starts": low.control(between),
            "the endpoint from alpha = 1 in place of that of small starts": high.control(between),
        },
        findings=[
            "excess l2 norms of the endpoints: "
            + ", ".join(
                f"{float(value):.4f} (alpha = {alpha:g})"
                for alpha, value in zip(ends.alpha.values, ends.excess_l2.values, strict=True)
            )
            + f"; the edge has {least:.4f} to {largest:.4f}"
        ],
    )


def least_on_edge(row: Dataset) -> float:
    """The least excess l2 norm over the edge: squares of norms along it are a parabola."""
    share = np.linspace(0, 1, row.sizes["spread"])
    a, b, c = np.polyfit(share, (row.l1.values[:, 1] + 1) ** 2, 2)
    place = np.clip(-b / (2 * a), 0, 1)
    return float(np.sqrt(a * place**2 + b * place + c) - 1)


def draw(dataset: Dataset, landmarks: Dataset) -> Figure:
    """The plane of excess norms, in which every l1 max margin is on the left edge."""
    picture, (axes,) = sheet_of(dataset, widths=(9.2,), height=5.6)
    colours, lines = plane.shades(dataset.alpha.values.tolist()), lines_on(dataset, SET, PAIR)
    draw_excess(axes, lines, landmarks.sel(curve_set=SET), colours)
    plane.key(axes, colours, cross="", marks="", l1="", edge=r"all $\ell_1$ max margins")
    for alpha, text, lift in (
        (max(lines), r"large $\alpha$: least $\ell_2$ norm", -26),
        (min(lines), r"small $\alpha$: largest $\ell_2$ norm", 4),
    ):
        plane.label_point(axes, lines[alpha][-1], text, BLACK, xytext=(14, lift))
    axes.set(xlabel=r"excess $\ell_1$ norm, $\|w\|_1 / \min\|w\|_1 - 1$ (at margin 1)")
    axes.set(ylabel=r"excess $\ell_2$ norm, $\|w\|_2 / \min\|w\|_2 - 1$ (at margin 1)")
    axes.legend(loc="center left", bbox_to_anchor=(1.02, 0.5))
    return picture


experiment = Experiment(
    "M-F7",
    statement="On points with many l1 max margins, training from a large start ends at the one"
    " with the smallest l2 norm, and training from a small start at the one with the"
    " largest.",
    place="appendix H.2, Figure 7",
    study=(study, landmarks),
    check=check,
    draw=draw,
    title=TITLE,
    ours="the three points (those of Figure 3(c)) and the values of alpha. Every predictor is"
    " divided by its margin before its norms are taken",
)
