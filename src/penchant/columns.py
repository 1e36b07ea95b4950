"""The names of the columns of a table, which travel from the data to results and pictures."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from penchant.door import Invalid

P = ParamSpec("P")
R = TypeVar("R")


def names_in(data: Any) -> tuple[str, ...]:
    """The names of the columns of a table (pandas, polars) or of a problem; () without names."""
    given: Any = getattr(data, "features", None)
    if given is None and hasattr(data, "shape"):
        given = getattr(data, "columns", None)
    names = tuple(given) if isinstance(given, tuple | list) or hasattr(given, "tolist") else ()
    plain = all(isinstance(name, str) for name in names)
    return tuple(map(str, names)) if plain and len(set(names)) == len(names) else ()


def checked_names(names: Any, count: int) -> tuple[str, ...] | None:
    """`names` as that many different texts; None for none."""
    if names is None:
        return None
    if isinstance(names, str) or not hasattr(names, "__iter__"):
        raise Invalid(f"features must be the names of the columns of X, got {names!r:.80}")
    listed = list(names)
    if not all(isinstance(name, str) for name in listed) or len(set(listed)) < len(listed):
        raise Invalid(f"features must be different texts, got {listed!r:.80}; rename the columns")
    if len(listed) != count:
        raise Invalid(f"features must have one name per column of X ({count}), got {len(listed)}")
    return tuple(map(str, listed))


def named_as_given(function: Callable[P, R]) -> Callable[P, R]:
    """`function` of X or a problem, whose result keeps the names of the columns in `features`."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        result: Any = function(*args, **kwargs)
        names = names_in(args[0] if args else kwargs.get("X"))
        if names and hasattr(result, "features"):
            result = dataclasses.replace(result, features=names)
        return result

    return call
