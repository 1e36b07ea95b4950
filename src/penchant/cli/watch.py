"""`penchant watch`: read a saved record of a training run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from penchant.cli.console import errors_in_one_line, output


@errors_in_one_line
def watch(
    records: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Records written by penchant.watch, .nc or .json."),
    ],
    figure: Annotated[
        Path | None,
        typer.Option(
            help="The picture, .png or .svg; by default FILE.png, or runs.png of several."
        ),
    ] = None,
    no_figure: Annotated[bool, typer.Option("--no-figure", help="Draw nothing.")] = False,
) -> None:
    """Read the record of a watched training run: measurements, regime, verdict and figure.

    \b
    [bold]Examples[/bold]
      penchant watch run.nc                       table, verdicts, and run.png
      penchant watch run.json --figure talk.svg   another file for the picture
      penchant watch run.nc --no-figure           table and verdicts only
      penchant watch a.nc b.nc                    the findings of each, and both in runs.png

    \b
    [bold]In the training loop[/bold] (PyTorch; in JAX add parameters= and call watch(step, params))
      watch = penchant.watch(model, inputs, labels=labels, weight_decay=1e-4)
      for step, batch in enumerate(loader):
          ...
          watch(step, train_loss=loss, test_accuracy=accuracy)
      watch.report("run.nc")

    \b
    The regime is kernel (lazy: the model learns what its linearization learns),
    leaving, or rich. The verdict is one of the kinds of penchant.measures.grokking.
    """
    from penchant.watch.record import read as read_record
    from penchant.watch.reporting import read, save_figure

    if figure and no_figure:
        raise ValueError("watch: give --figure or --no-figure, not both")
    if len(records) > 1:
        return _together(records, None if no_figure else figure or Path("runs.png"))
    (record,) = records
    report = read(read_record(record))
    target = None if no_figure else save_figure(report, figure or record.with_suffix(".png"))
    report.print(output())
    if target:
        typer.echo(f"figure: {target}")
    return None


def _together(records: list[Path], target: Path | None) -> None:
    """Print the findings of every record, and draw all of them in one picture."""
    from penchant.watch.record import read as read_record
    from penchant.watch.reporting import draw_together, read

    named = {str(file.with_suffix("")): read_record(file) for file in records}
    if len(named) < len(records):
        raise ValueError("watch: two of the files have the same name")
    for name, dataset in named.items():
        typer.echo(f"{name}: {read(dataset).headline}")
    if target:
        typer.echo(f"figure: {draw_together(named, target)}")
