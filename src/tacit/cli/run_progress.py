"""What is seen while a study runs: a bar with the time left, or plain lines off a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic

from rich.console import Console
from rich.text import Text

from tacit.studies.compute import OK
from tacit.studies.engines.complete import Progress
from tacit.studies.storage.cache import Done

EVERY = 5.0  # seconds between two lines where there is no bar


class Shown(Progress):
    """Counts what the run tells, and shows it."""

    def __init__(self, show: Callable[[Shown], None], say: Callable[[str], None]):
        self.total = self.before = self.ended = self.failed = 0
        self.show, self.say = show, say

    def begin(self, total: int, finished: Iterable[Done]) -> None:
        found = list(finished)
        self.total += total
        self.before += len(found)
        self.done(found)

    def done(self, cells: Sequence[Done]) -> None:
        self.ended += len(cells)
        self.failed += sum(done.status not in OK for done in cells)
        self.show(self)

    def aside(self, sentence: str) -> None:
        self.say(sentence)

    def summary(self) -> str:
        computed = self.ended - self.before
        return f"{self.total} cells, {computed} computed now, {self.failed} failed"


@contextmanager
def meter(name: str, console: Console) -> Iterator[Shown]:
    """What a run talks to."""
    if not console.is_terminal:
        yield Shown(_lines(name, console), lambda text: console.print(Text(text)))
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    times = (TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
    with Progress(*columns, *times, console=console, transient=True) as bar:
        task = bar.add_task(name, total=None)

        def show(told: Shown) -> None:
            text = f"{name}, {told.failed} failed" if told.failed else name
            bar.update(task, total=told.total, completed=told.ended, description=text)

        yield Shown(show, lambda text: bar.console.print(Text(text)))


def _lines(name: str, console: Console) -> Callable[[Shown], None]:
    """Now and then one line: how many cells ended, how many failed, the time left."""
    start = last = monotonic()

    def show(told: Shown) -> None:
        nonlocal last
        now = monotonic()
        if now - last < EVERY:
            return
        last = now
        fresh = max(told.ended - told.before, 1)
        left = (told.total - told.ended) * (now - start) / fresh
        text = f"{name}: {told.ended}/{told.total}, {told.failed} failed, {left:.0f} s left"
        console.print(text)

    return show
