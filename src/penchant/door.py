"""The door of the library: where an error gets the name of the function that was called.

A check far inside raises `Invalid`, whose sentence says what is wrong but not who was called.
The first `door` on its way out raises the same as a ValueError with a name before the sentence:
`max_margin: mus must be > 0`. So no inner function takes the name of its caller. A constructor that
is called within another function has a door of its own, and speaks in its own name.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Invalid(ValueError):
    """A refused argument: the rule, the value seen and the way out, without the caller."""


def class_name(record: object) -> str:
    """The name of the class of `record`, which its methods speak in."""
    return type(record).__name__


def door(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, whose errors begin with its name; those of a constructor with its class."""
    made = function.__name__ in ("__init__", "__post_init__")
    return door_as(class_name if made else function.__name__)(function)


def door_as(name: str | Callable[[Any], str]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """The same under another name, or under what `name` says of the first argument."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return function(*args, **kwargs)
            except Invalid as error:
                first = args[0] if args else next(iter(kwargs.values()), None)
                caller = name if isinstance(name, str) else name(first)
                named = ValueError(f"{caller}: {error}").with_traceback(error.__traceback__)
                raise named from error.__cause__

        return call

    return decorate
