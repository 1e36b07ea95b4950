"""The call that makes an object again, as its `repr`: short, and never an address."""

from __future__ import annotations

import enum
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

LONGEST = 120  # characters of a list, a dict or a text that is shown in full
FEW = 8  # numbers of an array that are shown in full


def call(thing: Any) -> str:
    """`thing` as the call of its class, or of the function that made it, without defaults.

    What was made from plain values, small arrays and such objects is made again by `eval`; a large
    array, a dataset and a function without a name are abbreviated in angle brackets.
    """
    maker, given = _made_by(thing) or (type(thing), _arguments(thing))
    written = ", ".join(
        f"{name}={shown(value)}"
        for name, value in given.items()
        if not _same(value, _defaults(maker).get(name, inspect.Parameter.empty))
    )
    return f"{getattr(maker, 'called', None) or maker.__name__}({written})"


def _made_by(thing: Any) -> tuple[Callable[..., Any], dict[str, Any]] | None:
    """The public function that made `thing` and its arguments, if the object tells them."""
    import tacit

    recipe = getattr(thing, "recipe", None)
    if not isinstance(recipe, Mapping) or recipe.get("generator") not in tacit.__all__:
        return None
    maker = getattr(tacit, recipe["generator"])
    given = {name: value for name, value in recipe.items() if name != "generator"}
    return (maker, given) if given.keys() <= inspect.signature(maker).parameters.keys() else None


def _arguments(thing: Any) -> dict[str, Any]:
    """The arguments of the constructor, read off the attributes that hold them."""
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


def _defaults(maker: Callable[..., Any]) -> dict[str, Any]:
    parameters = inspect.signature(maker).parameters.values()
    return {one.name: one.default for one in parameters}


def _same(value: Any, default: Any) -> bool:
    """True if the value need not be written; an empty mapping is what a factory makes."""
    if type(default).__name__ == "_HAS_DEFAULT_FACTORY_CLASS":
        return not value
    return value is default or (type(value) is type(default) and bool(np.all(value == default)))


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
