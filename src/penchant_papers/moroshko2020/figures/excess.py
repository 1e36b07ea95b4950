"""How far a predictor exceeds the least norm at its margin, in one norm against another."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from penchant import L1, L2, Classification
from penchant.lab import Array, Axes, Dataset, Sizes
from penchant.measures import excess_norm, least_norm
from penchant.plotting import plane
from penchant.problems import spiked_points, three_points, uniform_points
from penchant.regularizers import Lp
from penchant.solvers import max_margin_path
from penchant_papers.moroshko2020.figures import trajectories
from penchant_papers.moroshko2020.figures.trajectories import l1_ends, rising_margins, stationary
from penchant_papers.moroshko2020.stopping import follow, max_margin_of

PAIR = ("excess", "excess_l2")
TEN = {"uniform": uniform_points, "spiked": spiked_points}  # points in ten dimensions


def norm_of(order: float) -> L1 | L2 | Lp:
    """The norm of this order."""
    if order in (1.0, 2.0):
        return L1() if order == 1.0 else L2()
    return Lp(order)


@functools.lru_cache(maxsize=8)
def points_named(name: str, seed: int) -> Classification:
    """Three points of a panel, or points in ten dimensions with entries "uniform" or "spiked"."""
    return TEN[name](seed=seed) if name in TEN else three_points(name)


@functools.lru_cache(maxsize=8)
def least_norms(name: str, seed: int, orders: tuple[float, ...]) -> tuple[float, ...]:
    """The least norms of these orders at margin 1; those below 1 take longer than a run."""
    return tuple(least_norm(points_named(name, seed), norm_of(p)) for p in orders)


def excesses(
    name: str, seed: int, beta: Array, orders: Sequence[float], margin: Array | None = None
) -> Array:
    """The relative excess of predictors in every norm, along a new last axis.

    A path holds its margins to more digits than its predictors give.
    """
    problem, least = points_named(name, seed), least_norms(name, seed, tuple(orders))
    pairs = [(norm_of(p), value) for p, value in zip(orders, least, strict=True)]
    return np.stack(
        [excess_norm(problem, beta, norm, margin=margin, least=value) for norm, value in pairs],
        axis=-1,
    )


def cell(
    curve_set: str,
    alpha: float,
    *,
    depth: int,
    points: int,
    end: float,
    least_end: float,
    rtol: float,
    orders: list[float],
    seed: int,
) -> dict[str, Any]:
    """One trajectory as pairs of excess norms; `excess` and `excess_l2` are those of its end."""
    margins = rising_margins(depth, alpha, points=points, end=end, least_end=least_end)
    path = follow(points_named(curve_set, seed), depth, alpha, margins, rtol)
    beta, margin = path.predictor.values, path.margin.values
    first, second = excesses(curve_set, seed, beta, orders, margin).T
    return {
        "trajectory_smoothed_margin": margins,
        "trajectory_excess": first,
        "trajectory_excess_l2": second,
        "excess": float(first[-1]),
        "excess_l2": float(second[-1]),
        "predictor": beta[-1] / margin[-1],
    }


def landmarks(
    curve_set: str,
    *,
    depth: int,
    log10_mus: list[float],
    q_points: int,
    orders: list[float],
    seed: int,
) -> dict[str, Any]:
    """The excess norms of the Q path, the start, the max margins and the stationary points.

    `minimum` holds the stationary points themselves and `l1_point` the middle of the l1 set.
    """
    problem, (high, low) = points_named(curve_set, seed), log10_mus
    mus = np.logspace(high, low, q_points)
    spread, minima = np.linspace(*l1_ends(problem.signed_rows), 9), stationary(problem, depth)
    places = {
        "q_path": max_margin_path(problem.X, problem.y, depth, mus=mus).beta,
        "start": problem.signed_rows.mean(axis=0),
        "l2": max_margin_of(problem, "l2"),
        "l1": spread,
        "stationary": minima,
    }
    norms = {name: excesses(curve_set, seed, beta, orders) for name, beta in places.items()}
    least = least_norms(curve_set, seed, tuple(orders))
    return {**norms, "least": least, "minimum": minima, "l1_point": spread[4]}


DIMS = {"predictor": ["feature"]} | {
    f"trajectory_{name}": ["time"] for name in ("smoothed_margin", *PAIR)
}
LANDMARK_DIMS = {
    "q_path": ["mu", "norm"],
    "start": ["norm"],
    "l2": ["norm"],
    "l1": ["spread", "norm"],
    "stationary": ["place", "norm"],
    "least": ["norm"],
    "minimum": ["place", "feature"],
    "l1_point": ["feature"],
}


def studies(*given: Any, orders: Sequence[float], depth: int, **words: Any) -> tuple[Sizes, Sizes]:
    """Trajectories as pairs of excess norms, and the landmarks of the sets."""
    order = r"$\ell_1$ norm" if orders[0] == 1 else r"$\ell_{2/3}$ quasi-norm"
    excess, excess_l2 = (
        f"{norm} of $w$ / margin over the least one, minus 1" for norm in (order, r"$\ell_2$ norm")
    )
    labels = {
        "curve_set": "points",
        "alpha": r"initial scale $\alpha$",
        "excess": f"{excess}, at the end",
        "excess_l2": f"{excess_l2}, at the end",
        "predictor": "predictor at the end, of margin 1",
        "trajectory_smoothed_margin": r"smoothed margin $\log(1/\mathrm{loss})$",
        "trajectory_excess": excess,
        "trajectory_excess_l2": excess_l2,
    }
    shared = {"depth": depth, "orders": list(orders), "seed": 0}
    return trajectories.studies(
        *given,
        shared=shared,
        flow=(cell, DIMS),
        landmark=(landmarks, LANDMARK_DIMS),
        labels=labels,
        **words,
    )


def draw_excess(
    axes: Axes, lines: Mapping[float, Array], row: Dataset, colours: Mapping[float, Any]
) -> None:
    """One set of data in the plane of excess norms; dots where the trajectories end."""
    plane.draw_curves(axes, lines, colours)
    for alpha, line in lines.items():
        axes.plot(*line[-1], **{**plane.END, "color": colours[alpha]})
    axes.plot(*row.q_path.values.T, **plane.Q_PATH)
    if np.ptp(row.l1.values, axis=0).max() < 1e-6:
        axes.plot(*row.l1.values[0], **plane.STAR)
    else:
        axes.plot(*row.l1.values.T, **plane.EDGE)
    axes.plot(*row.start.values, **plane.START)
    axes.plot(*row.l2.values, **plane.CIRCLE)
    places = row.stationary.dropna("place").values
    axes.plot(*places[1:].T, **plane.LOCAL)
    axes.plot(*places[:1].T, **plane.TRIANGLE)
