"""Data files of a study: those that it names, and those that its cells open without that.

The content of the files that a study names (`inputs=`) is part of the key of its cells. A file that
a cell opens through Python (`open`, pathlib, np.load, pandas) and that the study does not name is
reported, so that it can be named; nothing else depends on that. A file that a library opens in its
own way (HDF5, np.loadtxt, np.fromfile) or that was read before the study was made is not seen, nor
is a look at whether a file exists.
"""

from __future__ import annotations

import builtins
import functools
import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from penchant.lab.studies.code.disk import content, digest_of, is_installed_file
from penchant.threads import Shared

ABSENT = "absent"
SYSTEM = tuple(map(Path, ("/proc", "/sys", "/dev", "/etc", "/run", "/usr", "/lib")))
CODE = (".py", ".pyc", ".pyi", ".so", ".pyd", ".dll")
MOST = 5  # files that one cell reports


def digests(names: Iterable[str]) -> dict[str, str]:
    """Absolute path -> digest of the content of every named file; a folder is all that is in it."""
    return {os.path.abspath(name): _digest(Path(name)) for name in names}


def _digest(path: Path) -> str:
    if not path.exists():
        return ABSENT
    if not path.is_dir():
        return content(str(path)) or "not a plain file"
    files = sorted(file for file in path.rglob("*") if file.is_file())
    lines = "\n".join(f"{file.relative_to(path)} {content(str(file))}" for file in files)
    return digest_of(lines.encode())


_listeners: list[set[str]] = []
_written: set[str] = set()  # by this process: a cell that reads its own file has no input
_at_import: dict[str, set[str]] = {}  # module -> files that were opened while it was imported


def _replace_open() -> Callable[[], None]:
    """Let `open` tell the listeners; no audit hook, which nobody could remove."""
    plain = builtins.open, io.open

    @functools.wraps(plain[0])
    def telling(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        _tell(file, mode)
        return plain[0](file, mode, *args, **kwargs)

    def undo() -> None:
        builtins.open, io.open = plain

    builtins.open = io.open = telling
    return undo


OPEN = Shared(_replace_open)


def _tell(file: Any, mode: Any) -> None:
    if not isinstance(file, str | bytes | os.PathLike):
        return
    name = os.path.abspath(os.fsdecode(file))
    if set(str(mode)) & set("wax+"):
        _written.add(name)
    else:
        for listener in _listeners:
            listener.add(name)


@contextmanager
def opened_files() -> Iterator[set[str]]:
    """A context in which files that are opened for reading are entered into the set."""
    seen: set[str] = set()
    _listeners.append(seen)
    try:
        with OPEN:
            yield seen
    finally:
        _listeners[:] = [listener for listener in _listeners if listener is not seen]


@contextmanager
def importing(module: str) -> Iterator[None]:
    """The same while a module is imported, whose cells then have these files as inputs."""
    with opened_files() as seen:
        yield
    _at_import.setdefault(module, set()).update(seen)


def unnamed(opened: set[str], function: str, named: Mapping[str, str]) -> list[str]:
    """The files that a cell and its module opened, and that the study does not name."""
    every = opened | _at_import.get(function.partition(":")[0], set())
    files = (file for file in sorted(every) if file not in _written and _counts(file))
    return [file for file in files if not any(_within(file, name) for name in named)][:MOST]


def _within(file: str, name: str) -> bool:
    return Path(file).is_relative_to(name)


@functools.cache
def _counts(name: str) -> bool:
    """False for code, for devices, and for files of Python, penchant, the system and of caches."""
    from penchant.problems.images import cache

    file, caches = Path(name), [cache.folder(), cache.folder().parent, *_compiled()]
    python = map(Path, sys.path)  # an archive of modules may be among them
    places = (*SYSTEM, Path(__file__).parents[3], *caches)
    if file.suffix in CODE or is_installed_file(file) or file in python:
        return False
    special = file.exists() and not file.is_file()
    return not special and not any(file.is_relative_to(folder) for folder in places)


def _compiled() -> list[Path]:
    """The folder in which JAX keeps compiled programs, if it has one."""
    jax = sys.modules.get("jax")
    folder = jax and jax.config.jax_compilation_cache_dir
    return [Path(folder)] if folder else []
