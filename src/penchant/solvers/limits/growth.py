"""Growth times: how long a weight of a vanishing start takes to grow, by coordinate and sign."""

from __future__ import annotations

from typing import Any

import numpy as np

from penchant.arguments import Array, plain_array
from penchant.door import Invalid


def growth_times(growth: Any, dimension: int) -> Array:
    """(t_plus, t_minus) as two rows, ones by default."""
    if growth is None:
        return np.ones((2, dimension))
    rule = "growth must be (t_plus, t_minus), a number or a vector each"
    try:
        count = len(growth)
    except TypeError:
        raise Invalid(f"{rule}, got {growth!r}") from None
    if count != 2:
        raise Invalid(f"{rule}, got {count} entries")
    rows = []
    for name, given in zip(("t_plus", "t_minus"), growth, strict=True):
        times = plain_array(f"{name} of growth", given)
        if times.dtype.kind not in "iuf":
            raise Invalid(f"{name} of growth must be numbers, got {given!r:.60}")
        times = times.astype(float)
        if times.shape not in ((), (dimension,)):
            raise Invalid(
                f"{name} of growth must be one time or {dimension}, one per feature, got shape"
                f" {times.shape}"
            )
        wrong = np.flatnonzero(~(times > 0))
        if len(wrong):
            raise Invalid(
                f"{name} of growth must be > 0, got {times.ravel()[wrong[0]]} at index {wrong[0]};"
                " a weight that never grows has the time inf"
            )
        rows.append(np.broadcast_to(times, (dimension,)))
    stuck = np.flatnonzero(np.isinf(rows).all(axis=0))
    if len(stuck):
        raise Invalid(
            f"growth must leave each weight one finite time, got inf twice at index {stuck[0]};"
            " drop its column"
        )
    return np.array(rows)


def shared(points: Array, fastest: Array, share: Any) -> Array:
    """The weight of a group of columns, spread over those that grow fastest with its sign."""
    parts = [fast / np.bincount(share, weights=fast)[share] for fast in fastest]
    return np.asarray(np.where(points > 0, points * parts[0], points * parts[1]))
