"""The gathered file on disk: whole or absent; an older one stays if there is no room.

The result of another study that has the same name is kept under a name of its own.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit import store
from tacit.studies.cells import canonical
from tacit.studies.storage.files import CannotWrite

if TYPE_CHECKING:
    import xarray

    from tacit.studies.study import Study


#: what may change in a study without making it another one
SAME_STUDY = ("grid", "seeds", "title", "labels", "draw", "threshold", "refine")


def keep_other(study: Study, file: Path) -> str | None:
    """Give the result of another study of this name, if there is one, another name; say so."""
    if not file.exists():
        return None
    try:
        found = json.loads(store.load(file).attrs["description"])
        if _nature(found) == _nature(study.describe()):
            return None
        mark = _digest(_nature(found).encode())
    except (ValueError, KeyError, OSError):  # not a result of tacit, or a damaged one
        mark = _digest(file.read_bytes())
    kept = file.with_name(f"{study.name}-{mark}.nc")
    for suffix in (".nc", ".html", ".png"):
        own = file.with_name(f"{study.name}{suffix}")
        if own.exists():
            os.replace(own, kept.with_name(f"{study.name}-{mark}{suffix}"))
    return f"{file.name} held another study of this name; it is kept as {kept.name}"


def _nature(description: dict[str, Any]) -> str:
    """What a study computes at any point of its grid, as text."""
    plain = {key: value for key, value in description.items() if key not in SAME_STUDY}
    return canonical(plain)


def _digest(text: bytes) -> str:
    return hashlib.blake2b(text, digest_size=4).hexdigest()


def write_dataset(dataset: xarray.Dataset, file: Path) -> None:
    """Write the gathered file whole, and wait until the disk has it."""
    try:
        store.save(dataset, file)
    except OSError as reason:
        if reason.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise CannotWrite(
            reason.errno,
            f"study: {reason.strerror} for {file}; the cells are safe: make room and run the "
            "same again",
        ) from None
