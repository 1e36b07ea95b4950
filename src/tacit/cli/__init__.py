"""The `tacit` command, with one file per subcommand."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from tacit.cli.data import data
from tacit.cli.explore import explore
from tacit.cli.figure import figure
from tacit.cli.listing import listing
from tacit.cli.run import run
from tacit.cli.show import show
from tacit.cli.verify import verify
from tacit.cli.watch import watch

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
        from tacit import __version__

        typer.echo(f"tacit {__version__}")
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
      tacit list                list everything that can be checked or drawn
      tacit verify W-L13        check one claim, in seconds
      tacit verify              check all claims; report in tacit-report/index.html
      tacit figure W-L13        draw its picture as PNG and SVG, and save its data
      tacit run scale.toml      run a study (a grid with seeds) into one file
      tacit explore             open a page with sliders, or your study as a diagram
      tacit show tacit-report   summarise a saved result in the terminal
      tacit data                list the image sets and how to get them
      tacit watch run.nc        read the record of your own training run

    `tacit COMMAND --help` shows more examples.
    """
    for stream in (sys.stdout, sys.stderr):  # a terminal without ✓ shows ?, it does not crash
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
