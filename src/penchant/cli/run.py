"""`penchant run`: run a study, or estimate its cost."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from rich.console import Console
from rich.text import Text

from penchant.cli.console import (
    Bare,
    Changes,
    Csv,
    Engine,
    Formats,
    Jobs,
    Shift,
    Width,
    errors_in_one_line,
    interruptible,
    messages,
    output,
)
from penchant.door import Invalid, door, door_as
from penchant.lab.studies.compute import DOUBTFUL, USABLE
from penchant.lab.studies.engines.complete import RunProgress
from penchant.lab.studies.storage.folder import Done
from penchant.problems.images import cache

if TYPE_CHECKING:
    from penchant.lab.studies.estimate import Estimate
    from penchant.lab.studies.study import Study
    from penchant.plotting.mplstyle import Page


SHOWN = 5  # failed cells, and doubtful ones, whose messages are printed


@errors_in_one_line
@door
def run(
    study: Annotated[
        str | None, typer.Argument(help="A .toml or .py file, or a name from `penchant list`.")
    ] = None,
    size: Annotated[
        str, typer.Option(help="quick, printed, or the name of a form in a TOML study.")
    ] = "quick",
    shift: Shift = 0,
    engine: Engine = "processes",
    jobs: Jobs = None,
    dry: Annotated[
        bool, typer.Option("--dry", help="Only estimate the cells, the time and the disk space.")
    ] = False,
    trust: Annotated[
        bool, typer.Option("--trust", help="Allow a .toml study to run the function it names.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for all files.")] = Path("penchant-studies"),
    format: Formats = None,
    bare: Bare = False,
    width: Width = None,
    csv: Csv = False,
    set_: Changes = None,
) -> None:
    """Run a study: compute every cell of its grid and write one netCDF file.

    \b
    [bold]Examples[/bold]
      penchant run phase-scale-width                a study that comes with penchant
      penchant run phase-scale-width --size paper   the same in its larger form
      penchant run scale.toml --dry                 estimate the cost only
      penchant run scale.toml                       on all cores
      penchant run scale.toml --engine here         in this process
      penchant run scale.toml --engine tcp://10.0.0.1:8786
      penchant run scale.toml --set samples=200     with another value of a parameter
      penchant run scale.toml --bare --width 3.25 --format pdf --csv
                                      the picture for a paper too, and its numbers
      penchant show penchant-studies/scale.nc          show the result (also in scale.html)

    \b
    Each cell is written as soon as it is finished. If a run stops (Ctrl-C, a
    crash, a full disk), the same command computes only the missing cells. A
    cell that fails does not stop the study; the result holds its error message.
    A cell is doubtful if it returns nothing or NaN, or if a path inside it did
    not end well (diverged, ...): its values are kept, and it is listed.

    \b
    A .py study runs as a Python script. A .toml study combines parts of penchant.
    If it names a function of its own, penchant asks before it runs the function
    for the first time; --trust answers yes. --dry computes a few sample cells.

    \b
    [bold]Exit code[/bold]
      0  every cell ended; numerical failures (diverged, ...) and doubtful
         cells count as ended
      1  the code of some cells raised an error
      2  wrong usage, or the disk is full; finished cells are safe
    """
    from penchant.lab.figure_files import read_formats
    from penchant.lab.reading import read_study
    from penchant.lab.studies.changes import changed, read_changes
    from penchant.lab.studies.engines.named import engine_named
    from penchant.lab.writing import refuse_unwritable
    from penchant.plotting.mplstyle import Page

    if study is None:
        raise Invalid("no study is given; name a .toml or .py file, or one of `penchant list`")
    chosen = read_study(study, size, shift=shift, trust=True if trust else confirmed)
    changes, page = read_changes(set_ or []), Page(width, bare)
    formats = read_formats(format or (["png"] if bare or width else []))
    (chosen,) = changed([chosen], changes)
    engine_named(engine, jobs)  # a wrong name must fail before any work is done
    refuse_unwritable(out)
    if dry:
        _print_estimate(chosen, out, engine, jobs)
    else:
        form = "" if size == "quick" else f" --size {size}"
        other = f" --shift {shift}" if shift else ""
        form += "".join(f" --set {text}" for text in set_ or [])
        picture = _PaperPicture(page, formats, csv)
        _run(chosen, out, engine, jobs, f"penchant run {Path(study).name}{form}{other}", picture)


class _PaperPicture(NamedTuple):
    """The picture of a study for a paper: its page and its files, none if there are no formats."""

    page: Page
    formats: list[str]
    csv: bool

    def write(self, dataset: Any, out: Path) -> None:
        """Draw it, and print which files were written."""
        from penchant.lab.figure_files import save_picture
        from penchant.plotting.mplstyle import for_paper
        from penchant.plotting.study.picture import draw_study

        if not (self.formats or self.csv):
            return
        name = f"{dataset.study}-picture"  # the report has a PNG of its own
        with for_paper(self.page.width, bare=self.page.bare):
            written = save_picture(draw_study(dataset), name, out, self.formats, self.csv)
        typer.echo(f"picture: {', '.join(map(str, written))}")


def _run(
    study: Study, out: Path, engine: str, jobs: int | None, command: str, picture: _PaperPicture
) -> None:
    from penchant.lab.studies.run import run as run_study

    console = messages()
    with interruptible(study.name), meter(study.name, console) as progress:
        dataset = run_study(study, out, engine, jobs, progress, command)
    _print_failures(output(), dataset)
    typer.echo(f"{study.name}: {progress.summary()}; {out / f'{study.name}.nc'}")
    with interruptible(study.name):
        _report(console, dataset, out)
        picture.write(dataset, out)
    raise typer.Exit(1 if bool((dataset.status == "error").any()) else 0)


def _report(console: Console, dataset: Any, out: Path) -> None:
    """Write the page and the picture next to the result, and print their paths."""
    from penchant.lab.report.study_page import write_study_report

    written = write_study_report(dataset, out)
    for reason in written.reasons:
        console.print(Text(f"no picture: {reason}"))
    typer.echo(f"report: {written.page}")


def _print_failures(console: Console, dataset: Any) -> None:
    """The first failed and doubtful cells with their messages, and the number of the others."""
    from penchant.lab.studies.gather import has_failed, is_doubtful

    status = dataset.status.values
    for where in (has_failed(status), is_doubtful(status)):
        _print_messages(console, dataset, where)


def _print_messages(console: Console, dataset: Any, where: Any) -> None:
    import numpy as np

    status, places = dataset.status.values, np.argwhere(where)
    for index in map(tuple, places[:SHOWN]):
        position = ", ".join(
            f"{name} = {dataset[name].values[i]}"
            for name, i in zip(dataset.status.dims, index, strict=True)
        )
        line = Text.assemble((f"{status[index]}: ", "yellow"), position)
        console.print(line.append(f": {dataset.sentence.values[index]}"), soft_wrap=True)
    if len(places) > SHOWN:
        rest = f"… and {len(places) - SHOWN} more"
        console.print(f"{rest}; see the variables status and sentence in the file")


def _print_estimate(study: Study, out: Path, engine: str, jobs: int | None) -> None:
    from penchant.lab.studies.engines.named import cores
    from penchant.lab.studies.estimate import estimate

    if study.function is not None:
        messages().print(Text(f"{study.name}: --dry computes sample cells of {study.function}"))
    cost = estimate(study, out)
    workers = 1 if engine == "here" else jobs or (cores() if engine == "processes" else 1)
    for line in _answer(study, cost, workers):
        typer.echo(line)


def _answer(study: Study, cost: Estimate, workers: int) -> list[str]:
    """The output of --dry."""
    axes = " x ".join(
        f"{name} {size}" for name, size in zip(study.dimensions, study.shape, strict=True)
    )
    most = "at most " if cost.at_most else ""
    lines = [
        f"{study.name}: {most}{cost.cells} cells ({axes or 'one'}), {cost.finished} finished",
        f"time: about {duration(cost.wall(workers))} on {workers} worker(s), "
        f"{duration(cost.seconds)} per cell, measured on {cost.basis}",
        f"disk: about {bytes_of(cost.disk)}, {bytes_of(cost.free)} free",
    ]
    if cost.failure:
        lines.append(f"warning: a sample cell failed: {cost.failure}")
    return lines


def duration(seconds: float) -> str:
    """A time in a suitable unit."""
    for least, unit in ((86400.0, "days"), (3600.0, "h"), (60.0, "min"), (1.0, "s")):
        if seconds >= least:
            return f"{seconds / least:.1f} {unit}"
    return f"{seconds * 1e3:.1f} ms"


def bytes_of(count: float) -> str:
    """A number of bytes in a suitable unit."""
    for least, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= least:
            return f"{count / least:.1f} {unit}"
    return f"{count:.0f} bytes"


EVERY = 5.0  # seconds between two lines of progress without a bar


class Shown(RunProgress):
    """Counts the cells that a run reports, and shows the counts."""

    def __init__(self, show: Callable[[Shown], None], say: Callable[[str], None]):
        self.total = self.before = self.ended = self.failed = self.doubtful = 0
        self.show, self.say = show, say

    def begin(self, total: int, finished: Iterable[Done]) -> None:
        cells = list(finished)
        self.total += total
        self.before += len(cells)
        self.done(cells)

    def done(self, cells: Sequence[Done]) -> None:
        self.ended += len(cells)
        self.failed += sum(done.status not in USABLE for done in cells)
        self.doubtful += sum(done.status in DOUBTFUL for done in cells)
        self.show(self)

    def aside(self, sentence: str) -> None:
        self.say(sentence)

    def warn(self, sentence: str) -> None:
        self.say(f"warning: {sentence}")

    def summary(self) -> str:
        computed = self.ended - self.before
        doubtful = f", {self.doubtful} doubtful" if self.doubtful else ""
        return f"{self.total} cells, {computed} computed now, {self.failed} failed{doubtful}"


@contextmanager
def meter(name: str, console: Console) -> Iterator[Shown]:
    """The progress display of a run."""
    if not console.is_terminal:
        yield Shown(_lines(name, console), lambda text: console.print(Text(text)))
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    times = (TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
    with Progress(*columns, *times, console=console, transient=True) as bar:
        task = bar.add_task(name, total=None)

        def show(shown: Shown) -> None:
            text = f"{name}, {shown.failed} failed" if shown.failed else name
            bar.update(task, total=shown.total, completed=shown.ended, description=text)

        yield Shown(show, lambda text: bar.console.print(Text(text)))


def _lines(name: str, console: Console) -> Callable[[Shown], None]:
    """At intervals one line: how many cells ended, how many failed, the time left."""
    start = last = monotonic()

    def show(shown: Shown) -> None:
        nonlocal last
        now = monotonic()
        if now - last < EVERY:
            return
        last = now
        fresh = max(shown.ended - shown.before, 1)
        left = (shown.total - shown.ended) * (now - start) / fresh
        text = f"{name}: {shown.ended}/{shown.total}, {shown.failed} failed, {left:.0f} s left"
        console.print(text)

    return show


def confirmed(path: Path, function: str) -> bool:
    """True if the user agreed before or agrees now; False without a terminal."""
    key = f"{path} {function}"
    known = _remembered()
    if key in known:
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    question = f"{path.name} runs the function {function!r} from a file next to it. Run it?"
    if not typer.confirm(question, err=True):
        return False
    _remember([*known, key])
    return True


def _file() -> Path:
    return cache.folder() / "trusted.json"


def _remembered() -> list[str]:
    try:
        entries = json.loads(_file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return [str(entry) for entry in entries] if isinstance(entries, list) else []


@door_as("run")
def _remember(keys: list[str]) -> None:
    from penchant.store import whole

    _file().parent.mkdir(parents=True, exist_ok=True)
    with whole(_file()) as draft:
        draft.write_text(json.dumps(keys, indent=1), encoding="utf-8")
