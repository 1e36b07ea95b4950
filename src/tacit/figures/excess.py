"""How far a predictor exceeds the least norm at its margin, in one norm against another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arguments import Array
from tacit.figures.landmarks import l1_ends, stationary
from tacit.figures.registry import Parameters
from tacit.figures.trajectories import follow, rising_margins
from tacit.plotting import plane

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes

    from tacit.problems.classification import Classification

Norms = tuple[float, float]  # the orders p of the horizontal and the vertical axis

FOLLOWED = ("depth", "points", "end", "least_end", "rtol")
TEXTS = {
    "curve": "number of the trajectory",
    "curve_set": "data that the trajectory is trained on",
    "set": "name of the data",
    "alpha": "scale of the initialization",
    "norm": "order p of the (quasi-)norm (sum |w_i|^p)^(1/p)",
    "smoothed_margin": "smoothed margin log(1/loss)",
    "trajectory": "excess norms of the predictor",
    "mu": "mu = alpha^D / smoothed margin",
    "q_path": "excess norms of the Q_mu max margin",
    "start": "excess norms of the mean of y_n x_n",
    "l2": "excess norms of the l2 max margin",
    "l1": "excess norms of the l1 max margins, from one end of the set to the other",
    "stationary": "excess norms of the stationary points of the l_{2/D} max margin, best first",
    "place": "number of the stationary point",
    "least": "least norm of a predictor of margin 1",
}


def norm(beta: Array, p: float) -> Array:
    """(sum |beta_i|^p)^(1/p) along the last axis; for p < 1 a quasi-norm of degree one."""
    size = np.abs(beta)
    largest = size.max(axis=-1, keepdims=True)
    return largest[..., 0] * ((size / largest) ** p).sum(axis=-1) ** (1 / p)


def least_norm(problem: Classification, p: float) -> float:
    """The least l_p norm of a predictor of margin 1; for p < 1 the least that was found."""
    from tacit.regularizers.norms import L1, L2
    from tacit.solvers.max_margin import max_margin

    if p < 1:
        best = stationary(problem, round(2 / p))[0]
    else:
        best = max_margin(problem.X, problem.y, L1() if p == 1 else L2()).beta
    return float(norm(best, p))


def relative_excess(beta: Array, margin: Array, p: float, least: float) -> Array:
    """|beta/margin|_p / least - 1: zero at the max margin of l_p, NaN where a margin is not > 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(margin > 0, norm(beta, p) / (margin * least) - 1, np.nan)


def excess_plane(
    problems: dict[str, Classification],
    norms: Norms,
    parameters: Parameters,
    progress: Callable[[int, int], None] | None = None,
) -> xarray.Dataset:
    """Trajectories of several alphas and their landmarks, all as pairs of excess norms."""
    import xarray

    jobs = [(name, alpha) for name in problems for alpha in parameters["alphas"][name]]
    least = {name: [least_norm(problem, p) for p in norms] for name, problem in problems.items()}
    depth, curves = parameters["depth"], []
    for name, alpha in jobs:
        found = excess_curve(problems[name], alpha, norms, least[name], parameters)
        both = np.stack([found["trajectory_excess"], found["trajectory_excess_l2"]], axis=-1)
        margins = found["trajectory_smoothed_margin"]
        variables = {"smoothed_margin": ("point", margins), "trajectory": (("point", "norm"), both)}
        curves.append(xarray.Dataset(variables))
        if progress:
            progress(len(curves), len(jobs))
    high, low = parameters["log10_mus"]
    mus = np.logspace(high, low, parameters["q_points"])
    sets = [_landmarks(problems[name], depth, mus, norms, least[name]) for name in problems]
    dataset = xarray.merge(
        [xarray.concat(curves, "curve"), xarray.concat(sets, "set", join="outer")]
    ).assign_coords(
        curve=range(len(jobs)),
        set=list(problems),
        mu=mus,
        norm=list(norms),
        alpha=("curve", [alpha for _, alpha in jobs]),
        curve_set=("curve", [name for name, _ in jobs]),
    )
    dataset = dataset.drop_dims([dim for dim, size in dataset.sizes.items() if size == 0])
    for key, variable in dataset.variables.items():
        variable.attrs.update(long_name=TEXTS[str(key)], units="1")
    return dataset


def excess_curve(
    problem: Classification,
    alpha: float,
    norms: Norms,
    least: Sequence[float],
    parameters: Parameters,
) -> dict[str, Any]:
    """One trajectory as pairs of excess norms; `excess` and `excess_l2` are those of its end."""
    depth, rtol = parameters["depth"], parameters["rtol"]
    margins = rising_margins(depth, alpha, parameters)
    path = follow(problem, depth, alpha, margins, rtol)
    first, second = _both(path.predictor.values, path.margin.values, norms, least).T
    return {
        "trajectory_smoothed_margin": margins,
        "trajectory_excess": first,
        "trajectory_excess_l2": second,
        "excess": float(first[-1]),
        "excess_l2": float(second[-1]),
    }


def _both(beta: Array, margin: Array, norms: Norms, least: Sequence[float]) -> Array:
    return np.stack(
        [relative_excess(beta, margin, *pair) for pair in zip(norms, least, strict=True)], axis=-1
    )


def _landmarks(
    problem: Classification, depth: int, mus: Array, norms: Norms, least: Sequence[float]
) -> xarray.Dataset:
    """The Q path, the l2 and l1 max margins and the stationary points of one set of data."""
    import xarray

    from tacit.regularizers.norms import L2
    from tacit.solvers.margins.path import max_margin_path
    from tacit.solvers.max_margin import max_margin

    points = {
        "q_path": ("mu", max_margin_path(problem.X, problem.y, depth, mus=mus).beta),
        "start": (None, problem.signed_rows.mean(axis=0)),
        "l2": (None, max_margin(problem.X, problem.y, L2()).beta),
        "l1": ("spread", np.linspace(*l1_ends(problem.signed_rows), 9)),
        "stationary": ("place", stationary(problem, depth)),
    }
    variables: dict[str, Any] = {"least": ("norm", np.array(least))}
    for name, (dim, beta) in points.items():
        both = _both(beta, (beta @ problem.signed_rows.T).min(axis=-1), norms, least)
        variables[name] = ((*([dim] if dim else []), "norm"), both)
    dataset = xarray.Dataset(variables)
    return dataset.assign_coords(place=range(dataset.sizes["place"]))


def draw_excess(axes: Axes, dataset: xarray.Dataset, name: str, colours: dict[float, Any]) -> None:
    """One set of data in the plane of excess norms; dots where the trajectories end."""
    curves, row = plane.curves_of(dataset, name), dataset.sel(set=name)
    for alpha, curve in zip(curves.alpha.values, curves.trajectory.values, strict=True):
        axes.plot(*curve.T, color=colours[float(alpha)], zorder=3)
        axes.plot(*curve[-1], **{**plane.END, "color": colours[float(alpha)]})
    axes.plot(*row.q_path.values.T, **plane.Q_PATH)
    if np.ptp(row.l1.values, axis=0).max() < 1e-6:
        axes.plot(*row.l1.values[0], **plane.STAR)
    else:
        axes.plot(*row.l1.values.T, **plane.EDGE)
    axes.plot(*row.start.values, **plane.START)
    axes.plot(*row.l2.values, **plane.CIRCLE)
    if "stationary" in row:
        axes.plot(*row.stationary.values[1:].T, **plane.LOCAL)
        axes.plot(*row.stationary.values[0], **plane.TRIANGLE)
