"""`tacit watch`: what a saved record of a training run says."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.console import errors_in_one_line, output


@errors_in_one_line
def watch(
    record: Annotated[
        Path, typer.Argument(metavar="FILE", help="A record that a watch wrote, .nc or .json.")
    ],
    figure: Annotated[
        Path | None,
        typer.Option(help="The picture, .png or .svg; without it FILE with the suffix .png."),
    ] = None,
    no_figure: Annotated[bool, typer.Option("--no-figure", help="Draw nothing.")] = False,
) -> None:
    """Open the record of a watched training run: its looks, its regime, its verdict, its figure.

    \b
    [bold]Examples[/bold]
      tacit watch run.nc                       table, verdicts, and run.png
      tacit watch run.json --figure talk.svg   the picture elsewhere
      tacit watch run.nc --no-figure           table and verdicts only

    \b
    [bold]In the training loop[/bold] (PyTorch; for JAX give parameters= and pass them on)
      watch = tacit.watch(model, inputs, labels=labels, weight_decay=1e-4)
      for step, batch in enumerate(loader):
          ...
          watch(step, train_loss=loss, test_accuracy=accuracy)
      watch.report("run.nc")

    \b
    The regime is kernel (the model is lazy: what it learns, its linearization
    learns), leaving, or rich. The verdict is a kind of tacit.grokking.
    """
    from tacit.watch.record import load
    from tacit.watch.reporting import read, save_figure

    if figure and no_figure:
        raise ValueError("watch: give --figure or --no-figure, not both")
    found = read(load(record))
    target = None if no_figure else save_figure(found, figure or record.with_suffix(".png"))
    found.print(output())
    if target:
        typer.echo(f"figure: {target}")
