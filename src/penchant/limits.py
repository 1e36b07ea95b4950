"""The time that a call may take, and the turns that a loop may take."""

from __future__ import annotations

import time

from penchant.arguments import positive


class TimeLimit:
    """A clock that starts now; `spent` once `seconds` have passed, never if that is None."""

    def __init__(self, who: str, seconds: float | None) -> None:
        self.seconds = None if seconds is None else positive(who, "max_seconds", seconds)
        self.begin = time.monotonic()

    @property
    def spent(self) -> bool:
        return self.seconds is not None and time.monotonic() - self.begin >= self.seconds

    def __str__(self) -> str:
        return f"stopped after {self.seconds:g} seconds; raise max_seconds"


class Endless(RuntimeError):
    """A loop that should have ended did not: a defect, or data that nobody has thought of."""


class Turns:
    """Counts the turns of a loop that ends by itself: `take` raises after `most` of them.

    It is the first statement of the loop; a test of the house finds loops without a bound.
    """

    def __init__(self, most: int, what: str) -> None:
        self.most, self.what, self.taken = most, what, 0

    def take(self) -> None:
        self.taken += 1
        if self.taken > self.most:
            what = f"{self.what} did not end after {self.most} turns"
            raise Endless(f"{what}; please report the data of this call")
