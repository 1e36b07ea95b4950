"""`penchant show`: the contents of a saved file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from penchant.cli.console import errors_in_one_line, output
from penchant.lab.evidence.evidence import Status
from penchant.lab.evidence.verdict import SYMBOLS, Verdict, Verdicts, shown
from penchant.mathematics import in_terminal

if TYPE_CHECKING:
    import xarray

    from penchant.lab.record import Recorded


@errors_in_one_line
def show(
    result: Annotated[
        Path, typer.Argument(help="A result (.nc), a verdicts.json, or a report folder.")
    ],
) -> None:
    """Summarise a saved result: sizes, variables with units, and where it came from.

    \b
    [bold]Examples[/bold]
      penchant show penchant-report
      penchant show penchant-figures/ID.nc

    A file that is damaged or was not written by penchant is rejected.
    """
    file = result / "verdicts.json" if result.is_dir() else result
    if not file.exists():
        raise ValueError(f"show: there is no file {str(file)!r}")
    if file.suffix == ".json":
        _show_verdicts(output(), file)
    else:
        _show_dataset(output(), file)


def _show_verdicts(console: Console, file: Path) -> None:
    from penchant.lab.evidence.verdict_json import read_verdicts

    verdicts = read_verdicts(file)
    print_verdicts(console, verdicts)
    console.print(", ".join(f"{name} {number}" for name, number in verdicts.versions.items()))


def _show_dataset(console: Console, file: Path) -> None:
    from penchant import store

    dataset: xarray.Dataset = store.read(file)
    sizes = ", ".join(f"{name} {size}" for name, size in dataset.sizes.items())
    console.print(Text(f"{file}: {sizes or 'no dimensions'}", style="bold"))
    console.print(_variables(dataset))
    for name, value in dataset.attrs.items():
        console.print(Text.assemble((f"{name}: ", "bold"), in_terminal(str(value))), soft_wrap=True)


def _variables(dataset: xarray.Dataset) -> Table:
    table = Table("variable", "dimensions", "units", "range", "meaning", box=SIMPLE_HEAD)
    for name, variable in dataset.variables.items():
        note = variable.attrs
        meaning = note.get("description") or note.get("long_name") or ""
        cells = (name, ", ".join(map(str, variable.dims)), note.get("units", ""), _range(variable))
        table.add_row(*(Text(str(cell)) for cell in (*cells, in_terminal(str(meaning)))))
    return table


def _range(variable: Any) -> str:
    """Smallest to largest finite value, or the kind of the values."""
    import numpy as np

    values = np.asarray(variable.values)
    if values.dtype.kind not in "fiu":
        return str(values.dtype)
    finite = values[np.isfinite(values)]
    return f"{finite.min():.4g} to {finite.max():.4g}" if finite.size else "no finite values"


STYLES: dict[Status, str] = {
    "holds": "green",
    "holds, proof corrected": "cyan",
    "holds as corrected": "blue",
    "fails": "bold red",
    "inconclusive": "yellow",
}
WIDE_COLUMNS = 110  # a claim fits on one line of at least this many columns


def marked(status: Status) -> Text:
    """The status as a symbol and a word; the colour adds no information."""
    return Text(f"{SYMBOLS[status]} {status}", style=STYLES[status])


def print_verdicts(
    console: Console, verdicts: Verdicts, records: Mapping[str, Recorded] | None = None
) -> None:
    """Print the table, then the reason for every status that is not a plain `holds`."""
    known = records or {}
    wide = console.width >= WIDE_COLUMNS
    console.print(_wide(verdicts, known) if wide else _narrow(verdicts, known))
    for verdict in verdicts:
        if verdict.status != "holds":
            console.print(_note(verdict), soft_wrap=not console.is_terminal)
    console.print(Text(verdicts.summary, style="bold"))


def _on_record(verdict: Verdict, known: Mapping[str, Recorded]) -> Text:
    """Status, size and survival on record; what differs from today's status is red."""
    record = known.get(verdict.id)
    if record is None or record.status is None:
        return Text("none", style="dim")
    style = "dim" if record.status == verdict.status else "bold red"
    text = f"{SYMBOLS[record.status]} {record.largest}"
    return Text(f"{text}, {record.survival}" if record.shifts else text, style=style)


def _wide(verdicts: Verdicts, known: Mapping[str, Recorded]) -> Table:
    heads = ("id", "status", "on record", "decisive check", "controls")
    table = Table(*heads, box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("time", justify="right")
    table.add_column("statement", ratio=1)
    for v in verdicts:
        check, statement = Text(shown(v.decisive)), Text(in_terminal(v.statement))
        took = f"{v.seconds:.1f} s"
        stand = (Text(v.id), marked(v.status), _on_record(v, known))
        table.add_row(*stand, check, v.controls_in_brief, took, statement)
    return table


def _narrow(verdicts: Verdicts, known: Mapping[str, Recorded]) -> Table:
    table = Table("claim", "status", "decisive check", box=SIMPLE_HEAD, pad_edge=False, leading=1)
    table.columns[0].ratio = 1
    for v in verdicts:
        claim = Text.assemble((v.id, "bold"), "\n", in_terminal(v.statement))
        record = Text.assemble("on record: ", _on_record(v, known))
        status = Text.assemble(marked(v.status), (f"\n{v.seconds:.1f} s\n", "dim"), record)
        check = Text.assemble(shown(v.decisive), (f"\ncontrols: {v.controls_in_brief}", "dim"))
        table.add_row(claim, status, check)
    return table


def _note(verdict: Verdict) -> Text:
    explanation = verdict.correction if "corrected" in verdict.status else verdict.reason
    return Text.assemble(
        (verdict.id, "bold"), " ", marked(verdict.status), f": {in_terminal(explanation or '')}"
    )
