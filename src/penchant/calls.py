"""The call that recreates an object, as its `repr`, and equality of objects made alike."""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from penchant.namespaces import public, public_names

LONGEST = 120  # characters of a list, a dict or a text that is shown in full
FEW = 8  # numbers of an array that are shown in full


def call(thing: Any) -> str:
    """`thing` as the call of its class, or of the function that made it, without defaults.

    What was made from plain values, small arrays and such objects is made again by `eval`; a large
    array, a dataset and a function without a name are abbreviated in angle brackets.
    """
    maker, given = _made_by(thing) or (type(thing), _arguments(thing))
    parameters = inspect.signature(maker).parameters
    written = ", ".join(
        f"{name}={shown(value)}"
        for name, value in given.items()
        if not _same(value, parameters[name].default)
    )
    return f"{getattr(maker, 'called', None) or maker.__name__}({written})"


def _made_by(thing: Any) -> tuple[Callable[..., Any], dict[str, Any]] | None:
    """The public function that made `thing` and its arguments, if the object records them."""
    recipe = getattr(thing, "recipe", None)
    if not isinstance(recipe, Mapping) or recipe.get("generator") not in public_names():
        return None
    maker = public(recipe["generator"])
    given = {name: value for name, value in recipe.items() if name != "generator"}
    return (maker, given) if given.keys() <= inspect.signature(maker).parameters.keys() else None


def _arguments(thing: Any) -> dict[str, Any]:
    """The arguments of the constructor, from the attributes that hold them."""
    stored_as = getattr(thing, "stored_as", {})
    names = inspect.signature(type(thing)).parameters
    found = {name: getattr(thing, stored_as.get(name, name), None) for name in names}
    if found.get("log_alpha") is not None and "alpha" in found:
        _keep_one_scale(found)
    return {name: value for name, value in found.items() if not inspect.ismethod(value)}


def _keep_one_scale(found: dict[str, Any]) -> None:
    """Leaves alpha where it gives log_alpha to the last bit, else log_alpha."""
    log_alpha = found["log_alpha"]
    with np.errstate(over="ignore", under="ignore"):
        alpha = float(np.exp(log_alpha))
    exact = [
        number
        for number in (float(f"{alpha:.12g}"), found["alpha"] or alpha, alpha)
        if 0 < number < math.inf and math.log(number) == log_alpha
    ]
    found["alpha"], found["log_alpha"] = (exact[0], None) if exact else (None, log_alpha)


def _same(value: Any, default: Any) -> bool:
    """True if the value need not be written; an empty mapping is what a factory makes."""
    if type(default).__name__ == "_HAS_DEFAULT_FACTORY_CLASS":
        return not value
    return value is default or (type(value) is type(default) and bool(np.all(value == default)))


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


def shown(value: Any) -> str:
    """A value inside a call."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, enum.Enum):
        return str(value)
    if hasattr(value, "sizes") and hasattr(value, "data_vars"):  # an xarray.Dataset
        return f"<dataset of {', '.join(f'{n} {size}' for n, size in value.sizes.items())}>"
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return _array(np.asarray(value))
    if isinstance(value, str):
        return repr(value if len(value) <= LONGEST else f"{value[: LONGEST - 1]}…")
    if isinstance(value, Mapping | list | tuple):
        return _collection(value)
    if callable(value) and hasattr(value, "__qualname__"):
        return "<lambda>" if value.__name__ == "<lambda>" else str(value.__name__)
    text = repr(value)
    return f"<{type(value).__name__}>" if " at 0x" in text else text


def _array(array: np.ndarray) -> str:
    if array.size <= FEW and np.isfinite(array).all():
        return repr(array.tolist())
    return f"<array of {' x '.join(map(str, array.shape))}>"


def _collection(value: Any) -> str:
    if isinstance(value, Mapping):
        text = f"{{{', '.join(f'{shown(k)}: {shown(v)}' for k, v in value.items())}}}"
    else:
        inside = ", ".join(map(shown, value))
        comma = "," if len(value) == 1 else ""
        text = f"[{inside}]" if isinstance(value, list) else f"({inside}{comma})"
    return text if len(text) <= LONGEST else f"<{type(value).__name__} of {len(value)}>"
