"""The `penchant` command, with one file per subcommand."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from penchant.cli.data import data
from penchant.cli.explore import explore
from penchant.cli.figure import figure
from penchant.cli.listing import listing
from penchant.cli.run import run
from penchant.cli.show import show
from penchant.cli.verify import verify
from penchant.cli.watch import watch

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("verify")(verify)
app.command("figure")(figure)
app.command("run")(run)
app.command("explore")(explore)
app.command("list")(listing)
app.command("show")(show)
app.command("data")(data)
app.command("watch")(watch)


def _version(requested: bool) -> None:
    if requested:
        from penchant import __version__

        typer.echo(f"penchant {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Check the theory of implicit bias on your own machine: claims, figures, results.

    \b
    [bold]Start here[/bold]
      penchant list                list everything that can be checked or drawn
      penchant verify ID           check one claim, in seconds
      penchant verify              check all claims; report in penchant-report/index.html
      penchant figure ID           draw its picture as PNG and SVG, and save its data
      penchant run scale.toml      run a study (a grid with seeds) into one file
      penchant explore             open a page with sliders, or your study as a diagram
      penchant show penchant-report   summarise a saved result in the terminal
      penchant data                list the image sets and how to get them
      penchant watch run.nc        read the record of your own training run

    `penchant COMMAND --help` shows more examples.
    """
    for stream in (sys.stdout, sys.stderr):  # a terminal without ✓ shows ?, it does not crash
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
