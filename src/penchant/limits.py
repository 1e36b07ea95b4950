"""The time that a call may take, and the turns that a loop may take.

A solver that keeps what it has when its time is spent asks its own `TimeLimit`. Solvers that have
nothing before they end are many loops deep; `limited` sets the limit for all that is called in it
(of this thread alone), the loops ask by `check_time` or `Turns.take`, and `OutOfTime` leads back to
the call that set the limit. No inner signature needs to know.
"""

from __future__ import annotations

import contextlib
import contextvars
import time
from collections.abc import Iterator

from penchant.arguments import integer, positive
from penchant.door import door


class TimeLimit:
    """A clock that starts now; `spent` once `seconds` have passed, never if that is None."""

    def __init__(self, seconds: float | None) -> None:
        self.seconds = None if seconds is None else positive("max_seconds", seconds)
        self.begin = time.monotonic()

    @property
    def spent(self) -> bool:
        return self.seconds is not None and time.monotonic() - self.begin >= self.seconds

    @property
    def left(self) -> float | None:
        """The seconds that are left, None without a limit."""
        return None if self.seconds is None else self.seconds - (time.monotonic() - self.begin)

    def __str__(self) -> str:
        return f"stopped after {self.seconds:g} seconds; raise max_seconds"


class OutOfTime(Exception):
    """The time of a call is spent; the text says what to do."""


LIMIT: contextvars.ContextVar[TimeLimit | None] = contextvars.ContextVar("LIMIT", default=None)


@contextlib.contextmanager
def limited(seconds: float | None) -> Iterator[None]:
    """A context in which loops raise `OutOfTime` after `seconds`; None leaves what is set."""
    limit = TimeLimit(seconds)
    token = LIMIT.set(LIMIT.get() if seconds is None else limit)
    try:
        yield
    finally:
        LIMIT.reset(token)


def check_time() -> None:
    """Raises `OutOfTime` once the time of the call around it is spent."""
    limit = LIMIT.get()
    if limit is not None and limit.spent:
        raise OutOfTime(str(limit))


def seconds_left() -> float | None:
    """The time that is left for programs of others, which take it as an option."""
    limit = LIMIT.get()
    return None if limit is None or limit.left is None else max(limit.left, 0.01)


class Endless(RuntimeError):
    """A loop that should have ended did not: a defect, or data that nobody has thought of."""


class Turns:
    """Counts the turns of a loop that ends by itself: `take` raises after `most` of them.

    It also asks for the time of the call, so that no limit waits for a long loop.
    `for _ in Turns(100, "the search")` is a loop that ends by `break` or `return`. In a loop with a
    condition `take` is the first statement; a test of the house finds loops without a bound.
    """

    @door
    def __init__(self, most: int, what: str) -> None:
        if type(most) is not int or most < 0:  # loops begin often, and nearly all know their bound
            most = integer("most", most, least=0)
        self.most, self.what, self.taken = most, what, 0

    def __iter__(self) -> Iterator[int]:
        for turn in range(self.most):
            self.take()
            yield turn
        self.take()

    def take(self) -> None:
        check_time()
        self.taken += 1
        if self.taken > self.most:
            what = f"{self.what} did not end after {self.most} turns"
            raise Endless(f"{what}; please report the data of this call")
