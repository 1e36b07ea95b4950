"""`penchant show`: the contents of a saved file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from penchant.cli.claims import print_verdicts
from penchant.cli.console import Verbose, errors_in_one_line, output
from penchant.lab.record import recorded
from penchant.mathematics import in_terminal

if TYPE_CHECKING:
    import xarray


@errors_in_one_line
def show(
    result: Annotated[
        Path, typer.Argument(help="A result (.nc), a verdicts.json, or a report folder.")
    ],
    verbose: Verbose = False,
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
        _show_verdicts(output(), file, verbose)
    else:
        _show_dataset(output(), file)


def _show_verdicts(console: Console, file: Path, verbose: bool) -> None:
    from penchant.lab.evidence.verdict_json import read_verdicts

    verdicts = read_verdicts(file)
    records = recorded(verdict.id for verdict in verdicts)
    print_verdicts(console, verdicts, records, [v.id for v in verdicts] if verbose else ())
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
