"""Directions of predictors: the angle between two, and where one points on the sphere."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array
from penchant.door import Invalid, door
from penchant.measures.distances import turn


@door
def angle(a: ArrayLike, b: ArrayLike) -> Array:
    """Degrees between predictors, along the last axis; accurate for the smallest angles too.

    Parameters
    ----------
    a
        One predictor, or several along the last axis.
    b
        The same, of a shape that fits.

    Returns
    -------
    array
        The angles.

    Examples
    --------
    >>> import penchant
    >>> float(penchant.measures.angle([1.0, 0.0], [1.0, 1.0]).round(6))
    45.0
    """
    return turn(_directed("a", a), _directed("b", b))


@door
def azimuth_pitch(beta: ArrayLike) -> tuple[Array, Array]:
    """Azimuth and pitch in degrees of predictors in R^3: longitude and latitude on the sphere.

    Parameters
    ----------
    beta
        Predictors along the last axis.

    Returns
    -------
    tuple of two arrays
        Azimuth and pitch.

    Examples
    --------
    >>> import penchant
    >>> azimuth, pitch = penchant.measures.azimuth_pitch([0.0, 1.0, 1.0])
    >>> round(float(azimuth), 6), round(float(pitch), 6)
    (90.0, 45.0)
    """
    unit = _directed("beta", beta)
    if unit.shape[-1] != 3:
        raise Invalid(f"predictors must have 3 coordinates, got {unit.shape[-1]}")
    azimuth = np.degrees(np.arctan2(unit[..., 1], unit[..., 0]))
    return azimuth, np.degrees(np.arctan2(unit[..., 2], np.hypot(unit[..., 0], unit[..., 1])))


def _directed(name: str, vectors: ArrayLike) -> Array:
    """Vectors divided by their largest entries, which may be huge or tiny; none may be zero."""
    array = np.asarray(vectors, dtype=np.float64)
    largest = np.abs(array).max(axis=-1, keepdims=True)
    if not (np.isfinite(array).all() and (largest > 0).all()):
        raise Invalid(f"{name} must be finite and not zero, a zero has no direction")
    return array / largest


def angles(beta: Array) -> Array:
    """(azimuth, pitch) in degrees along the last axis; NaN where a predictor is not known.

    Parameters
    ----------
    beta
        Predictors in R^3 along the last axis; NaN where they are not known.

    Returns
    -------
    array
        The two angles along the last axis, as `azimuth_pitch` gives them.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> penchant.measures.angles(np.array([[0.0, 1.0, 1.0], [np.nan] * 3])).round(6)
    array([[90., 45.],
           [nan, nan]])
    """
    found = np.full((*beta.shape[:-1], 2), np.nan)
    known = np.isfinite(beta).all(axis=-1)
    found[known] = np.stack(azimuth_pitch(beta[known]), axis=-1)
    return found
