"""`penchant verify`: check claims, print the table, write the report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, cast

import typer
from rich.console import Console
from rich.text import Text

from penchant.arguments import one_of
from penchant.cli.claims import marked, print_legend, print_verdicts
from penchant.cli.console import (
    Cells,
    Engine,
    Shift,
    Verbose,
    errors_in_one_line,
    interruptible,
    messages,
    output,
)
from penchant.door import door
from penchant.lab.evidence.verdict import SYMBOLS, Verdict
from penchant.lab.experiment import Experiment, Setting
from penchant.lab.record import kept, recorded, write_record
from penchant.lab.registry import all_claims
from penchant.lab.studies.sizes import SIZES, Size
from penchant.lab.verification import gather_verdicts


@errors_in_one_line
@door
def verify(
    ids: Annotated[
        list[str] | None,
        typer.Argument(help="Ids of claims or letters of papers, any case; all claims if omitted."),
    ] = None,
    size: Annotated[
        str, typer.Option(help="quick (two minutes), or printed (as in the source, hours).")
    ] = "quick",
    shift: Shift = 0,
    record: Annotated[
        bool, typer.Option("--record", help="Write each verdict into the record of the papers.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("penchant-report"),
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Number of processes; by default one per core.")
    ] = None,
    report: Annotated[
        bool, typer.Option("--report/--no-report", help="Write the report, or only print.")
    ] = True,
    cells: Cells = Path("penchant-studies"),
    engine: Engine = "here",
    verbose: Verbose = False,
) -> None:
    """Check claims of the theory and print a verdict for each, one line a claim.

    \b
    [bold]Examples[/bold]
      penchant verify                    everything
      penchant verify W                  all claims whose ids begin with W-
      penchant verify ID OTHER-ID --size printed
                                      two claims, at the size of the source
      penchant verify -v                 with statements and corrections
      penchant verify W --shift 1000     with other seeds: do the verdicts stay?

    \b
    A claim holds only if its checks pass, its premises are met and every
    control (the same measurement with a wrong theorem) misses the tolerance.

    \b
    The record holds the verdicts at the size of the source and how many other
    sets of seeds gave the same status; the last column shows its status and size.
    --shift K adds K to every seed and counts the verdicts that keep the status.
    --record adds what was found now.

    \b
    Each cell is written as soon as it is known, into penchant-studies/. After
    Ctrl-C or a crash, the same command computes only the cells that are missing.
    A cell is used again only if the code and the packages that it depends on are
    unchanged; every verdict is judged anew from the cells.

    \b
    [bold]Exit code[/bold]
        0  all claims hold, as printed or as corrected
        1  a claim fails or is inconclusive
        2  wrong usage; nothing was run or written
      130  interrupted; finished cells are kept

    The report is one page, index.html, beside verdicts.json.
    """
    from penchant.lab.report.write import write_report
    from penchant.lab.studies.engines.named import engine_named
    from penchant.lab.writing import refuse_unwritable

    claims = all_claims().select(ids or None)
    engine_named(engine, jobs)  # a wrong name must fail before any work is done
    refuse_unwritable(cells)
    one_of("size", size, SIZES)
    setting = Setting(cast(Size, size), cells, engine, jobs, pictures=report, shift=shift)
    if report:
        refuse_unwritable(out)
    with interruptible("verify"), meter(claims, messages()) as progress:
        keep = _recording(progress) if record else progress
        verdicts = gather_verdicts(claims, setting, jobs, keep)
    records = recorded(verdict.id for verdict in verdicts)
    console = output()
    detailed = [v.id for v in verdicts if verbose or _is_named(v.id, ids)]
    print_verdicts(console, verdicts, records, detailed)
    if len(detailed) < len(verdicts):
        print_legend(console, len(verdicts))
    if shift:
        typer.echo(kept(verdicts, records))
    if report:
        page, _ = write_report(verdicts, out)
        typer.echo(f"report: {page}")
    raise typer.Exit(0 if verdicts.ok else 1)


def _is_named(id: str, names: Sequence[str] | None) -> bool:
    """Whether this claim was asked for by its own id; its details are printed too."""
    return id.upper() in {name.strip().upper() for name in names or ()}


def _recording(progress: Callable[[Verdict], None]) -> Callable[[Verdict], None]:
    """The callback, which also puts each verdict on record as soon as it is known."""

    def keep(verdict: Verdict) -> None:
        write_record(verdict)
        progress(verdict)

    return keep


@contextmanager
def meter(claims: Sequence[Experiment], console: Console) -> Iterator[Callable[[Verdict], None]]:
    """A callback for finished verdicts: a bar on a terminal, elsewhere a line for each."""
    numbers = iter(range(1, len(claims) + 1))

    def line(verdict: Verdict) -> None:
        start = f"{next(numbers)}/{len(claims)} {verdict.id} "
        console.print(Text.assemble(start, marked(verdict.status), f" ({verdict.seconds:.1f} s)"))

    if not console.is_terminal:
        yield line
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as bar:
        task = bar.add_task("verifying", total=len(claims))

        def advance(verdict: Verdict) -> None:
            bar.update(task, advance=1, description=f"{verdict.id} {SYMBOLS[verdict.status]}")

        yield advance
