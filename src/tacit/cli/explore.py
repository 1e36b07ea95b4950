"""`tacit explore`: a page on this machine with sliders, a saved study and verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.console import errors_in_one_line, messages

HOME = "127.0.0.1"
FOLDER = Path("tacit-studies")


@errors_in_one_line
def explore(
    study: Annotated[
        str | None,
        typer.Argument(help="A finished study to lay out as a phase diagram: its file or name."),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="A report folder or verdicts.json: claims and figures.")
    ] = None,
    port: Annotated[int, typer.Option(help="Port; 0 takes any that is free.")] = 5006,
    host: Annotated[str, typer.Option(help="Address; other than loopback needs a token.")] = HOME,
    token: Annotated[
        str | None,
        typer.Option(envvar="TACIT_TOKEN", show_envvar=True, help="Word that every visit needs."),
    ] = None,
    browse: Annotated[bool, typer.Option("--browse", help="Open it in the browser.")] = False,
) -> None:
    """Serve a page to play with: the regularizer, the sphere, regression, grokking, your study.

    \b
    [bold]Examples[/bold]
      tacit explore                              the theory, with sliders
      tacit explore tacit-studies/scale.nc       a study as a phase diagram
      tacit explore W-F5                         one that was run into tacit-studies/
      tacit explore --report tacit-report        claims with verdicts and figures
      TACIT_TOKEN=... tacit explore --host 0.0.0.0

    \b
    The page is for this machine alone and loads nothing from elsewhere. The
    address in the browser always holds what is seen, so that it can be shared.
    From another machine, `ssh -L 5006:localhost:5006 HOST` is the safe way; an
    address beyond loopback needs --host and a token, and is not encrypted.

    \b
    [bold]Keys[/bold]
      Tab                  from control to control
      arrows               a slider by one step; Page Up and Down by five
      Home, End            a slider to its ends

    Ctrl-C ends it. It needs the extra `page`: pip install 'tacit\\[page]'.
    """
    from tacit.explore.start import prepared

    with messages().status("preparing the page"):
        page = prepared(_file_of(study) if study else None, report, host, port, token)
    typer.echo(f"explore: {page.url}" + ("?token=…" if token else ""))
    typer.echo("Ctrl-C ends it")
    if browse:
        import webbrowser

        page.loop.add_callback(webbrowser.open, page.url)
    try:
        page.run()
    except KeyboardInterrupt:
        typer.echo("ended")


def _file_of(study: str) -> Path:
    """The file of a finished study, given by its place or by the name it was run under."""
    from tacit.papers.registry import library

    names = {name.upper(): name for name in library().studies()}
    if Path(study).exists() or study.upper() not in names:
        return Path(study)
    name = names[study.upper()]
    file = FOLDER / f"{name}.nc"
    if not file.exists():
        raise ValueError(f"explore: {name} is not finished in {FOLDER}; run `tacit run {name}`")
    return file
