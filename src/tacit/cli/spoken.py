"""Wrong input as one red line and exit code 2, and consoles for the two streams."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec

import typer
from rich.console import Console
from rich.text import Text

Given = ParamSpec("Given")
WIDE = 120  # columns for a file or a pipe, which have no width of their own


def output() -> Console:
    """The console for results."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=WIDE)


def chatter() -> Console:
    """The console for progress and complaints, so that a pipe receives results alone."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def spoken(command: Callable[Given, None]) -> Callable[Given, None]:
    """The command with every complaint of the library told in one line instead of a traceback.

    Every command runs in it, so it is also where BLAS gets its one thread.
    """

    @functools.wraps(command)
    def telling(*args: Given.args, **kwargs: Given.kwargs) -> None:
        from tacit.records import NumericalError
        from tacit.threads import one_thread

        try:
            with one_thread(xla=False):
                command(*args, **kwargs)
        except (ValueError, NumericalError, OSError) as error:
            chatter().print(Text(f"error: {error}", style="red"))
            raise typer.Exit(2) from None
        except KeyboardInterrupt:
            chatter().print("interrupted; what was not finished was not written")
            raise typer.Exit(130) from None

    return telling
