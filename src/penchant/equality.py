"""Equality of objects made alike: field by field, arrays entry by entry."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import numpy as np


def equal_fields(one: Any, other: object) -> bool:
    """`__eq__` of dataclasses: the same class and equal fields, arrays entry by entry."""
    if one is other or type(one) is not type(other) or not dataclasses.is_dataclass(one):
        return one is other
    names = (field.name for field in dataclasses.fields(one))
    return all(equal(getattr(one, name), getattr(other, name)) for name in names)


def hash_fields(thing: Any) -> int:
    """The matching `__hash__`: of the class and the plain fields; arrays are left out.

    Fields that are not a number, nan, would have a hash of their own.
    """
    if not dataclasses.is_dataclass(thing):
        return object.__hash__(thing)
    values = (getattr(thing, field.name) for field in dataclasses.fields(thing))
    plain = (v for v in values if isinstance(v, str | int | float | np.generic) and v == v)
    return hash((type(thing), *plain))


def equal(one: Any, other: Any) -> bool:
    """True if two fields are equal; a number that is not a number equals itself."""
    if one is other:
        return True
    if hasattr(one, "identical"):  # an xarray.Dataset
        return bool(one.identical(other))
    if hasattr(one, "dtype") or hasattr(other, "dtype"):
        return _equal_arrays(np.asarray(one), np.asarray(other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and type(one) is type(other):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, functools.partial) and type(one) is type(other):
        return equal((one.func, one.args, one.keywords), (other.func, other.args, other.keywords))
    return bool(one == other) or bool(one != one and other != other)


def _equal_arrays(one: np.ndarray, other: np.ndarray) -> bool:
    kinds = one.dtype.kind + other.dtype.kind
    return np.array_equal(one, other, equal_nan=all(kind in "fc" for kind in kinds))
