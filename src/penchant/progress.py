"""Progress bars of Python calls, in a terminal and in a notebook; computations know none.

`reporting` turns the argument `progress` of a public function into the callback that the function
is given: the caller's own, one that moves a bar, or none. In an interactive session a bar appears
by itself for what takes more than two seconds. A call within another one shows no bar of its own.
"""

from __future__ import annotations

import contextlib
import contextvars
import html
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from penchant.door import Invalid

Report = Callable[[float, str], None]  # the share that is done, and a short text

DELAY = 2.0  # seconds after which a bar appears by itself
EVERY = 0.1  # seconds between two pictures of a bar, at least
LINES = 5.0  # seconds between two lines where there is no terminal

_inside: contextvars.ContextVar[bool] = contextvars.ContextVar("inside", default=False)


@contextlib.contextmanager
def reporting(progress: Any, name: str) -> Iterator[Any]:
    """The callback for `progress`: True is a bar, None one in an interactive session, False none.

    Anything else is the caller's own, and is returned as it is.
    """
    if not (progress is None or isinstance(progress, bool)):
        yield progress
        return
    if not progress and (progress is False or _inside.get() or not interactive()):
        yield None
        return
    bar = ProgressBar(name, 0.0 if progress else DELAY)
    token = _inside.set(True)
    try:
        yield bar
    finally:
        _inside.reset(token)
        bar.close()


def checked(progress: Any) -> Any:
    """`progress` if it is None, True, False or a function."""
    if progress is None or isinstance(progress, bool) or callable(progress):
        return progress
    raise Invalid(f"progress must be True, False or a function, got {progress!r:.80}")


def interactive() -> bool:
    """Whether somebody types at a prompt or in a notebook."""
    return hasattr(sys, "ps1") or _shell() is not None


def _shell() -> Any:
    """The shell of IPython that runs this program, if there is one."""
    module = sys.modules.get("IPython")
    return None if module is None else module.get_ipython()


class ProgressBar:
    """A callback (share, text) that shows a bar once `delay` seconds have passed."""

    def __init__(self, name: str, delay: float, clock: Callable[[], float] = time.monotonic):
        self.name, self.delay, self.clock = name, delay, clock
        self.begun, self.shown = clock(), -1.0
        self.display: Any = None

    def __call__(self, share: float, text: str) -> None:
        now = self.clock()
        if now - self.begun < self.delay or now - self.shown < EVERY:
            return
        self.shown = now
        if self.display is None:
            self.display = _display()
        self.display.update(min(max(share, 0.0), 1.0), f"{self.name}: {text}", now - self.begun)

    def close(self) -> None:
        if self.display is not None:
            self.display.close()


def _display() -> Any:
    """What shows a bar here: a cell of a notebook, a terminal, or lines of text."""
    if hasattr(_shell(), "kernel"):
        return _NotebookBar()
    return _TerminalBar() if sys.stderr.isatty() else _LinesOfProgress()


def left(share: float, seconds: float) -> str:
    """The seconds that are left, if the rest goes on as fast."""
    return f"{seconds * (1 - share) / share:.0f} s left" if share > 0 else ""


class _NotebookBar:
    """A bar below a cell of a notebook, which goes away in the end."""

    def __init__(self) -> None:
        from IPython.display import HTML, display

        self.html = HTML
        self.handle = display(HTML(""), display_id=True)

    def update(self, share: float, text: str, seconds: float) -> None:
        words = html.escape(f"{text}, {share:.0%}, {left(share, seconds)}")
        bar = f"<progress value='{share:.4f}' max='1' style='width: 20em'></progress>"
        self.handle.update(self.html(f"{bar} {words}"))

    def close(self) -> None:
        self.handle.update(self.html(""))


class _TerminalBar:
    """A bar at the bottom of a terminal, which goes away in the end."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[rest]}"))
        console = Console(stderr=True, highlight=False)
        self.bar = Progress(*columns, console=console, transient=True)
        self.bar.start()
        self.task = self.bar.add_task("", total=1.0, rest="")

    def update(self, share: float, text: str, seconds: float) -> None:
        words = text.replace("[", r"\[")
        self.bar.update(self.task, completed=share, description=words, rest=left(share, seconds))

    def close(self) -> None:
        self.bar.stop()


class _LinesOfProgress:
    """Where there is no terminal, a line from time to time."""

    def __init__(self) -> None:
        self.last = -LINES

    def update(self, share: float, text: str, seconds: float) -> None:
        if seconds - self.last >= LINES:
            self.last = seconds
            sys.stderr.write(f"{text}, {share:.0%}, {left(share, seconds)}\n")

    def close(self) -> None:
        sys.stderr.flush()
