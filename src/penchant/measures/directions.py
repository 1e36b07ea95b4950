"""Directions of predictors: the angle between two, and where one points on the sphere."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, finite_array, real_array
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
    one, other = _directed("a", a), _directed("b", b)
    try:
        np.broadcast_shapes(one.shape, other.shape)
    except ValueError:
        seen = f"{one.shape} and {other.shape}"
        raise Invalid(f"a and b must have shapes that fit, got {seen}") from None
    return turn(one, other)


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
    return _azimuth_pitch(_directed("beta", beta))


def _azimuth_pitch(unit: Array) -> tuple[Array, Array]:
    if unit.shape[-1] != 3:
        raise Invalid(f"beta must have 3 coordinates, got {unit.shape[-1]}")
    azimuth = np.degrees(np.arctan2(unit[..., 1], unit[..., 0]))
    return azimuth, np.degrees(np.arctan2(unit[..., 2], np.hypot(unit[..., 0], unit[..., 1])))


def _directed(name: str, vectors: ArrayLike) -> Array:
    """Vectors divided by their largest entries, which may be huge or tiny; none may be zero."""
    array = finite_array(name, vectors, ndim=None)
    largest = np.abs(array).max(axis=-1, keepdims=True)
    if not (largest > 0).all():
        raise Invalid(f"{name} must not be zero, a zero has no direction")
    return array / largest


@door
def angles(beta: ArrayLike) -> Array:
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
    beta = real_array("beta", beta, ndim=None)
    degrees = np.full((*beta.shape[:-1], 2), np.nan)
    known = np.isfinite(beta).all(axis=-1)
    if not (known | np.isnan(beta).all(axis=-1)).all():
        raise Invalid("beta must be finite; an unknown predictor is NaN as a whole")
    unit = _directed("beta", beta[known])
    degrees[known] = np.stack(_azimuth_pitch(unit), axis=-1)
    return degrees
