"""Cell files: complete or absent, checked when read, and set aside when they are not valid.

A cell file has two lines of text: `penchant-cell 2 <checksum>`, and one JSON object with `name`,
`code`, `cell` (the full description), `status`, `sentence`, `seconds`, `made_with` (versions) and
`values`. A value is a number, a text, or an array as {dims, dtype, shape, data}, its bytes in
base64.

Cells are not synced to the disk one by one (4 ms each): a power cut may leave a file short, and a
short file is detected by its checksum, set aside and computed again.
"""

from __future__ import annotations

import base64
import errno
import hashlib
import json
import os
import stat
import uuid
from collections.abc import Mapping
from contextlib import suppress
from io import BufferedWriter
from pathlib import Path
from typing import Any

import numpy as np

from penchant.lab.studies.cells import Cell
from penchant.lab.studies.compute import Result, Value

MARK = "penchant-cell"
FORMAT = 2
SUFFIX = ".cell"
PART = ".part"
KINDS = "biufU"
LARGEST = 2**31  # bytes
WRONG = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)


class CannotWrite(OSError):
    """The disk is full or not writable; files written before are complete."""

    def __str__(self) -> str:
        return str(self.strerror)


class NotACell(ValueError):
    """A file that is no readable cell; the message says why."""


class OtherCode(NotACell):
    """A complete cell that other code or other libraries computed."""


def file_of(folder: Path, name: str) -> str:
    """The place of a cell; 256 folders keep each of them small."""
    return f"{folder}{os.sep}{name[:2]}{os.sep}{name}{SUFFIX}"


def write_cell(folder: Path, cell: Cell, code: str, result: Result) -> None:
    """Put a result on disk in one step: written next to its place, then renamed."""
    body = json.dumps(
        {
            "name": cell.name,
            "code": code,
            "cell": cell.spec,
            "status": result.status,
            "sentence": result.sentence,
            "seconds": result.seconds,
            "made_with": dict(result.made_with),
            "values": {key: _encoded(value) for key, value in result.values.items()},
        }
    ).encode()
    target = file_of(folder, cell.name)
    draft = f"{target}.{uuid.uuid4().hex}{PART}"
    try:
        with _created(draft) as stream:
            stream.write(f"{MARK} {FORMAT} {_checksum(body)}\n".encode() + body + b"\n")
        os.replace(draft, target)
    except BaseException as reason:
        with suppress(OSError):
            os.unlink(draft)
        if isinstance(reason, OSError):
            raise _refused(folder, reason) from None
        raise


def _refused(folder: Path, reason: OSError) -> CannotWrite:
    return CannotWrite(
        reason.errno or errno.EIO,
        f"study: cannot write cells into {folder} ({reason.strerror or reason}); finished "
        "cells are safe; free some space or choose another --out, then run the same again",
    )


def _created(draft: str) -> BufferedWriter:
    try:
        return open(draft, "xb")
    except FileNotFoundError:
        os.makedirs(os.path.dirname(draft), exist_ok=True)
        return open(draft, "xb")


def _checksum(body: bytes) -> str:
    return hashlib.blake2b(body, digest_size=8).hexdigest()


def _encoded(value: Value) -> Any:
    if not isinstance(value, tuple):
        return value
    dims, array = value
    plain = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return {
        "dims": list(dims),
        "dtype": plain.dtype.str,
        "shape": list(plain.shape),
        "data": base64.b64encode(plain.tobytes()).decode(),
    }


def _decoded(value: Any) -> Value:
    if not isinstance(value, dict):
        return value
    dtype = np.dtype(str(value["dtype"]))
    if dtype.kind not in KINDS:  # no objects: a cell is data, never code
        raise NotACell(f"holds values of type {dtype}")
    array = np.frombuffer(base64.b64decode(value["data"]), dtype).reshape(value["shape"])
    return tuple(map(str, value["dims"])), array


def read_cell(file: str) -> tuple[str, str, Result]:
    """(name, code, result) of a cell file; NotACell says what else it is."""
    seen = os.stat(file)
    if not stat.S_ISREG(seen.st_mode):  # opening a pipe would wait forever
        raise NotACell("is not a plain file")
    if seen.st_size > LARGEST:
        raise NotACell(f"is larger than any cell, {seen.st_size} bytes")
    with open(file, "rb") as stream:
        head, _, rest = stream.read().partition(b"\n")
    words = head.decode("ascii", "replace").split()
    if len(words) != 3 or words[0] != MARK:
        raise NotACell("is not a cell of penchant" if len(head) + len(rest) else "is empty")
    if words[1] != str(FORMAT):
        raise NotACell(f"is of cell format {words[1]}, this is {FORMAT}")
    body = rest.removesuffix(b"\n")
    if _checksum(body) != words[2]:
        raise NotACell("is truncated or was changed: its checksum is wrong")
    try:
        parsed = json.loads(body)
        values = {str(key): _decoded(value) for key, value in parsed["values"].items()}
        result = Result(
            str(parsed["status"]),
            str(parsed["sentence"]),
            values,
            float(parsed["seconds"]),
            made_with=_texts(parsed["made_with"]),
        )
        return str(parsed["name"]), str(parsed["code"]), result
    except WRONG as reason:
        raise NotACell(f"is a cell with missing or wrong parts ({reason})") from None


def read_named(folder: Path, name: str, code: str) -> Result | None:
    """The result of the cell called `name`, None if it is absent; NotACell if it is not that."""
    try:
        stored_name, version, result = read_cell(file_of(folder, name))
    except FileNotFoundError:
        return None
    except OSError as reason:
        raise NotACell(f"cannot be read ({reason.strerror})") from None
    if stored_name != name:
        raise NotACell("belongs to another cell")
    if version != code:
        raise OtherCode(f"belongs to another version of the code, {version}")
    return result


def _texts(table: Mapping[str, Any]) -> dict[str, str]:
    return {str(key): str(value) for key, value in table.items()}
