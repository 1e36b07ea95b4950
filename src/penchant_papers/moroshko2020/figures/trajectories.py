"""Trajectories of directions on three points, and the points with which they are compared."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from penchant import Classification
from penchant.lab import Array, Dataset, Sizes, sized
from penchant.measures import angles
from penchant.problems import three_points
from penchant.regularizers import Lp
from penchant.solvers import l1_ends, max_margin_path, ratchet_path, stationary_points
from penchant_papers.moroshko2020.stopping import follow, max_margin_of

BEGIN = 1e-3  # a trajectory is drawn from this part of the scale at which its direction first moves
DIRECTION = ("azimuth", "pitch")
SPREAD = 33  # points along the set of l1 predictors
Cell = tuple[Callable[..., Any], Mapping[str, Any]]  # a function and the axes of its arrays


def rising_margins(depth: int, alpha: float, *, points: int, end: float, least_end: float) -> Array:
    """Smoothed margins from where no direction has moved yet up to `end` times alpha^depth.

    Small starts continue to `least_end`: their samples become unequal only at margins near 1.
    """
    scale = alpha**depth
    return np.geomspace(BEGIN * min(1.0, scale), max(scale * end, least_end), points)


def cell(
    curve_set: str,
    alpha: float,
    *,
    depth: int,
    marks: Sequence[float],
    powers: Sequence[float],
    points: int,
    end: float,
    least_end: float,
    rtol: float,
) -> dict[str, Any]:
    """One trajectory: evenly in the logarithm of the smoothed margin, at the marks and powers.

    `azimuth` and `pitch` are those of its end; `separating` is the least smallest margin over the
    norm of the predictor.
    """
    evenly = rising_margins(depth, alpha, points=points, end=end, least_end=least_end)
    return trajectory(three_points(curve_set), alpha, depth, evenly, marks, powers, rtol)


def trajectory(
    problem: Classification,
    alpha: float,
    depth: int,
    evenly: Array,
    marks: Sequence[float],
    powers: Sequence[float] = (),
    rtol: float = 1e-6,
) -> dict[str, Any]:
    """The same for any points of three features, at these smoothed margins."""
    cross = alpha**depth / np.array(marks)
    tens = 10.0 ** np.array(powers, dtype=float)
    wanted = np.concatenate([evenly, cross, tens])
    inside = np.unique(wanted[(wanted >= evenly[0]) & (wanted <= evenly[-1])])
    beta = follow(problem, depth, alpha, inside, rtol).predictor.values
    reached = angles(beta)

    def at(margins: Array) -> Array:
        rows = np.full((len(margins), 2), np.nan)
        for row, margin in enumerate(margins):
            if inside[0] <= margin <= inside[-1]:
                rows[row] = reached[np.searchsorted(inside, margin)]
        return rows

    azimuth, pitch = at(evenly).T
    smallest = (beta @ problem.signed_rows.T).min(axis=1) / np.linalg.norm(beta, axis=1)
    return {
        "trajectory_smoothed_margin": evenly,
        "trajectory_azimuth": azimuth,
        "trajectory_pitch": pitch,
        "azimuth": float(azimuth[-1]),
        "pitch": float(pitch[-1]),
        "separating": float(smallest.min()),
        "cross": at(cross),
        "at_power": at(tens),
    }


DIMS = {"cross": ["mark", "angle"], "at_power": ["power", "angle"]} | {
    f"trajectory_{name}": ["time"] for name in ("smoothed_margin", "azimuth", "pitch")
}
LABELS = {
    "curve_set": "three constructed points, by the panel that shows them",
    "alpha": r"initial scale $\alpha$",
    "azimuth": "azimuth of the predictor at the end, in degrees",
    "pitch": "pitch of the predictor at the end, in degrees",
    "separating": "lowest smallest margin during training, over the norm of the predictor",
    "trajectory_smoothed_margin": r"smoothed margin $\log(1/\mathrm{loss})$",
    "trajectory_azimuth": "azimuth of the predictor, in degrees",
    "trajectory_pitch": "pitch of the predictor, in degrees",
    "cross": r"azimuth and pitch where $\alpha^D$ over the smoothed margin is one of the marks",
    "at_power": "azimuth and pitch where the smoothed margin is a power of ten",
}


def landmarks(
    curve_set: str, *, depth: int, log10_mus: Sequence[float], q_points: int, marks: Sequence[float]
) -> dict[str, Any]:
    """Directions in degrees: start, l2, l1 set, Q path, its changes of support, the flow's limit.

    From depth 3 on also the stationary points of the l_{2/depth} margin, which a flow may end in.
    """
    high, low = log10_mus
    return landmarks_of(three_points(curve_set), depth, np.logspace(high, low, q_points), marks)


def landmarks_of(
    problem: Classification, depth: int, mus: Array, marks: Sequence[float]
) -> dict[str, Any]:
    """The same for any points of three features, with the $Q$ path at these mus."""
    X, y = problem.X, problem.y
    path = max_margin_path(X, y, depth, mus=mus)
    changes = sorted({change.mu for change in path.changes}, reverse=True)
    kinks = max_margin_path(X, y, depth, mus=changes).beta if changes else np.empty((0, 3))
    points = {
        "start": problem.signed_rows.mean(axis=0),
        "l2": max_margin_of(problem, "l2"),
        "l1": np.linspace(*l1_ends(problem.signed_rows), SPREAD),
        "q_path": path.beta,
        "q_mark": max_margin_path(X, y, depth, mus=marks).beta,
        "q_change": kinks,
        "limit": ratchet_path(X, y, depth, mus=mus).beta,
        "limit_mark": ratchet_path(X, y, depth, mus=marks).beta,
        "stationary": stationary(problem, depth),
    }
    degrees = {name: angles(beta) for name, beta in points.items()}
    return {**degrees, "change_mu": np.array(changes), "rows": problem.signed_rows}


LANDMARK_DIMS = {
    "start": ["angle"],
    "l2": ["angle"],
    "l1": ["spread", "angle"],
    "q_path": ["mu", "angle"],
    "q_mark": ["mark", "angle"],
    "q_change": ["change", "angle"],
    "limit": ["mu", "angle"],
    "limit_mark": ["mark", "angle"],
    "stationary": ["place", "angle"],
    "change_mu": ["change"],
    "rows": ["sample", "feature"],
}


@functools.lru_cache(maxsize=8)
def stationary(problem: Classification, depth: int) -> Array:
    """The predictors of margin 1 that are stationary for the l_{2/depth} quasi-norm, best first."""
    if depth == 2:  # the norm is l1, and its minimisers are the l1 set
        return np.empty((0, problem.dimension))
    minima = stationary_points(problem.X, problem.y, Lp(2 / depth))
    return np.array([point.beta for point in minima])


def apart(one: Any, other: Any) -> Array:
    """Degrees between directions given as azimuth and pitch along the last axis."""
    first, second = (np.moveaxis(np.radians(np.asarray(a, float)), -1, 0) for a in (one, other))
    across = np.cos(first[1]) * np.cos(second[1]) * np.sin((first[0] - second[0]) / 2) ** 2
    half = np.sqrt(np.sin((first[1] - second[1]) / 2) ** 2 + across)
    return np.asarray(np.degrees(2 * np.arcsin(np.minimum(half, 1.0))))


def line_of(curves: Dataset, pair: tuple[str, str] = DIRECTION) -> Array:
    """Azimuth and pitch, or another pair, along trajectories, in the last axis."""
    return np.stack([curves[f"trajectory_{name}"] for name in pair], axis=-1)


def lines_on(dataset: Dataset, name: str, pair: tuple[str, str] = DIRECTION) -> dict[float, Array]:
    """The same for every alpha on one set."""
    lines = line_of(dataset.sel(curve_set=name), pair)
    return dict(zip(dataset.alpha.values.tolist(), lines, strict=True))


def studies(
    name: str,
    sets: Sequence[str],
    alphas: Sequence[float],
    tiny: Sequence[float],
    *,
    shared: Mapping[str, Any],
    own: Mapping[str, Any],
    flow: Cell = (cell, DIMS),
    landmark: Cell = (landmarks, LANDMARK_DIMS),
    **words: Any,
) -> tuple[Sizes, Sizes]:
    """The trajectories from every alpha on every set, and the landmarks of the sets.

    `shared` are arguments of the cells of both, `own` those of the trajectories; `words` are said
    of the trajectories.
    """
    look = {"labels": LABELS, "draw": {"x": "alpha", "colour": "azimuth", "log": False}}
    longer = {key: 100 * own[key] for key in ("end", "least_end")}
    flows = sized(
        name,
        function=flow[0],
        arguments={**shared, **own, "rtol": 1e-6},
        grid={"curve_set": list(sets), "alpha": list(alphas)},
        dims=flow[1],
        tiny={"arguments": {"points": 40}, "grid": {"alpha": list(tiny)}},
        printed={"arguments": {"points": 400, **longer, "rtol": 1e-10}},
        **{**look, **words},
    )
    marked = sized(
        f"{name}-landmarks",
        function=landmark[0],
        arguments={**shared, "log10_mus": [4.0, -8.0], "q_points": 61},
        grid={"curve_set": list(sets)},
        dims=landmark[1],
        tiny={"arguments": {"log10_mus": [2.0, -7.0], "q_points": 25}},
        printed={"arguments": {"log10_mus": [6.0, -10.0], "q_points": 321}},
    )
    return flows, marked
