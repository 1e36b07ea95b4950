"""HDF5 files from anyone, inspected before anything in them is read.

HDF5 holds no code, but it can point to other files, require plug-ins, or declare more than fits
into memory. All of that is refused, and so is a file that penchant did not write.
"""

from __future__ import annotations

import re
import stat
import struct
from pathlib import Path
from typing import Any

import numpy as np

from penchant.limits import Turns

MAGIC = b"\x89HDF\r\n\x1a\n"
HEAP = b"GCOL\x01"  # begins a heap of texts, 16 bytes; HDF5 file format specification, III.E
ENTRY = struct.Struct("<HHIQ")  # before each text: its index, its references, 0 and its size
LENGTHS = (8, 8)  # bytes of an address and of a size
LARGEST = 2**32  # bytes of a file that is read into memory
TEXT = 100_000_000  # bytes of a file of text, such as verdicts
ROOM = 256_000_000  # bytes that any file may declare
GROWTH = 64  # times its own size that a file may declare: results are written unpacked
MOST_VARIABLES = 3000
FILTERS = (1, 2, 3)  # deflate, shuffle and fletcher32 are part of HDF5; others are plug-ins
BLOCK = 16  # texts read at once: the same long text may be pointed to very often
REFERENCE = 16  # bytes that a file has for each text of any length, in addition to the text
TYPE = re.compile(r"[<>=|]?U\d{1,8}|[<>=][mM]8\[\w+\]|\|b1")  # that a result may give a variable


class Refusal(ValueError):
    """Why a file is not loaded, in words that follow its name."""


def refuse_special(file: Path) -> None:
    """Raise unless `file` is a plain file: reading a pipe or a device need not end."""
    if not stat.S_ISREG(file.stat().st_mode):
        raise Refusal("is not a plain file")


def refuse_large(file: Path, most: int) -> None:
    """Raise if `file` has more than `most` bytes; nothing is read for that."""
    size = file.stat().st_size
    if size > most:
        raise Refusal(f"has {size} bytes, more than {most}")


def read_text(file: Path) -> str:
    """The text of a plain file that is not too large; otherwise a Refusal."""
    refuse_special(file)
    refuse_large(file, TEXT)
    return file.read_text(encoding="utf-8")


def inspect(file: Path, most: int | None = None) -> None:
    """Raise Refusal unless loading the HDF5 file is safe; `most` bytes may be declared."""
    import h5py

    refuse_special(file)
    with open(file, "rb") as stream:
        start = stream.read(len(MAGIC))
        if start != MAGIC:
            raise Refusal("is cut short or is no netCDF file")
        refuse_endless_heaps(start + stream.read())
    most = ROOM + GROWTH * file.stat().st_size if most is None else most
    with h5py.File(file, "r") as opened:
        if opened.id.get_create_plist().get_sizes() != LENGTHS:
            raise Refusal("has other addresses than penchant writes")
        if len(opened) > MOST_VARIABLES:
            raise Refusal(f"holds {len(opened)} variables, more than {MOST_VARIABLES}")
        declared = sum(_declared(opened, name, most) for name in opened)
        if declared > most:
            raise Refusal(f"declares {declared} bytes, more than {most}")
        letters, size = 0, file.stat().st_size
        for name in opened:
            letters = _letters(opened[name], letters, most // 4, size)


def refuse_endless_heaps(content: bytes) -> None:
    """Raise Refusal if HDF5 would not return from one of the heaps that hold texts.

    HDF5 goes from text to text by their sizes, and loops forever if one of them leads nowhere or
    back. Every place that it could take for a heap is inspected; none may lie within another.
    """
    end = 0
    for heap in re.finditer(re.escape(HEAP), content):
        at = heap.start()
        if at < end or at + ENTRY.size > len(content):
            raise Refusal("is cut short or damaged: its texts lie within other texts")
        end = at + ENTRY.unpack_from(content, at)[-1]
        at += ENTRY.size
        turns = Turns(1_000_000, "the list of members of an archive")
        while at + ENTRY.size <= min(end, len(content)):
            turns.take()
            index, _, _, size = ENTRY.unpack_from(content, at)
            step = ENTRY.size + -(-size // 8) * 8 if index else size  # entry 0 is the free rest
            if not ENTRY.size <= step <= end - at:
                raise Refusal("is cut short or damaged: the sizes of its texts lead nowhere")
            at += step
        if end > len(content):
            raise Refusal("is cut short or damaged: its texts end beyond it")


def inspect_types(variables: Any, types: dict[str, str], size: int, most: int | None) -> None:
    """Raise Refusal if values would not fit once they have the types that a file gives them."""
    most = ROOM + GROWTH * size if most is None else most
    total = 0
    for name, dtype in types.items():
        if not TYPE.fullmatch(dtype) or name not in variables:
            raise Refusal(f"gives {name[:40]!r} the type {dtype[:40]!r}")
        total += np.dtype(dtype).itemsize * _count(variables[name].shape)
    if total > most:
        raise Refusal(f"declares {total} bytes of text, more than {most}")


def _declared(opened: Any, name: str, most: int) -> int:
    """The bytes of a variable once it is loaded."""
    import h5py

    if not isinstance(opened.get(name, getlink=True), h5py.HardLink):
        raise Refusal(f"has a link {name[:40]!r} to elsewhere")
    variable = opened[name]
    if not isinstance(variable, h5py.Dataset):
        raise Refusal(f"has a group {name[:40]!r}, which no result has")
    if variable.external or variable.is_virtual:
        raise Refusal(f"keeps {name[:40]!r} in another file")
    plist = variable.id.get_create_plist()
    if any(plist.get_filter(k)[0] not in FILTERS for k in range(plist.get_nfilters())):
        raise Refusal(f"packs {name[:40]!r} with a plug-in")
    kind = variable.dtype.kind
    if kind not in "biuf" and h5py.check_string_dtype(variable.dtype) is None:
        raise Refusal(f"holds in {name[:40]!r} something else than numbers and texts")
    if variable.chunks and _count(variable.chunks) * variable.dtype.itemsize > most:
        raise Refusal(f"packs {name[:40]!r} in pieces that do not fit into memory")
    return _count(variable.shape) * variable.dtype.itemsize


def _count(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape, dtype=object))


def _letters(variable: Any, before: int, most: int, size: int) -> int:
    """`before` plus the letters of a text variable, unless they grow too many."""
    import h5py

    kind = h5py.check_string_dtype(variable.dtype)
    if kind is None or kind.length is not None:
        return before
    count = _count(variable.shape)
    if count * REFERENCE > size:  # to read them one by one would take minutes
        raise Refusal(f"declares {count} texts, more than fit into its {size} bytes")
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
            if before > most:
                raise Refusal(f"holds more than {most} letters of text")
    return before
