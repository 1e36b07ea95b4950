"""Which modules of a model moved: the parameter arrays of a record, grouped by their names."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from penchant.arguments import Array
from penchant.measures.kernels.layers import layer_groups

MOST = 60  # modules that are distinguished


@dataclasses.dataclass(frozen=True)
class Moves:
    """How far each module moved since the start, at every look.

    `moved` is the distance of its parameters from the start over their norm at the start (if they
    all began at zero, over the norm that arrays of their sizes have on average), `distance` the
    largest kernel distance of its parameter arrays. Both are (looks, modules), NaN where they are
    not known.
    """

    names: tuple[str, ...]
    moved: Array
    distance: Array

    @property
    def last(self) -> list[tuple[str, float, float]]:
        """Name, move and distance at the last look, the module that moved most first."""
        rows = zip(self.names, self.moved[-1].tolist(), self.distance[-1].tolist(), strict=True)
        return sorted(rows, key=lambda row: -row[1] if row[1] == row[1] else 1.0)


def module_moves(dataset: Any) -> Moves:
    """The moves of the modules of a record; beyond MOST modules those inside one are one."""
    arrays = [str(name) for name in dataset["layer"].values]
    groups = layer_groups([_module(name) for name in arrays], MOST)
    names = tuple(dict.fromkeys(groups))
    size, moved, distance = (
        dataset[name].values for name in ("layer_l2", "layer_moved", "layer_distance")
    )
    origin = size[0]
    # an array that began at zero has moved by its norm
    apart = np.where(origin > 0, moved * origin, size)
    with np.errstate(invalid="ignore", divide="ignore"):
        units = np.where(origin > 0, origin, _median(apart / moved))
    columns = []
    for name in names:
        own = [number for number, group in enumerate(groups) if group == name]
        columns.append(
            (_relative(apart[:, own], origin[own], units[own]), _largest(distance[:, own]))
        )
    first, second = zip(*columns, strict=True)
    return Moves(names, np.stack(first, axis=1), np.stack(second, axis=1))


def _module(name: str) -> str:
    """The path of the module that has an array of this name, or the name of a bare array."""
    return name.rpartition(".")[0] or name


def _median(values: Array) -> Array:
    """The median of the finite numbers of every column, NaN if there is none."""
    columns = [column[np.isfinite(column)] for column in values.T]
    return np.array([np.median(column) if len(column) else np.nan for column in columns])


def _relative(apart: Array, origin: Array, units: Array) -> Array:
    far = np.sqrt((apart**2).sum(axis=1))
    start = float(np.sqrt(((origin if origin.any() else units) ** 2).sum()))
    if start > 0:
        return np.asarray(far / start)
    return np.where(far > 0, np.inf, far)


def _largest(values: Array) -> Array:
    """The largest number of every row, NaN if none is known."""
    known = np.where(np.isnan(values), -np.inf, values).max(axis=1)
    return np.where(np.isfinite(known), known, np.nan)
