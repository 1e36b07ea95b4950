"""One number per cell, combined over the seeds, and which cells failed."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from penchant.arguments import Array
from penchant.lab.studies.compute import USABLE
from penchant.lab.studies.gather import MISSING

if TYPE_CHECKING:
    import xarray

Flags = NDArray[np.bool_]
MANY = 2.0  # decades from which a positive quantity is drawn by its logarithm


@dataclasses.dataclass(frozen=True, eq=False)
class Layer:
    """Median, smallest and largest over the seeds; the computed cells and the failed ones.

    The values come from the seeds that succeeded; those of failed seeds are used only if there
    are no others.
    """

    value: Array
    low: Array
    high: Array
    attempted: Flags
    failed: Flags
    partly: Flags

    @property
    def lost(self) -> Flags:
        """Cells that failed and left no number."""
        return self.failed & ~np.isfinite(self.value)


def layer(dataset: xarray.Dataset, name: str, dims: tuple[str, ...]) -> Layer:
    """The layer of a variable over `dims`; every other axis is taken together."""
    rest = [dim for dim in dataset.status.dims if dim not in dims]
    order = (*dims, *rest)
    shape = tuple(dataset.sizes[dim] for dim in dims)

    def flat(variable: xarray.DataArray) -> np.ndarray:
        return np.asarray(variable.transpose(*order).values).reshape(*shape, -1)

    status, raw = flat(dataset.status), flat(dataset[name]).astype(float)
    good, attempted = np.isin(status, USABLE), status != MISSING
    trusted = np.where(good & np.isfinite(raw), raw, np.nan)
    some = np.isfinite(trusted).any(axis=-1, keepdims=True)
    values = np.where(some, trusted, np.where(np.isfinite(raw), raw, np.nan))
    bad = attempted & ~good
    every = bad.any(axis=-1) & ~good.any(axis=-1)
    return Layer(
        middle(values),
        -_largest(-values),
        _largest(values),
        attempted.any(axis=-1),
        every,
        bad.any(axis=-1) & ~every,
    )


def middle(values: Array) -> Array:
    """The median of the finite numbers along the last axis; NaN where there is none."""
    medians = np.ma.median(np.ma.masked_invalid(values), axis=-1)
    return np.asarray(np.ma.filled(np.ma.asarray(medians, dtype=float), np.nan))


def _largest(values: Array) -> Array:
    largest = np.where(np.isfinite(values), values, -np.inf).max(axis=-1)
    return np.where(np.isfinite(largest), largest, np.nan)


def spans_decades(values: Array) -> bool:
    """Whether finite values are all positive and far apart."""
    finite = values[np.isfinite(values)]
    return bool(finite.size and finite.min() > 0 and finite.max() > 10**MANY * finite.min())
