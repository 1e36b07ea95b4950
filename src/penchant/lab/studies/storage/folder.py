"""The folder of cells: which are finished, and what in it is not a cell of this study."""

from __future__ import annotations

import dataclasses
import itertools
import os
import time
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from penchant.lab.studies.cells import Cell
from penchant.lab.studies.code.inputs import opened_files, unnamed
from penchant.lab.studies.code.version import CodeVersion
from penchant.lab.studies.compute import Result, compute
from penchant.lab.studies.storage.cell_file import (
    PART,
    SUFFIX,
    NotACell,
    OtherCode,
    file_of,
    read_named,
    write_cell,
)
from penchant.versions import versions

SUBFOLDER = "[0-9a-f][0-9a-f]"
ABANDONED = 3600.0  # seconds after which the draft of a killed writer is removed


class Done(NamedTuple):
    """How one cell ended; its values are on disk. `opened` are files that it does not name."""

    name: str
    status: str
    sentence: str
    seconds: float
    stored: bool
    opened: Sequence[str] = ()

    @classmethod
    def of(cls, name: str, result: Result, opened: Sequence[str] = ()) -> Done:
        return cls(name, result.status, result.sentence, result.seconds, result.stored, opened)

    def without_file(self) -> Result:
        """The result of a cell that is not on disk."""
        return Result(self.status, self.sentence, {}, 0.0)


Ends = Generator[list[Done], None, None]  # batches of ends, in any order


def survey(folder: Path, wanted: Collection[str], code: str) -> tuple[dict[str, Done], list[str]]:
    """(the finished cells; one sentence per file that was set aside).

    Cells of other code or libraries stay where they are: their names differ from those wanted.
    """
    done: dict[str, Done] = {}
    aside: list[str] = []
    for file in _files(folder):
        try:
            done |= _looked_at(folder, file, wanted, code)
        except NotACell as reason:
            if isinstance(reason, OtherCode) and file.stem not in wanted:
                continue
            aside += set_aside(folder, file, str(reason))
    return done, aside


def finished(folder: Path, wanted: Collection[str], code: str) -> dict[str, Done]:
    """The finished cells; nothing is moved."""
    done: dict[str, Done] = {}
    for name in listed(folder) & set(wanted):
        with suppress(NotACell):
            done |= _looked_at(folder, Path(file_of(folder, name)), wanted, code)
    return done


def listed(folder: Path) -> set[str]:
    """The names of all cells that have a file, which is not read."""
    entries = (
        entry.name
        for folder_of_cells in folder.glob(SUBFOLDER)
        for entry in os.scandir(folder_of_cells)
    )
    return {name.removesuffix(SUFFIX) for name in entries if name.endswith(SUFFIX)}


def _looked_at(folder: Path, file: Path, wanted: Collection[str], code: str) -> Mapping[str, Done]:
    """The finished cell of a file; nothing for a cell of a larger grid, which stays."""
    name = file.name.removesuffix(SUFFIX)
    if file.suffix != SUFFIX or str(file) != file_of(folder, name):
        raise NotACell("is not a cell of penchant")
    result = read_named(folder, name, code)
    return {} if result is None or name not in wanted else {name: Done.of(name, result)}


def _files(folder: Path) -> list[Path]:
    """Every file in the folders of cells; drafts that a killed writer left are removed."""
    files = []
    for folder_of_cells in sorted(folder.glob(SUBFOLDER)):
        for file in sorted(folder_of_cells.iterdir()):
            if file.name.endswith(PART):
                _remove_abandoned(file)
            else:
                files.append(file)
    return files


def _remove_abandoned(draft: Path) -> None:
    with suppress(OSError):
        if time.time() - draft.stat().st_mtime > ABANDONED:
            draft.unlink()


def set_aside(folder: Path, file: Path, reason: str) -> list[str]:
    """One sentence: the file moved into `aside`, never deleted; none if it is already gone."""
    aside = folder / "aside"
    aside.mkdir(parents=True, exist_ok=True)
    tails = itertools.chain([""], (f".{n}" for n in itertools.count(1)))
    candidates = (aside / f"{file.name}{tail}" for tail in tails)
    target = next(candidate for candidate in candidates if not candidate.exists())
    try:
        os.replace(file, target)
    except FileNotFoundError:  # another run of the same study was faster
        return []
    return [f"{file.name} {reason}; moved to {target}; it is computed again if needed"]


@dataclasses.dataclass(frozen=True)
class CellCache:
    """Where cells are written, and the version of the code that must compute them."""

    folder: Path
    code: CodeVersion

    def read(self, cell: Cell) -> Result | None:
        """The result of a cell on disk; None without a valid file, which `survey` sets aside."""
        try:
            return read_named(self.folder, cell.name, self.code.version)
        except NotACell:
            return None

    def finish(self, cell: Cell) -> Done:
        """The end of a cell; a finished one is not computed again."""
        result = self.read(cell)
        if result is None:
            with opened_files() as opened:
                result = compute(cell.spec)
            if result.stored:
                made = dataclasses.replace(result, made_with=versions())
                write_cell(self.folder, cell, self.code.version, made)
            function = str(cell.spec.get("function", ""))
            return Done.of(cell.name, result, unnamed(opened, function, self.code.inputs))
        return Done.of(cell.name, result)
