"""`penchant explore`: a page on this machine with sliders, a saved study and verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from penchant.cli.console import errors_in_one_line, messages

HOME = "127.0.0.1"
FOLDER = Path("penchant-studies")


@errors_in_one_line
def explore(
    study: Annotated[
        str | None,
        typer.Argument(
            help="A finished study (file or name) to show as a phase diagram, or a watched run."
        ),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="A report folder or verdicts.json with claims and figures.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="A table (.csv): the predictor that training selects.")
    ] = None,
    watch: Annotated[
        Path | None, typer.Option(help="The record of a watched run, also while the run goes on.")
    ] = None,
    port: Annotated[int, typer.Option(help="Port; 0 picks a free one.")] = 5006,
    host: Annotated[str, typer.Option(help="Address; any but loopback needs a token.")] = HOME,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="PENCHANT_TOKEN", show_envvar=True, help="Secret that every visit needs."
        ),
    ] = None,
    public: Annotated[
        bool, typer.Option("--public", help="Anybody may visit: no token, any name of the host.")
    ] = False,
    browse: Annotated[bool, typer.Option("--browse", help="Open it in the browser.")] = False,
) -> None:
    """Serve an interactive page: the regularizer, the sphere, regression, grokking, your study.

    \b
    [bold]Examples[/bold]
      penchant explore                              the theory, with sliders
      penchant explore penchant-studies/scale.nc       a study as a phase diagram
      penchant explore ID                           a study from penchant-studies/, by name
      penchant explore --report penchant-report        claims with verdicts and figures
      penchant explore --data mine.csv              your table along the scale
      penchant explore run.nc                       a watched run, while it goes on
      PENCHANT_TOKEN=... penchant explore --host 0.0.0.0

    \b
    Only this machine can open the page, and the page loads nothing from the
    network. The address in the browser describes the current view, so you can
    share it. To open the page from another machine, use
    `ssh -L 5006:localhost:5006 HOST`. With --host and a token the page can be
    reached directly, but the connection is not encrypted.

    \b
    [bold]Keys[/bold]
      Tab                  move from control to control
      arrows               move a slider by one step; Page Up and Down by five
      Home, End            move a slider to its ends

    Ctrl-C stops the server. The page needs the extra `page`: pip install 'penchant\\[page]'.
    """
    from penchant.explore.start import prepared

    with messages().status("preparing the page"):
        finished = _file_of(study) if study else None
        if finished is not None and watch is None and _is_watched(finished):
            finished, watch = None, finished
        files = (finished, report, data, watch)
        page = prepared(*files, host=host, port=port, token=token, public=public)
    typer.echo(f"explore: {page.url}" + ("?token=…" if token else ""))
    typer.echo("Press Ctrl-C to stop.")
    if browse:
        import webbrowser

        page.loop.add_callback(webbrowser.open, page.url)
    try:
        page.run()
    except KeyboardInterrupt:
        typer.echo("ended")


def _is_watched(file: Path) -> bool:
    """Whether a file is the record of a watch."""
    from penchant.explore.views.watched import read_watch

    try:
        read_watch(file)
    except (ValueError, OSError):
        return False
    return True


def _file_of(study: str) -> Path:
    """The file of a finished study, given by its path or by its name."""
    from penchant.lab.registry import all_claims

    names = {name.upper(): name for name in all_claims().studies()}
    if Path(study).exists() or study.upper() not in names:
        return Path(study)
    name = names[study.upper()]
    file = FOLDER / f"{name}.nc"
    if not file.exists():
        raise ValueError(f"explore: {name} is not finished in {FOLDER}; run `penchant run {name}`")
    return file
