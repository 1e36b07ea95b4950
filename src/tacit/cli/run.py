"""`tacit run`: run a study, or say what it would take."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from tacit.cli.console import errors_in_one_line, messages, output
from tacit.cli.run_progress import meter

if TYPE_CHECKING:
    from tacit.studies.estimate import Estimate
    from tacit.studies.study import Study

SHOWN = 5  # sentences of failed cells


@errors_in_one_line
def run(
    study: Annotated[
        str | None, typer.Argument(help="A .toml or .py file, or a name of `tacit list`.")
    ] = None,
    size: Annotated[
        str, typer.Option(help="quick, full, or a form of a TOML study such as paper.")
    ] = "quick",
    engine: Annotated[
        str, typer.Option(help="here, processes, slurm, or a dask scheduler tcp://HOST:PORT.")
    ] = "processes",
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Workers; one a core if not given.")
    ] = None,
    dry: Annotated[
        bool, typer.Option("--dry", help="Only say how many cells, how long, how much disk.")
    ] = False,
    trust: Annotated[
        bool, typer.Option("--trust", help="Run the function that a .toml study of yours names.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for cells and result.")] = Path("tacit-studies"),
) -> None:
    """Run a study: every cell of its grid, gathered in one netCDF file.

    \b
    [bold]Examples[/bold]
      tacit run phase-scale-width                a study that comes with tacit
      tacit run phase-scale-width --size paper   in its larger form
      tacit run scale.toml --dry                 what it would take
      tacit run scale.toml                       on all cores
      tacit run scale.toml --engine here         in this process
      tacit run scale.toml --engine tcp://10.0.0.1:8786
      tacit show tacit-studies/scale.nc          what came out, also in scale.html

    \b
    Each cell is written when it is finished. Running the same study again
    computes only what is missing, after Ctrl-C, a crash or a full disk too.
    A cell that fails is a row with its sentence.

    \b
    A .py study is run as a script is. A .toml study only puts together what
    tacit has, unless it names a function of its own: then you are asked the
    first time, or say --trust. --dry computes a few sample cells.

    \b
    [bold]Exit code[/bold]
      0  every cell ended, numerical failures (diverged, ...) included
      1  some cells ended with an error of the code
      2  wrong usage, or the disk is full; finished cells are safe
    """
    from tacit.cli.trust import asked
    from tacit.papers.reading import read_study
    from tacit.report.write import refuse_unwritable
    from tacit.studies.engines.named import engine_named

    if study is None:
        raise ValueError("run: name a study: a .toml or .py file, or one that `tacit list` names")
    chosen = read_study(study, size, trust=True if trust else asked)
    engine_named(engine, jobs)  # so that a wrong word is told before anything is done
    refuse_unwritable("run", out)
    if dry:
        _tell(chosen, out, engine, jobs)
    else:
        form = "" if size == "quick" else f" --size {size}"
        _run(chosen, out, engine, jobs, f"tacit run {Path(study).name}{form}")


def _run(study: Study, out: Path, engine: str, jobs: int | None, command: str) -> None:
    from tacit.studies.run import run_study

    console = messages()
    with _interrupted(console, study), meter(study.name, console) as told:
        dataset = run_study(study, out, engine, jobs, told, command)
    _print_failures(output(), dataset)
    typer.echo(f"{study.name}: {told.summary()}; {out / f'{study.name}.nc'}")
    with _interrupted(console, study):
        _report(console, dataset, out)
    raise typer.Exit(1 if bool((dataset.status == "error").any()) else 0)


@contextmanager
def _interrupted(console: Console, study: Study) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        told = "interrupted; finished cells are kept, and the same command goes on"
        console.print(f"{study.name}: {told}")
        raise typer.Exit(130) from None


def _report(console: Console, dataset: Any, out: Path) -> None:
    """Write the page and the picture beside the result, and say where."""
    from tacit.report.study_files import write_study_report

    written = write_study_report(dataset, out)
    for reason in written.reasons:
        console.print(Text(f"no picture: {reason}"))
    typer.echo(f"report: {written.page}")


def _print_failures(console: Console, dataset: Any) -> None:
    """The first failed cells with what they say, and how many more there are."""
    import numpy as np

    from tacit.studies.compute import OK

    status = dataset.status.values
    failed = np.argwhere(~np.isin(status, [*OK, "missing"]))
    for index in map(tuple, failed[:SHOWN]):
        place = ", ".join(
            f"{name} = {dataset[name].values[i]}"
            for name, i in zip(dataset.status.dims, index, strict=True)
        )
        line = Text.assemble((f"{status[index]}: ", "yellow"), place)
        console.print(line.append(f": {dataset.sentence.values[index]}"), soft_wrap=True)
    if len(failed) > SHOWN:
        console.print(f"… and {len(failed) - SHOWN} more; see status and sentence in the file")


def _tell(study: Study, out: Path, engine: str, jobs: int | None) -> None:
    from tacit.studies.engines.named import cores
    from tacit.studies.estimate import estimate

    if study.function is not None:
        messages().print(Text(f"{study.name}: --dry computes sample cells of {study.function}"))
    found = estimate(study, out)
    workers = 1 if engine == "here" else jobs or (cores() if engine == "processes" else 1)
    for line in _lines(study, found, workers):
        typer.echo(line)


def _lines(study: Study, found: Estimate, workers: int) -> list[str]:
    """The answer of --dry."""
    axes = " x ".join(
        f"{name} {size}" for name, size in zip(study.dimensions, study.shape, strict=True)
    )
    most = "at most " if found.at_most else ""
    lines = [
        f"{study.name}: {most}{found.cells} cells ({axes or 'one'}), {found.finished} finished",
        f"time: about {duration(found.wall(workers))} on {workers} worker(s), "
        f"{duration(found.seconds)} a cell by {found.basis}",
        f"disk: about {bytes_of(found.disk)}, {bytes_of(found.free)} free",
    ]
    if found.failure:
        lines.append(f"warning: a sample cell failed: {found.failure}")
    return lines


def duration(seconds: float) -> str:
    """A time in the unit that suits it."""
    for least, unit in ((86400.0, "days"), (3600.0, "h"), (60.0, "min"), (1.0, "s")):
        if seconds >= least:
            return f"{seconds / least:.1f} {unit}"
    return f"{seconds * 1e3:.1f} ms"


def bytes_of(count: float) -> str:
    """A number of bytes in the unit that suits it."""
    for least, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= least:
            return f"{count / least:.1f} {unit}"
    return f"{count:.0f} bytes"
