"""What a probe is given: texts that begin with $ stand for what a run left behind.

`$t` is the variable `t` of the path's dataset; `$path`, `$model`, `$problem` and `$method` are the
objects themselves, and `$problem.X` is an attribute of one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tacit.arguments import one_of
from tacit.studies.parts import build

MARK = "$"
OBJECTS = ("path", "model", "problem", "method")


class DescriptionError(ValueError):
    """A fault of the description that shows only while a cell runs; it stops the whole study."""


def is_reference(value: object) -> bool:
    return isinstance(value, str) and value.startswith(MARK)


def resolved(where: str, value: Any, scope: Mapping[str, Any]) -> Any:
    """What a reference or a table with `is` stands for; other values as they are."""
    if not is_reference(value):
        return build(value)
    first, *rest = value[1:].split(".")
    if first not in OBJECTS:
        return variable(where, scope["path"], value[1:]).values
    found = scope[first]
    for name in rest:
        if name.startswith("_") or not hasattr(found, name):
            raise DescriptionError(f"{where}: {value!r} means nothing, {first} has no {name!r}")
        found = getattr(found, name)
    if rest and callable(found):  # a method could do more than give a value
        raise DescriptionError(f"{where}: {value!r} is a method, not a value")
    return found


def variable(where: str, path: Any, name: str) -> Any:
    """The variable `name` of a path's dataset; the nearest spelling is offered otherwise."""
    try:
        known = map(str, path.dataset.variables)
        return path.dataset[one_of(where, "variable of the path", name, known)]
    except ValueError as reason:
        raise DescriptionError(str(reason)) from None
