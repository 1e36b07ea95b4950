"""The files that cells read: seen while they are opened, kept with the cells, compared later.

A file that a cell reads through Python (`open`, numpy, pandas) is noticed; one that a library opens
by itself (HDF5) is not. Files of Python, of installed packages and of the system do not count.
"""

from __future__ import annotations

import functools
import hashlib
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tacit.studies.code.definitions import library_folders

SYSTEM = tuple(map(Path, ("/proc", "/sys", "/dev", "/etc", "/run", "/usr", "/lib")))
CODE = (".py", ".pyc", ".pyi", ".so", ".pyd", ".dll")
_opened: set[str] = set()  # by cells of this process so far: a loader may keep what it read
_depth = 0


@contextmanager
def noticed() -> Iterator[None]:
    """A context in which files that are opened for reading are noticed."""
    global _depth
    _listen()
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1


@functools.cache
def _listen() -> None:
    # it cannot be removed, so it is added once and does nothing outside
    sys.addaudithook(_note_open)


def _note_open(event: str, arguments: tuple[Any, ...]) -> None:
    if _depth and event == "open":
        file, mode, flags = arguments
        reads = mode is None or not set(str(mode)) & set("wax+")
        writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR)
        if reads and not writes and isinstance(file, str | bytes | os.PathLike):
            _opened.add(os.path.abspath(os.fsdecode(file)))


def inputs() -> dict[str, str]:
    """File -> digest of its content, of every file that cells of this process have read."""
    found = {file: content(file) for file in sorted(_opened) if _counts(file)}
    return {file: digest for file, digest in found.items() if digest}


def changed(digests: Mapping[str, str]) -> str | None:
    """The first file whose content has changed; a file that is gone does not count."""
    for file, digest in digests.items():
        now = content(file)
        if now and now != digest:
            return file
    return None


@functools.cache
def _counts(name: str) -> bool:
    folders, file = (*library_folders(), *SYSTEM, Path(__file__).parents[1]), Path(name)
    return file.suffix not in CODE and not any(file.is_relative_to(folder) for folder in folders)


def content(file: str) -> str:
    """The digest of a regular file; empty for anything else."""
    try:
        seen = os.stat(file)
        if not stat.S_ISREG(seen.st_mode):
            return ""
        return _content(file, seen.st_size, seen.st_mtime_ns)
    except OSError:
        return ""


@functools.lru_cache(maxsize=4096)
def _content(file: str, size: int, when: int) -> str:
    with open(file, "rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=8)).hexdigest()
