"""The cache folder: one file per set, whole or absent, checked whenever it is read."""

from __future__ import annotations

import dataclasses
import math
import os
import shutil
import sys
import time
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np

from penchant import store
from penchant.door import Invalid, NotFound, NotInstalled, Unwritable, door
from penchant.problems.images.catalogue import (
    DIGITS,
    PARTS,
    Arrays,
    Bytes,
    ImageSet,
    complaint,
    find,
)
from penchant.problems.images.formats import npy_header
from penchant.records import Record

VARIABLE = "PENCHANT_CACHE"
LARGEST = 2**30  # bytes of a file and of all its arrays; the largest true ones have 184 MB
STALE = 86400.0  # seconds after which a draft or a download has been abandoned
_DAMAGED = (zipfile.BadZipFile, zlib.error, ValueError, KeyError, EOFError, NotImplementedError)


def folder() -> Path:
    """The cache folder: $PENCHANT_CACHE, or `penchant` in the system's folder for caches."""
    if chosen := os.environ.get(VARIABLE):
        return Path(chosen).expanduser()
    return _system_caches() / "penchant"


def _system_caches() -> Path:
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return Path(local) if local else Path.home() / "AppData" / "Local"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    chosen = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return chosen if chosen.is_absolute() else Path.home() / ".cache"  # XDG: relative is invalid


def file_of(images: ImageSet) -> Path:
    """Where the set is kept, whether or not it is there."""
    return folder() / f"{images.name}.npz"


@door
def has_images(name: str) -> bool:
    """Whether the images of this name can be read on this machine.

    Parameters
    ----------
    name
        The name of an image set, as `penchant data` lists them.

    Returns
    -------
    bool
        True if they are in the cache folder or come with a package.

    Examples
    --------
    >>> import penchant
    >>> penchant.problems.has_images("digits")
    True
    """
    images = find(name)
    return images.built_in or file_of(images).exists()


def prepared() -> Path:
    """The cache folder, created if needed and cleared of abandoned files."""
    target = folder()
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as reason:
        raise unwritable(reason) from None
    sweep(target)
    return target


def unwritable(reason: OSError) -> Unwritable:
    """The sentence that says why nothing can be stored, and the way out."""
    return Unwritable(
        f"cannot write to the cache folder {str(folder())!r} "
        f"({reason.strerror or reason}); free it, or set {VARIABLE} to another folder"
    )


def write(images: ImageSet, arrays: Mapping[str, Bytes]) -> Path:
    """Store the arrays of a set under its name, whole or not at all, and return the file."""
    target = prepared() / file_of(images).name
    save: Any = np.savez_compressed if images.compress else np.savez
    try:
        with store.whole(target) as draft, open(draft, "wb") as stream:
            save(stream, **{part: arrays[part] for part in PARTS})
    except OSError as reason:
        raise unwritable(reason) from None
    return target


def read(images: ImageSet) -> Arrays:
    """The arrays of a set from the cache folder or scikit-learn, verified; never a download."""
    if images.built_in:
        return _digits()
    file = file_of(images)
    if not file.exists():
        raise NotFound(
            f"{images.name} is not in the cache folder ({file}); "
            f"`penchant data {images.name}` shows how to get it"
        )
    arrays, wrong = _opened(file)
    wrong = wrong or complaint(images, arrays)
    if wrong:
        raise Invalid(
            f"{file} is damaged ({wrong:.80}); `penchant data {images.name}` shows how to "
            "get it again"
        )
    return arrays


def _digits() -> Arrays:
    """The arrays of the digits, their checksums verified.

    They come without a split; here the last 360 are for testing. Neighbours in the file resemble
    each other, so that this is harder than a random split: the nearest neighbour errs on 4.4% of
    the test images instead of about 1.1%.
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise NotInstalled(
            "the digits are part of scikit-learn, which is not installed; "
            "pip install 'penchant[data]'"
        ) from None
    digits = load_digits()
    images, labels = digits.images.astype(np.uint8)[..., None], digits.target.astype(np.uint8)
    train = DIGITS.counts[0]
    arrays = dict(
        zip(PARTS, (images[:train], labels[:train], images[train:], labels[train:]), strict=True)
    )
    if wrong := complaint(DIGITS, arrays):
        raise Invalid(f"the digits of this scikit-learn are not the known ones ({wrong})")
    return arrays


def _opened(file: Path) -> tuple[Arrays, str]:
    """The arrays of a file, and what is wrong with it."""
    if (size := file.stat().st_size) > LARGEST:
        return {}, f"it has {size} bytes, more than {LARGEST}"
    with open(file, "rb") as stream:
        if not zipfile.is_zipfile(stream):
            return {}, "it is cut short or no .npz file"
        try:
            if wrong := _oversized(stream):
                return {}, wrong
            with np.load(stream, allow_pickle=False) as stored:
                return {part: stored[part] for part in PARTS}, ""
        except _DAMAGED as reason:
            return {}, store.first_line(reason)


def _oversized(stream: Any) -> str:
    """What an .npz file declares beyond any image set; empty if nothing."""
    declared = 0
    with zipfile.ZipFile(stream) as archive:
        for name in PARTS:
            with archive.open(f"{name}.npy") as part:
                shape, dtype = npy_header(part)
            declared += math.prod(shape) * dtype.itemsize
            if declared > LARGEST:
                return f"with {name} it declares {declared} bytes, more than {LARGEST}"
    stream.seek(0)
    return ""


def sweep(directory: Path) -> None:
    """Remove what killed imports and downloads left behind; younger drafts may be in use."""
    for left in (*directory.glob(".*.npz.*.part"), *directory.glob(".fetch-*")):
        try:
            if time.time() - left.stat().st_mtime > STALE:
                shutil.rmtree(left) if left.is_dir() else left.unlink()
        except OSError:
            continue  # somebody else was faster, or owns it: a leftover only takes space


Condition = Literal["verified", "absent", "damaged"]


@dataclasses.dataclass(frozen=True, repr=False)
class Status(Record):
    """How a set is stored: its condition, size in bytes, place, and the fault if there is one."""

    name: str
    condition: Condition
    bytes: int
    where: str
    reason: str = ""


def status(images: ImageSet) -> Status:
    """The condition of a set, found by reading it and verifying its checksums."""
    where, size = _location(images)
    try:
        read(images)
    except FileNotFoundError:
        return Status(images.name, "absent", 0, where, f"there is no file {where}")
    except ImportError:
        return Status(images.name, "absent", 0, where, "scikit-learn is not installed")
    except (ValueError, OSError) as reason:
        return Status(images.name, "damaged", size, where, str(reason))
    return Status(images.name, "verified", size, where)


def _location(images: ImageSet) -> tuple[str, int]:
    if images.built_in:
        return "inside scikit-learn", 0
    file = file_of(images)
    return str(file), file.stat().st_size if file.exists() else 0
