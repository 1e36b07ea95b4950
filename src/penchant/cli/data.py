"""`penchant data`: list the image sets, say how to get them, and store them."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from penchant.cli.console import bar, errors_in_one_line, messages, output
from penchant.door import Invalid, door
from penchant.problems.images import cache, import_images
from penchant.problems.images.cache import Status, status
from penchant.problems.images.catalogue import CATALOGUE, ImageSet, find
from penchant.problems.images.download import downloaded


@errors_in_one_line
@door
def data(
    name: Annotated[
        str | None, typer.Argument(help="mnist, fashion-mnist, cifar10 or digits.")
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option("--from", help="A folder or an archive that holds the set: check and store."),
    ] = None,
    fetch: Annotated[bool, typer.Option("--fetch", help="Download the published files.")] = False,
) -> None:
    """List image sets, show where to get one, and check and store it in the cache folder.

    \b
    [bold]Examples[/bold]
      penchant data                    the four sets: status, size, place
      penchant data mnist              how to get it, if it is absent
      penchant data mnist --fetch      download, check, store
      penchant data mnist --from mnist.npz
      penchant data cifar10 --from cifar-10-binary.tar.gz
      penchant data fashion-mnist --from /usr/share/datasets/fashion-mnist

    \b
    A set is stored only if its images and labels are the published ones,
    bit for bit (sha256). `penchant.problems.load_images("mnist")` then reads it.
    Only --fetch uses the network.

    \b
    The cache folder is the system's usual one; set the environment variable
    PENCHANT_CACHE to use another. The exit code is 1 if the named set is absent
    or damaged.
    """
    if name is None:
        if source or fetch:
            raise Invalid("--from and --fetch need the name of a set: penchant data mnist …")
        _list_sets()
        return
    images = find(name)
    if source and fetch:
        raise Invalid("give --from or --fetch, not both")
    if source:
        _import(images, source)
    elif fetch:
        _fetch(images)
    else:
        _print_status(images)


def _list_sets() -> None:
    table = Table("set", "status", "images", "MB", "where", "holds", box=SIMPLE_HEAD)
    table.columns[3].justify = "right"
    with bar("checking", messages()) as progress:
        for done, images in enumerate(CATALOGUE.values(), start=1):
            table.add_row(*_row(images, status(images)))
            if progress:
                progress(done, len(CATALOGUE))
    console = output()
    console.print(table)
    console.print(Text(f"cache folder: {cache.folder()}"), soft_wrap=True)
    console.print("`penchant data NAME` shows how to get a missing set.")


STYLES = {"verified": "green", "absent": "yellow", "damaged": "bold red"}


def _row(images: ImageSet, state: Status) -> list[Text]:
    condition = Text(state.condition, style=STYLES[state.condition])
    size = f"{state.bytes / 1e6:.1f}" if state.bytes else ""
    where = Path(state.where).name if not images.built_in else state.where
    counts = "{} + {}".format(*images.counts)
    return [Text(images.name), condition, *map(Text, (counts, size, where, images.title))]


def _print_status(images: ImageSet) -> None:
    """Print the condition of one set, and how to get it if it is not there."""
    state = status(images)
    lines = [f"{images.name}: {images.title} ({images.credit})"]
    if state.condition == "verified":
        lines += [
            f"verified: {state.where}",
            f'load it with penchant.problems.load_images("{images.name}")',
        ]
    else:
        lines += [f"{state.condition}: {state.reason}", *_ways(images)]
    for line in lines:
        typer.echo(line)
    if state.condition != "verified":
        raise typer.Exit(1)


def _ways(images: ImageSet) -> list[str]:
    """The commands that get a set, as lines."""
    if images.built_in:
        return ["It comes with the extra `data`:", "  pip install 'penchant[data]'"]
    size = sum(file.bytes for file in images.files) / 1e6
    return [
        f"Get it ({size:.1f} MB to download) with",
        f"  penchant data {images.name} --fetch",
        "or from files that you have, in a folder or an archive, with",
        f"  penchant data {images.name} --from FILE_OR_FOLDER",
        "The published files are",
        *(f"  {images.mirrors[0]}{file.name}" for file in images.files),
    ]


def _import(images: ImageSet, source: Path) -> None:
    with messages().status(f"checking and storing {images.name}"):
        file = import_images(images.name, source)
    typer.echo(f"{images.name}: verified and stored in {file}")


def _fetch(images: ImageSet) -> None:
    """Download the published files of a set and import them, unless the set is there already."""
    if images.built_in or status(images).condition == "verified":
        _print_status(images)
        return
    try:
        with ExitStack() as open_folders:
            with bar(images.name, messages()) as progress:
                folder = open_folders.enter_context(downloaded(images, progress))
            _import(images, folder)
    except ImportError as reason:
        raise Invalid(str(reason)) from None
