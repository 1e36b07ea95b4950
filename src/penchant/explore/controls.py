"""The controls of a view: numbers on a slider and choices from a list, read from an address."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from penchant.arguments import one_of
from penchant.door import Invalid, door_as

WHO = "explore"
SHOWN = 40  # letters of a wrong value that are repeated


@dataclass(frozen=True)
class Number:
    """A slider from `low` to `high`; values are moved to the nearest step.

    The page shows the value, 10 to the power of the value if `power` is true, or
    `words[value]` if there are words.
    """

    name: str
    title: str
    low: float
    high: float
    step: float
    start: float
    power: bool = False
    words: tuple[str, ...] = ()

    def read(self, text: str) -> float:
        """The value in `text`, or a ValueError with the range."""
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not self.low <= value <= self.high:
            rule = f"a number from {self.low:g} to {self.high:g}"
            raise ValueError(f"{WHO}: {self.name} must be {rule}, got {cut(text)!r}")
        return self.nearest(value)

    def nearest(self, value: float) -> float:
        """The slider value that is nearest to `value`."""
        steps = round((value - self.low) / self.step)
        return round(min(self.low + steps * self.step, self.high), 10)

    def write(self, value: float | str) -> str:
        return f"{float(value):.10g}"


@dataclass(frozen=True)
class Choice:
    """One of several names, each with the words that are shown for it."""

    name: str
    title: str
    options: dict[str, str]
    start: str

    @door_as(WHO)
    def read(self, text: str) -> str:
        """`text` if it is one of the options, or a ValueError that names them."""
        if len(text) > SHOWN:
            raise Invalid(f"unknown {self.name} {cut(text)!r}")
        return one_of(self.name, text, self.options)

    def write(self, value: float | str) -> str:
        return str(value)


@dataclass(frozen=True)
class Upload:
    """A file that is dropped on the page or chosen; its value is the key by which it is kept.

    `look_up` raises a ValueError for a key of nothing that is kept.
    """

    name: str
    title: str
    start: str
    look_up: Callable[[str], object]

    def read(self, text: str) -> str:
        """`text` if it is the key of a file that is still here."""
        self.look_up(text)
        return text

    def write(self, value: float | str) -> str:
        return str(value)


Control = Number | Choice | Upload


def cut(text: str) -> str:
    """`text`, or its beginning where it is long."""
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
