"""What every worker does with a cell: take it from disk, or compute it and write it."""

from __future__ import annotations

import dataclasses
from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple

from tacit.studies.cells import Cell
from tacit.studies.code.inputs import inputs, noticed
from tacit.studies.code.version import Code
from tacit.studies.compute import compute
from tacit.studies.storage.files import NotACell, read_named, write_cell
from tacit.versions import versions


class Done(NamedTuple):
    """How one cell ended; its values are on disk."""

    name: str
    status: str
    sentence: str
    seconds: float
    kept: bool


Ends = Generator[list[Done], None, None]  # batches of ends, in any order


@dataclasses.dataclass(frozen=True)
class CellCache:
    """Where cells are written, and the version of the code that must compute them."""

    folder: Path
    code: Code

    def finish(self, cell: Cell) -> Done:
        """The end of a cell; a finished one is not computed again."""
        try:
            result = read_named(self.folder, cell.name, self.code.version)
        except NotACell:
            result = None  # the surveyor sets such files aside; what is written now replaces it
        if result is None:
            with noticed():
                result = compute(cell.spec)
            if result.kept:
                made = dataclasses.replace(result, made_with=versions(), inputs=inputs())
                write_cell(self.folder, cell, self.code.version, made)
        return Done(cell.name, result.status, result.sentence, result.seconds, result.kept)
