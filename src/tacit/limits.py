"""The time that a call may take, where it can take long."""

from __future__ import annotations

import time

from tacit.arguments import positive


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
