"""What commands share: options, consoles for both streams, wrong input as one red line."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, ParamSpec

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

Given = ParamSpec("Given")
WIDE = 120  # columns for a file or a pipe, which have no width

Engine = Annotated[
    str, typer.Option(help="here, processes, slurm, or a dask scheduler tcp://HOST:PORT.")
]
Jobs = Annotated[
    int | None, typer.Option(min=1, help="Number of workers; by default one per core.")
]
Shift = Annotated[
    int, typer.Option(min=0, help="A number that is added to every seed: other draws.")
]
Bare = Annotated[bool, typer.Option("--bare", help="No title and no caption, as in a paper.")]
Width = Annotated[
    float | None,
    typer.Option(help="Width in inches, in small type; 3.25 is a column."),
]
Formats = Annotated[
    list[str] | None, typer.Option("--format", help="png, svg, pdf; several: pdf,svg.")
]
Csv = Annotated[bool, typer.Option("--csv", help="Also the numbers that the picture shows.")]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", help="A parameter instead of its own value, as d=200; may be repeated."),
]
Verbose = Annotated[
    bool, typer.Option("-v", "--verbose", help="Statements, corrections and records too.")
]
Cells = Annotated[Path, typer.Option(help="Folder for finished cells, shared with `penchant run`.")]


class PlainConsole(Console):
    """A console that shows control characters in a text instead of obeying them."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            if segment.control or segment.text.translate(LINES).isprintable():
                yield segment
            else:
                yield Segment(segment.text.translate(VISIBLE), segment.style)


LINES = {ord(character): " " for character in "\n\t"}
VISIBLE = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if code not in LINES}


def output() -> Console:
    """The console for results."""
    console = PlainConsole(highlight=False)
    return console if console.is_terminal else PlainConsole(highlight=False, width=WIDE)


def messages() -> Console:
    """The console for progress and errors, so that a pipe receives only the results."""
    return PlainConsole(stderr=True, highlight=False, soft_wrap=True)


def errors_in_one_line(command: Callable[Given, None]) -> Callable[Given, None]:
    """The command, with errors of the library printed as one line instead of a traceback.

    Every command runs inside it, so it also limits BLAS to one thread.
    """

    @functools.wraps(command)
    def guarded(*args: Given.args, **kwargs: Given.kwargs) -> None:
        from penchant.records import NumericalError
        from penchant.threads import one_thread

        try:
            with one_thread(xla=False):
                command(*args, **kwargs)
        except (ValueError, NumericalError, OSError) as error:
            messages().print(Text(f"error: {error}", style="red"))
            raise typer.Exit(2) from None
        except KeyboardInterrupt:
            messages().print("interrupted; unfinished work was not written")
            raise typer.Exit(130) from None

    return guarded


@contextmanager
def interruptible(name: str) -> Iterator[None]:
    """A block of work whose finished cells are on disk when Ctrl-C ends it."""
    try:
        yield
    except KeyboardInterrupt:
        message = "interrupted; finished cells are kept; run the same command to continue"
        messages().print(f"{name}: {message}")
        raise typer.Exit(130) from None


@contextmanager
def bar(name: str, console: Console) -> Iterator[Callable[[int, int], None] | None]:
    """A callback for (done, total): it draws a bar on a terminal and does nothing elsewhere."""
    if not console.is_terminal:
        yield None
        return
    from rich.progress import Progress

    with Progress(console=console, transient=True) as shown:
        task = shown.add_task(name, total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)
