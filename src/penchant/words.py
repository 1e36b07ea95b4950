"""Functions and optimizers in words: the names of functions and the values that they enclose.

An optax object or a function of the user does not know how it was called. What can be known of it
are the functions it is made of and the variables they enclose; that is what a saved path tells
about it, and what `resume` compares.
"""

from __future__ import annotations

import functools
import hashlib
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

SHOWN = 8  # numbers of an array that are written out
EMPTY = types.CellType()  # of a variable that was never set


def is_optimizer(thing: object) -> bool:
    """Whether `thing` is a pair of functions `init` and `update`, as optax makes them."""
    pair = getattr(thing, "init", None), getattr(thing, "update", None)
    return isinstance(thing, tuple) and all(map(callable, pair))


def in_words(thing: Any, seen: frozenset[int] = frozenset()) -> str:
    """A function, an optimizer or a value in words: its functions and what they enclose.

    Two functions of a user that have one name and enclose equal values have the same words.
    """
    if id(thing) in seen:
        return getattr(thing, "__name__", type(thing).__name__)
    inside = functools.partial(in_words, seen=seen | {id(thing)})
    if is_optimizer(thing):
        return inside(thing.update)
    if isinstance(thing, functools.partial):
        return inside(thing.func) + inside((*thing.args, thing.keywords))
    if hasattr(thing, "__code__"):
        return _function_in_words(thing, inside)
    if isinstance(thing, Mapping):
        return "{" + ", ".join(f"{key}: {inside(part)}" for key, part in thing.items()) + "}"
    if isinstance(thing, tuple | list):
        return "(" + ", ".join(map(inside, thing)) + ")"
    if isinstance(thing, str | int | float | None):
        return repr(thing)
    if hasattr(thing, "dtype") and hasattr(thing, "shape"):
        array = np.asarray(thing)
        if array.size <= SHOWN:
            return str(array.tolist())
        return f"{array.dtype}{list(array.shape)} {digest_of(array)}"
    return str(getattr(thing, "__name__", type(thing).__name__))


def _function_in_words(function: Any, inside: Callable[[Any], str]) -> str:
    """The name of the function that made this one, and the variables that it encloses."""
    name = function.__qualname__.split(".<locals>")[0]
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    enclosed = {label: cell.cell_contents for label, cell in cells if cell != EMPTY}
    if name == "with_extra_args_support":  # what optax puts around every part
        return inside(enclosed["tx"])
    if name == "chain":
        return f"chain({', '.join(map(inside, enclosed['update_fns']))})"
    settings = ", ".join(f"{label}={inside(part)}" for label, part in enclosed.items())
    return f"{name}({settings})"


def digest_of(content: np.ndarray | str) -> str:
    """A digest of an array with its type and shape, or of a text."""
    if isinstance(content, str):
        return hashlib.blake2b(content.encode(), digest_size=16).hexdigest()
    digest = hashlib.blake2b(f"{content.dtype.str} {content.shape}".encode(), digest_size=16)
    digest.update(np.ascontiguousarray(content).data)
    return digest.hexdigest()
