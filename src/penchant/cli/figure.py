"""`penchant figure`: draw figures and save their data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, cast

import typer
from rich.text import Text

from penchant.arguments import one_of
from penchant.cli.console import Cells, Engine, Jobs, Shift, errors_in_one_line, messages
from penchant.cli.run import meter
from penchant.door import Invalid, door, door_as
from penchant.lab.experiment import Experiment, Setting, failures
from penchant.lab.registry import Registry, all_claims
from penchant.lab.studies.sizes import SIZES, Size
from penchant.mathematics import in_terminal


@errors_in_one_line
@door
def figure(
    ids: Annotated[
        list[str] | None, typer.Argument(help="Ids of `penchant list`, any case.")
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every picture.")] = False,
    size: Annotated[str, typer.Option(help="quick (seconds) or printed (as in the source).")] = (
        "quick"
    ),
    shift: Shift = 0,
    out: Annotated[Path, typer.Option(help="Folder for the files.")] = Path("penchant-figures"),
    format: Annotated[
        list[str] | None, typer.Option("--format", help="png, svg or pdf; may be repeated.")
    ] = None,
    cells: Cells = Path("penchant-studies"),
    engine: Engine = "here",
    jobs: Jobs = None,
) -> None:
    """Draw figures and statements of the sources, and save the data of each as netCDF.

    \b
    [bold]Examples[/bold]
      penchant figure ID                    PNG, SVG and data in penchant-figures/
      penchant figure ID --size printed     at the size of the source
      penchant figure ID --shift 1000       with other seeds
      penchant figure --all --format png    every picture, PNG only

    \b
    `penchant list` names the figures. The caption marks what the source does not print.
    Finished cells are kept in penchant-studies/, where later calls of `penchant figure`,
    `penchant run` and `penchant verify` find them.
    """
    from penchant.lab.figure_files import FORMATS
    from penchant.lab.studies.engines.named import engine_named
    from penchant.lab.writing import refuse_unwritable

    known = all_claims()
    chosen = known.experiments() if all_ else _chosen(ids or [], known)
    formats = [one_of("format", name, FORMATS) for name in format or _BOTH]
    one_of("size", size, SIZES)  # everything is checked before anything is made
    engine_named(engine, jobs)
    refuse_unwritable(out)
    refuse_unwritable(cells)
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
    from penchant.lab.figure_files import save_figure

    with meter(experiment.id, messages()) as progress:
        data = experiment.data(setting, progress)
    failed = failures(data)
    if failed:
        raise _FailedCell(failed[0])
    written = save_figure(experiment, data, out, formats)
    verdict = experiment.verdict(experiment.evidence(data), setting.size, setting.shift)
    typer.echo(f"{experiment.id}: {', '.join(str(path) for path in written)}")
    typer.echo(f"{experiment.id}: {verdict.status}: {in_terminal(verdict.reason)}")


_BOTH = ("png", "svg")


@door_as("figure")
def _chosen(ids: list[str], known: Registry) -> list[Experiment]:
    """The experiments of these ids, each once, in the order given."""
    if not ids:
        raise Invalid("name a figure, or pass --all; `penchant list` names them")
    experiments = (known.find(id) for id in ids)
    return list({experiment.id: experiment for experiment in experiments}.values())
