"""Files on disk: a digest of their content, and whether they were installed."""

from __future__ import annotations

import functools
import hashlib
import os
import site
import stat
import sysconfig
from importlib import metadata
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
    """True within the standard library, a folder of installed packages, or an installed package.

    The last is for folders of any name on PYTHONPATH, such as those of `pip install --target`.
    """
    resolved = file.resolve()
    if {"site-packages", "dist-packages"} & set(resolved.parts):  # PYTHONPATH may name another one
        return True
    if any(resolved.is_relative_to(folder) for folder in library_folders()):
        return True
    return any(
        resolved.relative_to(folder).parts[0] in _installed_into(folder)
        for folder in resolved.parents
    )


@functools.cache
def _installed_into(folder: Path) -> frozenset[str]:
    """The files and folders at the top of `folder` that installers have recorded there."""
    try:
        records = [path / "RECORD" for path in folder.glob("*.dist-info")]
        distributions = [metadata.Distribution.at(path.parent) for path in records if path.exists()]
    except OSError:  # a folder above that may not be listed
        return frozenset()
    files = (file for distribution in distributions for file in distribution.files or ())
    return frozenset(file.parts[0] for file in files if file.parts)


@functools.cache
def library_folders() -> tuple[Path, ...]:
    """Folders of the standard library and of installed packages."""
    paths = sysconfig.get_paths()
    folders = [paths[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")]
    folders += [*site.getsitepackages(), site.getusersitepackages()]
    return tuple(dict.fromkeys(Path(folder).resolve() for folder in folders))
