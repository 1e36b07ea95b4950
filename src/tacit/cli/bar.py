"""A plain progress bar for work that counts its parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console


@contextmanager
def bar(name: str, console: Console) -> Iterator[Callable[[int, int], None] | None]:
    """What the work calls with (done, total): a bar on a terminal, nothing elsewhere."""
    if not console.is_terminal:
        yield None
        return
    from rich.progress import Progress

    with Progress(console=console, transient=True) as shown:
        task = shown.add_task(name, total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)
