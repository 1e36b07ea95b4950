"""The errors of a run: one sentence for each kind, with its first step and its count.

The first of each kind is a warning of `logging` at once, since the report may be hours away.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import re
from collections.abc import Iterator

from penchant.watch.backends.backend import WHO

MOST = 50  # different failures that are recorded
NUMBER = re.compile(r"[\d.]+(e[+-]?\d+)?")


@dataclasses.dataclass(frozen=True)
class Failure:
    """The first failure of its kind, and how many there were."""

    kind: str
    step: float
    sentence: str
    count: int = 1


class Failures:
    """The failures of a run by kind; with `raising` every error is raised instead."""

    def __init__(self, raising: bool):
        self.raising = raising
        self.book: dict[str, Failure] = {}

    @contextlib.contextmanager
    def kept(self, kind: str, step: float) -> Iterator[None]:
        """Record an error of the block under `kind` instead of raising it."""
        try:
            yield
        except Exception as reason:
            if self.raising:
                raise
            self._enter(kind, step, _sentence(kind, reason))

    def _enter(self, kind: str, step: float, sentence: str) -> None:
        key = NUMBER.sub("#", f"{kind} {sentence}")  # sentences may differ in their numbers
        if key in self.book:
            first = self.book[key]
            self.book[key] = dataclasses.replace(first, count=first.count + 1)
        elif len(self.book) < MOST:
            self.book[key] = Failure(kind, step, sentence)
            logging.getLogger(__package__).warning("%s (at step %g)", sentence, step)

    def enter(self, failure: Failure) -> None:
        """Add an earlier failure, with its count."""
        self.book[NUMBER.sub("#", f"{failure.kind} {failure.sentence}")] = failure

    def __iter__(self) -> Iterator[Failure]:
        return iter(self.book.values())

    def __len__(self) -> int:
        return len(self.book)


def _sentence(kind: str, reason: Exception) -> str:
    text = (str(reason) or type(reason).__name__).strip().splitlines()[0]
    if text.startswith(f"{WHO}:"):
        return text
    return f"{WHO}: the {kind} could not be read ({type(reason).__name__}: {text})"
