"""Training trajectories on separable data: predictors at chosen smoothed margins, as directions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arguments import Array
from tacit.figures.landmarks import angles, landmarks
from tacit.figures.registry import Parameters, Progress

if TYPE_CHECKING:
    import xarray

    from tacit.problems.classification import Classification

BEGIN = 1e-3  # a trajectory is drawn from this part of the scale at which its direction first moves

TEXTS = {
    "set": "name of the three constructed points",
    "curve": "number of the trajectory",
    "curve_set": "set of points that the trajectory is trained on",
    "alpha": "scale of the initialization",
    "angle": "azimuth or pitch of a direction",
    "smoothed_margin": "smoothed margin log(1/loss)",
    "trajectory": "direction of the predictor at each smoothed margin",
    "mu": "mu = alpha^D / smoothed margin",
    "mark": "mu of the marked points and cross-lines",
    "cross": "direction of the predictor at smoothed margin alpha^D / mark",
    "power": "smoothed margin of the marks along a trajectory",
    "at_power": "direction of the predictor at each power of ten of the smoothed margin",
    "start": "direction of the mean of y_n x_n",
    "l2": "direction of the l2 max margin",
    "l1": "directions of the l1 max margins, from one end of the set to the other",
    "q_path": "direction of the Q_mu max margin",
    "q_mark": "direction of the Q_mu max margin at the marked mu",
    "q_change": "where the support vectors of the Q_mu max margin change",
    "change_mu": "mu at which the support vectors of the Q_mu max margin change",
    "limit": "limit of the trajectories for alpha to infinity at each mu",
    "limit_mark": "limit of the trajectories for alpha to infinity at the marked mu",
    "stationary": "stationary points of the l_{2/D} max margin, best first",
    "rows": "y_n x_n",
    "change": "number of the change of support vectors",
    "place": "number of the stationary point",
}
DEGREES = {
    "trajectory",
    "cross",
    "at_power",
    "start",
    "l2",
    "l1",
    "q_path",
    "q_mark",
    "q_change",
    "limit",
    "limit_mark",
    "stationary",
}
FOLLOWED = ("depth", "marks", "powers", "points", "end", "least_end", "rtol")


def follow(
    problem: Classification, depth: int, alpha: float, margins: Array, rtol: float
) -> xarray.Dataset:
    """The path of gradient flow at exactly these smoothed margins, which must rise."""
    from tacit.models.diagonal import DiagonalNet
    from tacit.records import NumericalError
    from tacit.training.exact.dual.flow import DualFlow
    from tacit.training.record import At
    from tacit.training.stop import LogLoss
    from tacit.training.train import train

    net, stop = DiagonalNet(depth=depth, alpha=alpha), LogLoss(-float(margins[-1]))
    path = train(net, problem, DualFlow(rtol=rtol), stop=stop, record=At(margins=margins))
    if not path.outcome.ok:
        raise NumericalError(f"flow from alpha = {alpha:g}", path.outcome)
    reached = path.dataset.smoothed_margin.values
    return path.dataset.isel(time=[int(np.abs(reached - margin).argmin()) for margin in margins])


def rising_margins(depth: int, alpha: float, parameters: Parameters) -> Array:
    """Smoothed margins from where no direction has moved yet up to `end` times alpha^depth.

    Small starts go on to `least_end`: there the samples part only at smoothed margins near 1.
    """
    scale, end, least = alpha**depth, parameters["end"], parameters["least_end"]
    return np.geomspace(BEGIN * min(1.0, scale), max(scale * end, least), parameters["points"])


def trajectories(parameters: Parameters, progress: Progress | None = None) -> xarray.Dataset:
    """Trajectories of several alphas on several sets of three points, with their landmarks."""
    import xarray

    from tacit.problems.classification import three_points

    jobs = [(name, alpha) for name, alphas in parameters["alphas"].items() for alpha in alphas]
    curves: list[xarray.Dataset] = []
    given = {name: parameters[name] for name in FOLLOWED}
    for name, alpha in jobs:
        curves.append(_curve(cell(name, alpha, **given)))
        if progress:
            progress(len(curves), len(jobs))
    names, depth = list(parameters["alphas"]), parameters["depth"]
    high, low = parameters["log10_mus"]
    mus, marks = np.logspace(high, low, parameters["q_points"]), parameters["marks"]
    sets = [landmarks(three_points(name), depth, mus, marks) for name in names]
    dataset = xarray.merge(
        [xarray.concat(curves, "curve"), xarray.concat(sets, "set", join="outer")]
    )
    coordinates = {
        "set": names,
        "curve": range(len(jobs)),
        "mu": mus,
        "mark": marks,
        "angle": ["azimuth", "pitch"],
        "power": 10.0 ** np.array(parameters["powers"]),
        "alpha": ("curve", [alpha for _, alpha in jobs]),
        "curve_set": ("curve", [name for name, _ in jobs]),
    }
    dataset = dataset.assign_coords(coordinates)
    return labelled(dataset.drop_dims([dim for dim, size in dataset.sizes.items() if size == 0]))


def _curve(found: Mapping[str, Any]) -> xarray.Dataset:
    import xarray

    angles = np.stack([found["trajectory_azimuth"], found["trajectory_pitch"]], axis=-1)
    variables: dict[str, Any] = {
        "smoothed_margin": ("point", found["trajectory_smoothed_margin"]),
        "trajectory": (("point", "angle"), angles),
        "cross": (("mark", "angle"), found["cross"]),
        "at_power": (("power", "angle"), found["at_power"]),
    }
    return xarray.Dataset(variables)


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

    `azimuth` and `pitch` are those of its end.
    """
    from tacit.problems.classification import three_points

    reach = {"points": points, "end": end, "least_end": least_end}
    evenly = rising_margins(depth, alpha, reach)
    cross = alpha**depth / np.array(marks)
    tens = 10.0 ** np.array(powers, dtype=float)
    wanted = np.concatenate([evenly, cross, tens])
    inside = np.unique(wanted[(wanted >= evenly[0]) & (wanted <= evenly[-1])])
    path = follow(three_points(curve_set), depth, alpha, inside, rtol)
    reached = angles(path.predictor.values)

    def at(margins: Array) -> Array:
        found = np.full((len(margins), 2), np.nan)
        for row, margin in enumerate(margins):
            if inside[0] <= margin <= inside[-1]:
                found[row] = reached[np.searchsorted(inside, margin)]
        return found

    azimuth, pitch = at(evenly).T
    return {
        "trajectory_smoothed_margin": evenly,
        "trajectory_azimuth": azimuth,
        "trajectory_pitch": pitch,
        "azimuth": float(azimuth[-1]),
        "pitch": float(pitch[-1]),
        "cross": at(cross),
        "at_power": at(tens),
    }


def labelled(dataset: xarray.Dataset) -> xarray.Dataset:
    """The dataset with a name and a unit on every variable."""
    for name, variable in dataset.variables.items():
        unit = "degrees" if name in DEGREES else "1"
        variable.attrs.update(long_name=TEXTS[str(name)], units=unit)
    return dataset
