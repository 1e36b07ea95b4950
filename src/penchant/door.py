"""The door of the library: where an error gets the name of the function that was called.

A check far inside raises `Invalid`, whose sentence says what is wrong but not what was called.
The first `door` on its way out raises the same as a ValueError with a name before the sentence:
`max_margin: mus must be > 0`. So no inner function takes the name of its caller. A constructor that
is called within another function has a door of its own, and speaks in its own name.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, ParamSpec, TypeVar

from penchant.suggestions import refuse_unknown

CALLER = "{caller}"  # stands for the name inside a sentence

P = ParamSpec("P")
R = TypeVar("R")


class Nameless(Exception):
    """An error whose sentence lacks the name of the caller; `kind` is the error that users see."""

    kind: ClassVar[type[Exception]] = Exception

    def named(self, caller: str) -> Exception:
        """The error that a user sees: it begins with the name of the caller."""
        sentence = str(self)
        if not sentence.startswith(CALLER):
            sentence = f"{CALLER}: {sentence}"
        return self.kind(sentence.replace(CALLER, caller))


class Invalid(Nameless, ValueError):
    """A refused argument: the rule, the value seen and the way out."""

    kind = ValueError


class NotFound(Nameless, FileNotFoundError):
    """A file or folder that is not there."""

    kind = FileNotFoundError


class NotPermitted(Nameless, PermissionError):
    """A file or folder that may not be used."""

    kind = PermissionError


class Unwritable(Nameless, OSError):
    """A folder that cannot be written to."""

    kind = OSError


class NotInstalled(Nameless, ImportError):
    """A package that is needed and not installed."""

    kind = ImportError


def class_name(record: object) -> str:
    """The name of the class of `record`, which its methods speak in."""
    return type(record).__name__


def door(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, whose errors begin with its name; those of a constructor with its class."""
    made = function.__name__ in ("__init__", "__post_init__")
    return door_as(class_name if made else function.__name__)(function)


def door_as(name: str | Callable[[Any], str]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """The same under another name, or under what `name` says of the first argument.

    Parameters
    ----------
    name
        What a sentence begins with: a text, or a function of the first argument.

    Returns
    -------
    function
        A decorator.

    Examples
    --------
    >>> from penchant.lab import door_as, integer
    >>> @door_as("Figure 7")
    ... def cell(width):
    ...     return integer("width", width, least=1)
    >>> cell(0)
    Traceback (most recent call last):
    ValueError: Figure 7: width must be at least 1, got 0
    """
    if not (isinstance(name, str) or callable(name)):
        raise ValueError(f"door_as: name must be a text or a function, got {name!r}")

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return function(*args, **kwargs)
            except Nameless as error:
                first = args[0] if args else next(iter(kwargs.values()), None)
                caller = name if isinstance(name, str) else name(first)
                raise _named(error, caller) from error.__cause__
            except TypeError:
                refuse_unknown(function, kwargs)
                raise

        return call

    return decorate


@contextlib.contextmanager
def speaking_as(caller: str) -> Iterator[None]:
    """The same around a block of statements, where the name is known inside a function only."""
    try:
        yield
    except Nameless as error:
        raise _named(error, caller) from error.__cause__


def _named(error: Nameless, caller: str) -> Exception:
    return error.named(caller).with_traceback(error.__traceback__)
