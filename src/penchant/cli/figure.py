"""`penchant figure`: draw figures and save their data."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich.text import Text

from penchant.arguments import one_of
from penchant.cli.console import (
    Bare,
    Cells,
    Changes,
    Csv,
    Engine,
    Formats,
    Jobs,
    Shift,
    Width,
    errors_in_one_line,
    messages,
)
from penchant.cli.run import meter
from penchant.door import Invalid, door, door_as
from penchant.lab.experiment import Experiment, Setting, failures
from penchant.lab.registry import Registry, all_claims
from penchant.lab.studies.sizes import SIZES, Size
from penchant.mathematics import in_terminal

if TYPE_CHECKING:
    from penchant.plotting.mplstyle import Page


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
    format: Formats = None,
    bare: Bare = False,
    width: Width = None,
    csv: Csv = False,
    set_: Changes = None,
    points: Annotated[
        Path | None,
        typer.Option(help="A CSV file with points of your own: three features, and a label."),
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
      penchant figure ID --bare --width 3.25 --format pdf
                                      for a column of a paper: no title, fonts inside
      penchant figure ID --set d=200 --csv  with another dimension; the numbers as a table
      penchant figure ID --points mine.csv  your own points, where a figure is about points

    \b
    `penchant list` names the figures. The caption marks what the source does not print.
    Finished cells are kept in penchant-studies/, where later calls of `penchant figure`,
    `penchant run` and `penchant verify` find them.
    """
    from penchant.lab.figure_files import read_formats
    from penchant.lab.studies.changes import read_changes
    from penchant.lab.studies.engines.named import engine_named
    from penchant.lab.writing import refuse_unwritable
    from penchant.plotting.mplstyle import Page

    known = all_claims()
    chosen = known.experiments() if all_ else _chosen(ids or [], known)
    formats = read_formats(format or _BOTH)
    changes, page = read_changes(set_ or []), Page(width, bare)
    one_of("size", size, SIZES)  # everything is checked before anything is made
    engine_named(engine, jobs)
    refuse_unwritable(out)
    refuse_unwritable(cells)
    setting = Setting(cast(Size, size), cells, engine, jobs, shift=shift, changes=changes)
    if points is not None:
        _draw_points(chosen, points, out, formats, page, csv)
        return
    absent = []
    for experiment in chosen:
        try:
            _make(experiment, setting, out, formats, page, csv)
        except _FailedCell as reason:  # its images may be missing; others do not need them
            absent.append(Text(f"error: {experiment.id}: {reason}", style="red"))
    for line in absent:
        messages().print(line)
    raise typer.Exit(2 if absent else 0)


def _draw_points(
    chosen: Iterable[Experiment], file: Path, out: Path, formats: list[str], page: Page, csv: bool
) -> None:
    """Draw the points of a file in each of these pictures."""
    from penchant.lab.figure_files import save_picture
    from penchant.lab.points import read_points
    from penchant.plotting.mplstyle import for_paper

    problem = read_points(file)
    for experiment in chosen:
        with for_paper(page.width, bare=page.bare):
            picture = experiment.picture_of_points(problem)
            name = f"{experiment.id}-{file.stem}"
            written = save_picture(picture, name, out, formats, csv)
        typer.echo(f"{experiment.id}: {', '.join(str(path) for path in written)}")


class _FailedCell(Exception):
    """A picture cannot be drawn, because a cell behind it failed."""


def _make(
    experiment: Experiment, setting: Setting, out: Path, formats: list[str], page: Page, csv: bool
) -> None:
    """Draw one picture; print which files were written and the result of its check."""
    from penchant.lab.figure_files import save_figure
    from penchant.lab.studies.changes import mark_of, words
    from penchant.plotting.mplstyle import for_paper

    with meter(experiment.id, messages()) as progress:
        data = experiment.data(setting, progress)
    failed = failures(data)
    if failed:
        raise _FailedCell(failed[0])
    mark = mark_of(setting.changes)
    try:
        with for_paper(page.width, bare=page.bare):
            written = save_figure(experiment, data, out, formats, table=csv, mark=mark)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        if not setting.changes or isinstance(error, OSError):
            raise
        why = f"{type(error).__name__}: {error}"
        told = f"its picture cannot be drawn with {words(setting.changes)} ({why})"
        raise _FailedCell(told) from None
    typer.echo(f"{experiment.id}: {', '.join(str(path) for path in written)}")
    if setting.changes:  # the claim is about the printed parameters
        return
    verdict = experiment.verdict(experiment.evidence(data), setting.size, setting.shift)
    typer.echo(f"{experiment.id}: {verdict.status}: {in_terminal(verdict.reason)}")


_BOTH = ("png", "svg")


@door_as("figure")
def _chosen(ids: list[str], known: Registry) -> list[Experiment]:
    """The experiments of these ids, each once, in the order given."""
    if not ids:
        raise Invalid("name a figure, or pass --all; `penchant list` names them")
    experiments = (known.find(id) for id in ids)
    return list({experiment.id: experiment for experiment in experiments}.values())
