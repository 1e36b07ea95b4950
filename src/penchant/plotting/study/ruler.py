"""An axis of a study as it is drawn: where its values lie and what is written beside them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from penchant.arguments import Array
from penchant.mathematics import escape
from penchant.plotting.study.words import label, number

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes

Kind = Literal["linear", "log", "places"]
FEW = 8  # values up to which every one gets its tick
FAR = 10.0  # ratio of the ends from which two values count as geometric


@dataclasses.dataclass(frozen=True, eq=False)
class Ruler:
    """One axis: `at` are the coordinates of its values; texts lie at 0, 1, 2, ..."""

    name: str
    label: str
    texts: tuple[str, ...]
    at: Array
    kind: Kind
    words: bool

    @property
    def even(self) -> Array:
        """The coordinates in which the axis is drawn without distortion."""
        return np.log(self.at) if self.kind == "log" else self.at

    def uneven(self, even: Array) -> Array:
        return np.exp(even) if self.kind == "log" else even

    @property
    def edges(self) -> Array:
        """The borders between the values, halfway as they are seen."""
        even = self.even
        if len(even) == 1:
            return self.uneven(np.array([even[0] - 0.5, even[0] + 0.5]))
        half = np.diff(even) / 2
        inner = even[:-1] + half
        return self.uneven(np.array([even[0] - half[0], *inner, even[-1] + half[-1]]))

    def put(self, axes: Axes, side: Literal["x", "y"]) -> None:
        """Scale, ticks and label of one side of a panel."""
        axis = axes.xaxis if side == "x" else axes.yaxis
        if self.kind == "log":
            getattr(axes, f"set_{side}scale")("log")
        if self.kind == "places" or (len(self.at) <= FEW and self._well_spaced):
            every = -(-len(self.at) // 16)
            axis.set_ticks(self.at[::every], self.texts[::every])
            axis.set_ticks([], minor=True)
            _turn(axes, side, self.texts[::every])
        getattr(axes, f"set_{side}label")(escape(self.label))

    @property
    def _well_spaced(self) -> bool:
        """Whether no two values are so close that their ticks would touch."""
        steps = np.diff(self.even)
        return not steps.size or bool(steps.min() > 0.5 * steps.mean())


def _turn(axes: Axes, side: str, texts: tuple[str, ...]) -> None:
    """Foreign texts are not read as formulas, and long ones are slanted."""
    ticks = axes.get_xticklabels() if side == "x" else axes.get_yticklabels()
    for tick in ticks:
        tick.set_parse_math(False)
        if side == "x" and sum(map(len, texts)) > 50:
            tick.set(rotation=30, ha="right", rotation_mode="anchor")


def ruler(dataset: xarray.Dataset, name: str) -> Ruler:
    """The axis called `name`; a dimension without values is counted."""
    values = dataset[name].values
    texts = tuple(number(value) for value in values.tolist())
    words = values.dtype.kind not in "fiu"
    kind: Kind = "places" if words else _kind(values.astype(float))
    at = np.arange(len(values), dtype=float) if kind == "places" else values.astype(float)
    return Ruler(name, label(dataset, name, 50), texts, at, kind, words)


def _kind(values: Array) -> Kind:
    """Logarithmic if the values are geometric; evenly spaced if such values begin with 0."""
    if geometric(values):
        return "log"
    return "places" if values[0] == 0 and len(values) > 3 and geometric(values[1:]) else "linear"


def geometric(values: Array) -> bool:
    """Whether rising values are spaced more evenly in their logarithms than by themselves."""
    if len(values) < 2 or values[0] <= 0:
        return False
    if len(values) == 2:
        return bool(values[1] >= FAR * values[0])
    even = _spread(np.diff(np.log(values))) < _spread(np.diff(values))
    return even and bool(values[-1] >= 3 * values[0])


def _spread(steps: Array) -> float:
    return float(steps.std() / abs(steps.mean()))


def sorted_axes(dataset: xarray.Dataset, dims: tuple[str, ...]) -> xarray.Dataset:
    """The dataset with the numbers of every axis rising."""
    for dim in dims:
        values: Any = dataset[dim].values
        if values.dtype.kind in "fiu" and not (np.diff(values) > 0).all():
            dataset = dataset.isel({dim: np.argsort(values, kind="stable")})
    return dataset
