"""A plot as plain data, which claims make and the report draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from penchant.arguments import one_of
from penchant.door import Invalid, door_as
from penchant.records import Record

Numbers = Sequence[float] | np.ndarray  # stored as a tuple of floats
Style = Literal["line", "dashed", "points", "steps"]
Scale = Literal["linear", "log", "symlog"]


def _numbers(name: str, values: Any) -> tuple[float, ...]:
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "fiub":
        rule = f"{name} must be a one-dimensional list of real numbers"
        raise Invalid(f"{rule}, got shape {array.shape} of {array.dtype}")
    return tuple(array.astype(float).tolist())


@dataclass(frozen=True, repr=False)
class Series(Record):
    """One curve or cloud of points; NaN and infinity leave a gap."""

    name: str
    x: Numbers
    y: Numbers
    style: Style = "line"

    @door_as(lambda series: f"Series {series.name!r}")
    def __post_init__(self) -> None:
        object.__setattr__(self, "x", _numbers("x", self.x))
        object.__setattr__(self, "y", _numbers("y", self.y))
        if len(self.x) != len(self.y):
            rule = "x and y must be equally long"
            raise Invalid(f"{rule}, got {len(self.x)} and {len(self.y)}")
        one_of("style", self.style, Style.__args__)  # type: ignore[attr-defined]


@dataclass(frozen=True, repr=False)
class Plot(Record):
    """Axes with a title, labels that carry units, and series."""

    title: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    x_scale: Scale = "linear"
    y_scale: Scale = "linear"
    caption: str = ""

    @door_as(lambda plot: f"Plot {plot.title!r}")
    def __post_init__(self) -> None:
        object.__setattr__(self, "series", tuple(self.series))
        for name in ("x_scale", "y_scale"):
            one_of(name, getattr(self, name), Scale.__args__)  # type: ignore[attr-defined]


def log_log(
    title: str, x_label: str, y_label: str, curves: Sequence[tuple[Any, ...]], caption: str = ""
) -> Plot:
    """A plot with two logarithmic axes; a curve is its name, x, y, and its style if not a line."""
    for curve in curves:
        if not isinstance(curve, tuple | list) or len(curve) not in (3, 4):
            rule = "a curve must be its name, x, y, and its style if not a line"
            raise ValueError(f"log_log {title!r}: {rule}, got {curve!r:.80}")
    series = [Series(*curve) for curve in curves]
    return Plot(title, x_label, y_label, series, "log", "log", caption)
