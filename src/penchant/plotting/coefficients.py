"""Coefficients as points on stems, of one predictor or of several beside each other."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from penchant.arguments import Array
from penchant.mathematics import escape
from penchant.plotting.style import CYCLE
from penchant.results import RESULT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAMED = 24  # points that are written with their names; of more the largest are drawn
BESIDE = 40  # points up to which series stand beside each other
MARKERS = "osD^v"


def dataset_of_estimator(estimator: Any) -> Any:
    """The coefficients of a fitted linear estimator with the names of its columns, or nothing."""
    import xarray

    coefficients = np.squeeze(getattr(estimator, "coef_", np.zeros((0, 0))))
    if coefficients.ndim != 1 or coefficients.dtype.kind not in "iuf":
        return None
    meaning = {"long_name": "coefficients of the predictor"}
    names = getattr(estimator, "feature_names_in_", range(len(coefficients)))
    coordinates = {"feature": ("feature", list(names), {"long_name": "feature"})}
    variables = {"beta": ("feature", coefficients, meaning)}
    return xarray.Dataset(variables, coordinates, {RESULT: "Solution"})


def draw_points(
    axes: Axes, series: Mapping[str, Array], at: Array, names: Sequence[str], what: str
) -> None:
    """Stems of every series; `names` are those of the places `at`, empty if they have none.

    Of more than NAMED places with names those of the largest values are drawn, largest first.
    """
    places, label = np.arange(len(at)), what
    if len(names) > NAMED:
        size = np.max([np.abs(np.nan_to_num(values)) for values in series.values()], axis=0)
        places = np.argsort(-size, kind="stable")[:NAMED]
        label = f"{what} (the {NAMED} largest of {len(names)})"
    at = np.arange(len(places), dtype=float) if len(names) else at
    shift = 0.6 / len(series) if len(places) <= BESIDE else 0.0
    looks = zip(itertools.cycle(CYCLE), itertools.cycle(MARKERS), strict=False)
    for k, ((text, values), (colour, marker)) in enumerate(
        zip(series.items(), looks, strict=False)
    ):
        x, heights = at + shift * (k - (len(series) - 1) / 2), values[places].astype(float)
        axes.vlines(x, np.minimum(heights, 0), np.maximum(heights, 0), color=colour, lw=0.9)
        look: dict[str, Any] = {"color": colour, "markersize": 4.0 if shift else 6.0 - 2 * (k > 0)}
        look |= {} if shift or k or len(series) == 1 else {"markerfacecolor": "white"}
        axes.plot(x, heights, marker, label=text or None, **look)
    axes.set_xlabel(label)
    if len(names):
        written = [escape(names[place]) for place in places.tolist()]
        axes.set_xticks(at, written, rotation=90, fontsize="small")
        axes.grid(False, axis="x")
