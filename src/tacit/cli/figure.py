"""`tacit figure`: draw figures and save their data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, cast

import typer
from rich.text import Text

from tacit.arguments import one_of
from tacit.cli.console import Cells, Engine, Jobs, Shift, errors_in_one_line, messages
from tacit.cli.run import meter
from tacit.papers.experiment import Experiment, Setting, failures
from tacit.papers.registry import Registry, library
from tacit.studies.sizes import SIZES, Size


@errors_in_one_line
def figure(
    ids: Annotated[list[str] | None, typer.Argument(help="Ids of `tacit list`, any case.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every picture.")] = False,
    size: Annotated[str, typer.Option(help="quick (seconds) or printed (as in the source).")] = (
        "quick"
    ),
    shift: Shift = 0,
    out: Annotated[Path, typer.Option(help="Folder for the files.")] = Path("tacit-figures"),
    format: Annotated[
        list[str] | None, typer.Option("--format", help="png, svg or pdf; may be repeated.")
    ] = None,
    cells: Cells = Path("tacit-studies"),
    engine: Engine = "here",
    jobs: Jobs = None,
) -> None:
    """Draw figures and statements of the sources, and save the data of each as netCDF.

    \b
    [bold]Examples[/bold]
      tacit figure W-L13                 PNG, SVG and data in tacit-figures/
      tacit figure W-L13 --size printed  at the size of the source
      tacit figure W-L13 --shift 1000    with other seeds
      tacit figure --all --format png    every picture, PNG only

    \b
    `tacit list` names the figures. The caption marks what the source does not print.
    Finished cells are kept in tacit-studies/, where later calls of `tacit figure`,
    `tacit run` and `tacit verify` find them.
    """
    from tacit.papers.files import FORMATS
    from tacit.report.write import refuse_unwritable
    from tacit.studies.engines.named import engine_named

    known = library()
    chosen = known.experiments() if all_ else _chosen(ids or [], known)
    formats = [one_of("figure", "format", name, FORMATS) for name in format or _BOTH]
    one_of("figure", "size", size, SIZES)  # everything is checked before anything is made
    engine_named(engine, jobs)
    refuse_unwritable("figure", out)
    refuse_unwritable("figure", cells)
    setting = Setting(cast(Size, size), cells, engine, jobs, shift=shift)
    absent = []
    for experiment in chosen:
        try:
            _make(experiment, setting, out, formats)
        except _FailedCell as reason:  # its images may be missing; others do not need them
            absent.append(Text(f"error: {experiment.id}: {reason}", style="red"))
    for line in absent:
        messages().print(line)
    raise typer.Exit(2 if absent else 0)


class _FailedCell(Exception):
    """A picture cannot be drawn, because a cell behind it failed."""


def _make(experiment: Experiment, setting: Setting, out: Path, formats: list[str]) -> None:
    """Draw one picture; print which files were written and the result of its check."""
    from tacit.papers.files import save

    with meter(experiment.id, messages()) as progress:
        data = experiment.data(setting, progress)
    failed = failures(data)
    if failed:
        raise _FailedCell(failed[0])
    written = save(experiment, data, out, formats)
    verdict = experiment.verdict(experiment.evidence(data), setting.size, setting.shift)
    typer.echo(f"{experiment.id}: {', '.join(str(path) for path in written)}")
    typer.echo(f"{experiment.id}: {verdict.status}: {verdict.reason}")


_BOTH = ("png", "svg")


def _chosen(ids: list[str], known: Registry) -> list[Experiment]:
    """The experiments of these ids, each once, in the order given."""
    if not ids:
        raise ValueError("figure: name a figure, or pass --all; `tacit list` names them")
    found = (known.find(id, "figure") for id in ids)
    return list({experiment.id: experiment for experiment in found}.values())
