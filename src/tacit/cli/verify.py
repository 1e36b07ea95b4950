"""`tacit verify`: run claims, print the table, write the report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tacit.claims.registry import Claim, ledger
from tacit.claims.run import gather
from tacit.claims.verdict import Verdict, Verdicts
from tacit.cli.spoken import chatter, output, spoken
from tacit.cli.table import marked, print_verdicts


@spoken
def verify(
    ids: Annotated[
        list[str] | None,
        typer.Argument(help="Claim ids (W-T1) or sources (W), any case; none means all."),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Larger instances; takes longer.")] = False,
    out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("tacit-report"),
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes; one a core if not given.")
    ] = None,
    report: Annotated[
        bool, typer.Option("--report/--no-report", help="Write the report, or only print.")
    ] = True,
) -> None:
    """Run claims against the theory and print a verdict for each.

    \b
    [bold]Examples[/bold]
      tacit verify                    everything
      tacit verify W                  all claims of source W
      tacit verify W-T1 W-T2 --full   two claims, on larger instances

    \b
    A claim holds only if its checks pass, its premises are met and every
    control (the same measurement with a wrong theorem) misses the tolerance.

    \b
    [bold]Exit code[/bold]
      0  all claims hold, as printed or as corrected
      1  a claim fails or is inconclusive
      2  wrong usage; nothing was run or written

    The report is one page, index.html, beside verdicts.json.
    """
    from tacit.report.write import refuse_unwritable, write_report

    claims = ledger.select(ids or None)
    if not claims:
        raise ValueError("verify: no claims are registered; install tacit with its claims folder")
    if report:
        refuse_unwritable("verify", out)
    with meter(claims, chatter()) as progress:
        verdicts = gather(claims, "full" if full else "quick", jobs, progress)
    print_verdicts(output(), verdicts)
    if report:
        page, _ = write_report(verdicts, out)
        typer.echo(f"report: {page}")
    raise typer.Exit(exit_code(verdicts))


def exit_code(verdicts: Verdicts) -> int:
    """0 if every claim holds, as printed or as corrected, else 1."""
    return 0 if verdicts.ok else 1


@contextmanager
def meter(claims: Sequence[Claim], console: Console) -> Iterator[Callable[[Verdict], None]]:
    """What to call with each finished verdict: a bar on a terminal, plain lines elsewhere."""
    if not console.is_terminal:
        yield _lines(len(claims), console)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as bar:
        task = bar.add_task("verifying", total=len(claims))

        def advance(verdict: Verdict) -> None:
            bar.update(task, advance=1, description=f"{verdict.id} {verdict.status}")

        yield advance


def _lines(total: int, console: Console) -> Callable[[Verdict], None]:
    done = iter(range(1, total + 1))

    def line(verdict: Verdict) -> None:
        took = f"({verdict.seconds:.1f} s)"
        console.print(f"{next(done)}/{total} {verdict.id}", marked(verdict.status), took, sep=" ")

    return line
