"""Points of one's own from a table of numbers, for pictures whose claims are about points."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from penchant.door import Invalid, NotFound
from penchant.inspection import Refusal, read_text
from penchant.problems.classification import Classification

MOST = 2000  # points


def read_points(file: Path) -> Classification:
    """The points of a CSV file: a row for each, its features and then its label of -1 or +1.

    With three numbers in each row all labels are +1. A first line without numbers is a heading.
    """
    if not file.exists():
        raise NotFound(f"there is no file {str(file)!r}")
    try:
        lines = [line for line in csv.reader(read_text(file).splitlines()) if any(line)]
    except (Refusal, UnicodeDecodeError, csv.Error) as reason:
        raise Invalid(f"{str(file)!r} is no table of numbers ({reason})") from None
    rows = [numbers for line in lines if (numbers := _numbers(line)) is not None]
    if len(rows) < len(lines) - 1 or not 2 <= len(rows) <= MOST or len({*map(len, rows)}) != 1:
        rule = "must have 2 points or more, a row of numbers for each, all of one length"
        raise Invalid(f"{str(file)!r} {rule}; {len(rows)} of its {len(lines)} lines are numbers")
    table = np.array(rows)
    if table.shape[1] not in (3, 4):
        rule = "must have three features in each row, and perhaps a label"
        raise Invalid(f"{str(file)!r} {rule}, got {table.shape[1]} numbers")
    labels = table[:, 3] if table.shape[1] == 4 else np.ones(len(table))
    return Classification(table[:, :3], labels)


def _numbers(line: list[str]) -> list[float] | None:
    try:
        return [float(text) for text in line]
    except ValueError:
        return None
