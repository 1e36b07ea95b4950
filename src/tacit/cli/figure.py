"""`tacit figure`: make figures, with their data beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from tacit.arguments import one_of
from tacit.cli.spoken import chatter, spoken


@spoken
def figure(
    ids: Annotated[
        list[str] | None, typer.Argument(help="Figure ids such as W-F1, any case.")
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every figure.")] = False,
    preset: Annotated[
        str, typer.Option(help="quick (seconds) or paper (the source's size).")
    ] = "quick",
    out: Annotated[Path, typer.Option(help="Folder for the files.")] = Path("tacit-figures"),
    format: Annotated[
        list[str] | None, typer.Option("--format", help="png, svg or pdf; may be repeated.")
    ] = None,
) -> None:
    """Draw figures of the sources; each picture comes with its data as netCDF.

    \b
    [bold]Examples[/bold]
      tacit figure W-F2                  PNG, SVG and data in tacit-figures/
      tacit figure W-F1 --preset paper   at the size the source used
      tacit figure --all --format png    every figure, PNG only

    `tacit list` names the figures. What the source does not print is marked in the caption.
    """
    from tacit.figures import registry
    from tacit.report.write import refuse_unwritable

    known = registry.figures()
    names = list(known) if all_ else _chosen(ids or [], known)
    formats = [one_of("figure", "format", name, registry.FORMATS) for name in format or _BOTH]
    for name in names:  # everything is checked before anything is made
        one_of(f"figure {name}", "preset", preset, known[name].presets)
    refuse_unwritable("figure", out)
    absent = []
    for name in names:
        try:
            _make(name, preset, out, formats)
        except FileNotFoundError as reason:  # its images are not here; the others do not need them
            absent.append(Text(f"error: {name}: {reason}", style="red"))
    for line in absent:
        chatter().print(line)
    raise typer.Exit(2 if absent else 0)


def _make(name: str, preset: str, out: Path, formats: list[str]) -> None:
    """Draw one figure and say what was written, and what it shows in words."""
    from tacit.figures import registry

    with meter(name, chatter()) as progress:
        dataset = registry.make(name, preset, progress)
        written = registry.save(name, dataset, out, formats)
    typer.echo(f"{name}: {', '.join(str(path) for path in written)}")
    if "summary" in dataset.attrs:
        typer.echo(dataset.attrs["summary"])


_BOTH = ("png", "svg")


def _chosen(ids: list[str], known: Mapping[str, Any]) -> list[str]:
    """The figures as the registry spells them, each once, in the order given."""
    if not ids:
        raise ValueError("figure: name a figure, or pass --all; `tacit list` names them")
    spelled = {name.upper(): name for name in known}
    found = [
        spelled.get(name.strip().upper()) or one_of("figure", "id", name, known) for name in ids
    ]
    return list(dict.fromkeys(found))


@contextmanager
def meter(name: str, console: Console) -> Iterator[Callable[[int, int], None] | None]:
    """What the figure calls with (done, total): a bar on a terminal, nothing elsewhere."""
    if not console.is_terminal:
        yield None
        return
    from rich.progress import Progress

    with Progress(console=console, transient=True) as bar:
        task = bar.add_task(name, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
