"""A gathered study from a file that anyone may have made: checked before it is loaded.

HDF5 holds no code, but it can point to other files, ask for plug-ins, or declare more than fits
into memory. All of that is refused, and so is a file that tacit did not gather.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit import store

if TYPE_CHECKING:
    import xarray

WHO = "explore"
MAGIC = b"\x89HDF\r\n\x1a\n"
MOST_BYTES = 200_000_000  # of the file, and of what it declares
MOST_TEXT = 50_000_000  # letters of all texts together
MOST_VARIABLES = 300
FILTERS = (1, 2, 3)  # deflate, shuffle and fletcher32 are part of HDF5; others are plug-ins
BLOCK = 16  # texts read at once: the same long text may be pointed to very often
TEXT_TYPE = re.compile(r"[<>=|]?U(\d{1,5})")
DAMAGED = (KeyError, TypeError, ValueError, AttributeError, OSError, RuntimeError, OverflowError)


def read_study(file: str | Path) -> xarray.Dataset:
    """The gathered study in `file`; anything else is refused with the reason."""
    path = Path(file)
    if not path.is_file():
        raise ValueError(f"{WHO}: there is no file {str(path)!r}")
    if path.stat().st_size > MOST_BYTES:
        raise refused(path, f"has {path.stat().st_size} bytes, more than {MOST_BYTES}")
    with path.open("rb") as opened:
        if opened.read(len(MAGIC)) != MAGIC:
            raise refused(path, "is no netCDF file; give the .nc file that `tacit run` wrote")
    try:
        _inspect(path)
        dataset = store.load(path)
    except Refusal as reason:
        raise refused(path, str(reason)) from None
    except DAMAGED as reason:
        said = (str(reason) or type(reason).__name__).splitlines()[0]
        raise refused(path, f"cannot be read as a study ({said[:200]})") from None
    return _study(path, dataset)


class Refusal(Exception):
    """Why a file is not loaded."""


def refused(path: Path, reason: str) -> ValueError:
    return ValueError(f"{WHO}: {path.name} {reason}")


def _inspect(path: Path) -> None:
    """Raise Refusal unless loading the file is safe."""
    import h5py

    with h5py.File(path, "r") as opened:
        if len(opened) > MOST_VARIABLES:
            raise Refusal(f"holds {len(opened)} variables, more than {MOST_VARIABLES}")
        if opened.attrs.get(store.MARK) != store.VERSION:
            raise Refusal("was not written by tacit")
        declared = sum(_declared(opened, name) for name in opened)
        declared += _fixed_texts(opened)
        if declared > MOST_BYTES:
            raise Refusal(f"declares {declared} bytes, more than {MOST_BYTES}")
        letters = 0
        for name in opened:
            letters = _letters(opened[name], letters)


def _declared(opened: Any, name: str) -> int:
    """The bytes of a variable once it is loaded."""
    import h5py

    if not isinstance(opened.get(name, getlink=True), h5py.HardLink):
        raise Refusal(f"has a link {name[:40]!r} to elsewhere")
    variable = opened[name]
    if not isinstance(variable, h5py.Dataset):
        raise Refusal(f"has a group {name[:40]!r}, which no study has")
    if variable.external or variable.is_virtual:
        raise Refusal(f"keeps {name[:40]!r} in another file")
    plist = variable.id.get_create_plist()
    if any(plist.get_filter(k)[0] not in FILTERS for k in range(plist.get_nfilters())):
        raise Refusal(f"packs {name[:40]!r} with a plug-in")
    kind = variable.dtype.kind
    if kind not in "biuf" and h5py.check_string_dtype(variable.dtype) is None:
        raise Refusal(f"holds in {name[:40]!r} something else than numbers and texts")
    return int(np.prod(variable.shape, dtype=object) or 1) * variable.dtype.itemsize


def _fixed_texts(opened: Any) -> int:
    """The bytes of the texts once they have the width that the file gives them."""
    found = json.loads(opened.attrs[store.LOST])
    total = 0
    for name, dtype in found.items():
        width = TEXT_TYPE.fullmatch(dtype)
        if width is None or name not in opened:
            raise Refusal(f"gives {name[:40]!r} a type that is no text")
        total += 4 * int(width[1]) * int(np.prod(opened[name].shape, dtype=object) or 1)
    return total


def _letters(variable: Any, before: int) -> int:
    """`before` plus the letters of a text variable, unless they grow too many."""
    import h5py

    kind = h5py.check_string_dtype(variable.dtype)
    if kind is None or kind.length is not None:
        return before
    flat = np.ndindex(variable.shape[:-1]) if variable.shape else [()]
    for index in flat:
        last = variable.shape[-1] if variable.shape else 1
        for begin in range(0, last, BLOCK):
            part = (
                variable[(*index, slice(begin, begin + BLOCK))]
                if variable.shape
                else [variable[()]]
            )
            before += sum(map(len, part))
            if before > MOST_TEXT:
                raise Refusal(f"holds more than {MOST_TEXT} letters of text")
    return before


def _study(path: Path, dataset: xarray.Dataset) -> xarray.Dataset:
    """The dataset if `status` says how every cell of its grid ended."""
    status = dataset.get("status")
    if status is None or status.dtype.kind != "U" or "study" not in dataset.attrs:
        raise refused(path, "is a result of tacit, but no gathered study; `tacit show` opens it")
    if not status.dims or not status.size:
        raise refused(path, "is a study without a grid; there is nothing to lay out")
    return dataset
