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
        list[str] | None, typer.Argument(help="Ids such as W-F1 or W-T1, any case.")
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every picture.")] = False,
    size: Annotated[str, typer.Option(help="quick (seconds) or full (the source's size).")] = (
        "quick"
    ),
    out: Annotated[Path, typer.Option(help="Folder for the files.")] = Path("tacit-figures"),
    format: Annotated[
        list[str] | None, typer.Option("--format", help="png, svg or pdf; may be repeated.")
    ] = None,
    cells: Annotated[
        Path, typer.Option(help="Folder for finished cells, shared with `tacit run`.")
    ] = Path("tacit-studies"),
    engine: Annotated[
        str, typer.Option(help="here, processes, slurm, or a dask scheduler tcp://HOST:PORT.")
    ] = "here",
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Workers; one a core if not given.")
    ] = None,
) -> None:
    """Draw figures and statements of the sources; each picture comes with its data as netCDF.

    \b
    [bold]Examples[/bold]
      tacit figure W-F2                  PNG, SVG and data in tacit-figures/
      tacit figure W-F1 --size full      at the size the source used
      tacit figure --all --format png    every picture, PNG only

    \b
    `tacit list` names the figures. What the source does not print is marked in the caption.
    Finished cells are kept in tacit-studies/: a second call, `tacit run` and
    `tacit verify` take them from there.
    """
    from tacit.papers.experiment import Setting
    from tacit.papers.files import FORMATS
    from tacit.report.write import refuse_unwritable
    from tacit.studies.engines.named import engine_named
    from tacit.studies.sizes import SIZES

    known = _known()
    names = list(known) if all_ else _chosen(ids or [], known)
    formats = [one_of("figure", "format", name, FORMATS) for name in format or _BOTH]
    one_of("figure", "size", size, SIZES)  # everything is checked before anything is made
    engine_named(engine, jobs)
    refuse_unwritable("figure", out)
    refuse_unwritable("figure", cells)
    setting = Setting(size, cells, engine, jobs)  # type: ignore[arg-type]
    absent = []
    for name in names:
        try:
            _make(name, known[name], setting, out, formats)
        except FileNotFoundError as reason:  # its images are not here; the others do not need them
            absent.append(Text(f"error: {name}: {reason}", style="red"))
    for line in absent:
        chatter().print(line)
    raise typer.Exit(2 if absent else 0)


def _known() -> dict[str, Any]:
    """What can be drawn, by id."""
    from tacit.figures import registry
    from tacit.papers.experiment import Experiment
    from tacit.papers.registry import library
    from tacit.sources import in_order

    own = {e.id: e for e in library().experiments() if isinstance(e, Experiment)}
    found = {**registry.figures(), **own}
    return {id: found[id] for id in in_order(found)}


def _make(name: str, entry: Any, setting: Any, out: Path, formats: list[str]) -> None:
    """Draw one figure and say what was written, and what it shows in words."""
    from tacit.cli.run_meter import meter as cells_meter
    from tacit.figures import registry
    from tacit.papers.experiment import Experiment
    from tacit.papers.files import save

    if isinstance(entry, Experiment):
        with cells_meter(name, chatter()) as progress:
            data = entry.data(setting, progress)
        written = save(entry, data, out, formats)
        verdict = entry.verdict(entry.evidence(data), setting.size)
        typer.echo(f"{name}: {', '.join(str(path) for path in written)}")
        typer.echo(f"{name}: {verdict.status}: {verdict.reason}")
        return
    with meter(name, chatter()) as told:
        dataset = registry.make(name, "quick" if setting.size == "quick" else "paper", told)
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
