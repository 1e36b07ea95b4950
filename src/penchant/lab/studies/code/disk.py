"""Files on disk: a digest of their content, and whether they were installed."""

from __future__ import annotations

import functools
import hashlib
import os
import site
import stat
import sysconfig
from pathlib import Path


def content(file: str) -> str:
    """The digest of a regular file; empty for anything else."""
    try:
        seen = os.stat(file)
        if not stat.S_ISREG(seen.st_mode):
            return ""
        return _content(file, seen.st_size, seen.st_mtime_ns, seen.st_ino)
    except OSError:
        return ""


@functools.lru_cache(maxsize=8192)
def _content(file: str, size: int, when: int, inode: int) -> str:
    with open(file, "rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=8)).hexdigest()


def digest_of(text: bytes) -> str:
    return hashlib.blake2b(text, digest_size=6).hexdigest()


def is_installed_file(file: Path) -> bool:
    """True within the standard library or a folder of installed packages."""
    resolved = file.resolve()
    if {"site-packages", "dist-packages"} & set(resolved.parts):  # PYTHONPATH may name another one
        return True
    return any(resolved.is_relative_to(folder) for folder in library_folders())


@functools.cache
def library_folders() -> tuple[Path, ...]:
    """Folders of the standard library and of installed packages."""
    paths = sysconfig.get_paths()
    folders = [paths[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")]
    folders += [*site.getsitepackages(), site.getusersitepackages()]
    return tuple(dict.fromkeys(Path(folder).resolve() for folder in folders))
