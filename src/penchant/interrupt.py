"""Ctrl-C as a request that a long computation answers with what it has so far.

Within `heeding` the first Ctrl-C only sets a mark, and the loop inside that asks `interrupted` ends
where its state is whole. The second one, or one within two seconds of the last answer, raises
KeyboardInterrupt as always: so a loop of the user around many short runs can be left.
"""

from __future__ import annotations

import contextlib
import contextvars
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

AGAIN = 2.0  # seconds within which a second Ctrl-C is meant for all that is running


class _Mark:
    """Whether Ctrl-C was pressed, and when one was last answered."""

    answered = -AGAIN

    def __init__(self) -> None:
        self.pressed = False

    def press(self, number: int, frame: Any) -> None:
        if self.pressed or time.monotonic() - _Mark.answered < AGAIN:
            signal.default_int_handler(number, frame)
        self.pressed = True
        _Mark.answered = time.monotonic()


_mark: contextvars.ContextVar[_Mark | None] = contextvars.ContextVar("mark", default=None)


@contextlib.contextmanager
def heeding(wanted: bool = True) -> Iterator[None]:
    """A block whose loops end at the first Ctrl-C; nothing changes where Ctrl-C does not raise.

    Without `wanted`, inside another such block and in other threads it does nothing either.
    """
    main = threading.current_thread() is threading.main_thread()
    usual = main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not wanted or not usual:
        yield
        return
    mark = _Mark()
    token = _mark.set(mark)
    signal.signal(signal.SIGINT, mark.press)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _mark.reset(token)


def interrupted() -> bool:
    """Whether Ctrl-C was pressed in the block around."""
    mark = _mark.get()
    return mark is not None and mark.pressed
