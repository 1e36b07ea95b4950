"""Equality of objects made alike: field by field, arrays entry by entry."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import numpy as np


def equal_fields(first: Any, second: object) -> bool:
    """`__eq__` of dataclasses: the same class and equal fields, arrays entry by entry."""
    if first is second or type(first) is not type(second) or not dataclasses.is_dataclass(first):
        return first is second
    names = (field.name for field in dataclasses.fields(first))
    return all(equal(getattr(first, name), getattr(second, name)) for name in names)


def hash_fields(thing: Any) -> int:
    """The matching `__hash__`: of the class and the plain fields; arrays are left out.

    Fields that are not a number, nan, would have a hash of their own.
    """
    if not dataclasses.is_dataclass(thing):
        return object.__hash__(thing)
    values = (getattr(thing, field.name) for field in dataclasses.fields(thing))
    plain = (v for v in values if isinstance(v, str | int | float | np.generic) and v == v)
    return hash((type(thing), *plain))


def equal(first: Any, second: Any) -> bool:
    """True if two fields are equal; a number that is not a number equals itself."""
    if first is second:
        return True
    if hasattr(first, "identical"):  # an xarray.Dataset
        return bool(first.identical(second))
    if hasattr(first, "dtype") or hasattr(second, "dtype"):
        return _equal_arrays(np.asarray(first), np.asarray(second))
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return first.keys() == second.keys() and all(
            equal(first[key], second[key]) for key in first
        )
    if isinstance(first, list | tuple) and type(first) is type(second):
        return len(first) == len(second) and all(map(equal, first, second))
    if isinstance(first, functools.partial) and type(first) is type(second):
        return equal(
            (first.func, first.args, first.keywords), (second.func, second.args, second.keywords)
        )
    return bool(first == second) or bool(first != first and second != second)


def _equal_arrays(first: np.ndarray, second: np.ndarray) -> bool:
    kinds = first.dtype.kind + second.dtype.kind
    return np.array_equal(first, second, equal_nan=all(kind in "fc" for kind in kinds))
