"""Verdicts as a table in the terminal."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tacit.evidence.evidence import Status
from tacit.evidence.verdict import SYMBOLS, Verdict, Verdicts, shown

STYLES: dict[Status, str] = {
    "holds": "green",
    "holds, proof corrected": "cyan",
    "holds as corrected": "blue",
    "fails": "bold red",
    "inconclusive": "yellow",
}
ROOMY = 110  # columns from which a claim fits on one line


def marked(status: Status) -> Text:
    """The status as symbol and word; the colour only repeats them."""
    return Text(f"{SYMBOLS[status]} {status}", style=STYLES[status])


def print_verdicts(console: Console, verdicts: Verdicts) -> None:
    """Print the table, then what stands behind every status that is not a plain `holds`."""
    console.print(_wide(verdicts) if console.width >= ROOMY else _narrow(verdicts))
    for verdict in verdicts:
        if verdict.status != "holds":
            console.print(_note(verdict), soft_wrap=not console.is_terminal)
    console.print(Text(verdicts.summary, style="bold"))


def _wide(verdicts: Verdicts) -> Table:
    table = Table("id", "status", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("decisive check")
    table.add_column("controls")
    table.add_column("time", justify="right")
    table.add_column("statement", ratio=1)
    for v in verdicts:
        check, took = Text(shown(v.decisive)), f"{v.seconds:.1f} s"
        table.add_row(
            Text(v.id), marked(v.status), check, v.controls_in_brief, took, Text(v.statement)
        )
    return table


def _narrow(verdicts: Verdicts) -> Table:
    table = Table("claim", "status", "decisive check", box=SIMPLE_HEAD, pad_edge=False, leading=1)
    table.columns[0].ratio = 1
    for v in verdicts:
        claim = Text.assemble((v.id, "bold"), "\n", v.statement)
        status = Text.assemble(marked(v.status), (f"\n{v.seconds:.1f} s", "dim"))
        check = Text.assemble(shown(v.decisive), (f"\ncontrols: {v.controls_in_brief}", "dim"))
        table.add_row(claim, status, check)
    return table


def _note(verdict: Verdict) -> Text:
    told = verdict.correction if "corrected" in verdict.status else verdict.reason
    return Text.assemble((verdict.id, "bold"), " ", marked(verdict.status), f": {told}")
