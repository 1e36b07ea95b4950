"""Tables of numbers that a visitor dropped on the page, kept for a while by their digest."""

from __future__ import annotations

import csv
import hashlib
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np

from penchant.arguments import Array
from penchant.door import Invalid, door_as
from penchant.explore.controls import WHO, cut

MOST_BYTES = 700_000  # of a table; a message of a browser is about a third longer
MOST_ROWS, MOST_COLUMNS = 2000, 300  # what is computed in about a second
KEPT = 40  # tables
KEY = 16  # letters of a digest


@dataclass(frozen=True, eq=False)
class OwnTable:
    """Rows of numbers with the names of their columns; the last column is predicted."""

    name: str
    columns: tuple[str, ...]
    values: Array


_tables: OrderedDict[str, OwnTable] = OrderedDict()


@door_as(WHO)
def keep(content: bytes, name: str) -> str:
    """The key of a table, which is kept until many others came after it."""
    table = _read(content, name)
    key = hashlib.blake2b(content, digest_size=KEY // 2).hexdigest()
    _tables[key] = table
    _tables.move_to_end(key)
    while len(_tables) > KEPT:
        _tables.popitem(last=False)
    return key


@door_as(WHO)
def table_of(key: str) -> OwnTable:
    """The table with a key that `keep` returned."""
    if key not in _tables:
        raise Invalid(f"there is no table {cut(key)!r} here any more; drop the file again")
    return _tables[key]


def _read(content: bytes, name: str) -> OwnTable:
    if len(content) > MOST_BYTES:
        raise Invalid(f"{cut(name)!r} has {len(content)} bytes, more than {MOST_BYTES}")
    try:
        text = content.decode("utf-8-sig")
        first = text.partition("\n")[0]
        sign = ";" if first.count(";") > first.count(",") else ","
        lines = [line for line in csv.reader(text.splitlines(), delimiter=sign) if any(line)]
    except (UnicodeDecodeError, csv.Error):
        raise Invalid(f"{cut(name)!r} is no table of numbers separated by commas") from None
    rows = [row for line in lines if (row := _numbers(line)) is not None]
    headed = bool(lines) and _numbers(lines[0]) is None
    if len(rows) < len(lines) - headed or not rows or len({*map(len, lines)}) != 1:
        raise Invalid(
            f"{cut(name)!r} must have a row of numbers for each sample, all of one length, below a "
            f"line of names; {len(rows)} of its {len(lines)} lines are numbers"
        )
    values = np.array(rows)
    if not (3 <= len(values) <= MOST_ROWS and 2 <= values.shape[1] <= MOST_COLUMNS):
        raise Invalid(
            f"{cut(name)!r} must have 3 to {MOST_ROWS} rows and 2 to {MOST_COLUMNS} columns, got "
            f"{len(values)} and {values.shape[1]}"
        )
    heading = lines[0] if headed else []
    names = [part.strip()[:30] for part in heading] or [f"x{k + 1}" for k in range(values.shape[1])]
    return OwnTable(name, tuple(names), values)


def _numbers(line: list[str]) -> list[float] | None:
    try:
        numbers = [float(text) for text in line]
    except ValueError:
        return None
    return numbers if np.isfinite(numbers).all() else None
