"""Completing cells: find the finished ones on disk and give the missing ones to an engine."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any

from penchant.arguments import one_of
from penchant.door import speaking_as
from penchant.lab.studies.cells import Cell
from penchant.lab.studies.compute import EMPTY, USABLE, Result
from penchant.lab.studies.engines.named import Engine
from penchant.lab.studies.parts import DescriptionError
from penchant.lab.studies.storage.cell_file import read_named
from penchant.lab.studies.storage.folder import CellCache, Done, listed, survey
from penchant.progress import ProgressBar

SHOWN = 5  # files that the study does not name
ROUNDS = 3  # another run of the same study may set a file aside while we look at it


class RunProgress:
    """What a run reports while it works; this base class ignores the reports."""

    def begin(self, total: int, finished: Iterable[Done]) -> None:
        """The study has `total` cells, and these are finished already."""

    def done(self, cells: Sequence[Done]) -> None:
        """These cells ended just now."""

    def aside(self, sentence: str) -> None:
        """A file among the cells was set aside."""

    def warn(self, sentence: str) -> None:
        """The result may depend on something that the study does not name."""
        warnings.warn(sentence, stacklevel=2)


class CellsOnBar(RunProgress):
    """Counts the cells that have ended, for a bar."""

    def __init__(self, bar: ProgressBar) -> None:
        self.bar, self.total, self.ended = bar, 0, 0

    def begin(self, total: int, finished: Iterable[Done]) -> None:
        self.total += total
        self.done(list(finished))

    def done(self, cells: Sequence[Done]) -> None:
        self.ended += len(cells)
        self.bar(self.ended / max(self.total, 1), f"{self.ended} of {self.total} cells")


def complete(
    cache: CellCache, cells: Sequence[Cell], engine: Engine, progress: RunProgress
) -> dict[str, Done]:
    """The cells that ended without a file; all others are on disk when this returns."""
    wanted = {cell.name: cell for cell in cells}
    lost: dict[str, Done] = {}
    opened: set[str] = set()
    missing = _found(cache, wanted, progress)
    for _ in range(ROUNDS):
        if not missing:
            break
        with closing(engine(cache, missing)) as ends:  # workers stop when we are interrupted
            for ended in ends:
                progress.done(ended)
                lost |= {done.name: done for done in ended if not done.stored}
                opened |= {file for done in ended for file in done.opened}
        there = listed(cache.folder)
        missing = [cell for cell in missing if cell.name not in there and cell.name not in lost]
    for file in sorted(opened)[:SHOWN]:
        progress.warn(
            f"study: cells opened {file}, which the study does not name; add it to inputs=, or "
            "they are not computed again when it changes"
        )
    return lost


def _found(cache: CellCache, wanted: Mapping[str, Cell], progress: RunProgress) -> list[Cell]:
    """The cells that are still to be computed, after checking every file."""
    cache.folder.mkdir(parents=True, exist_ok=True)
    finished, aside = survey(cache.folder, wanted, cache.code.version)
    for sentence in aside:
        progress.aside(sentence)
    progress.begin(len(wanted), finished.values())
    return [cell for name, cell in wanted.items() if name not in finished]


@dataclasses.dataclass(frozen=True)
class Rounds:
    """The folder of the cells, and the engine that computes them."""

    cache: CellCache
    engine: Engine
    progress: RunProgress
    lost: dict[str, Done] = dataclasses.field(default_factory=dict)

    def complete(self, cells: Sequence[Cell]) -> None:
        """Complete the cells; those that end without a file are in `lost`."""
        self.lost.update(complete(self.cache, cells, self.engine, self.progress))

    def measures(self, cells: Sequence[Cell], name: str) -> list[tuple[float, Result]]:
        """The value called `name` of every cell, NaN where it failed, and its whole result."""
        self.complete(cells)
        return [_measure(name, self._result(cell)) for cell in cells]

    def _result(self, cell: Cell) -> Result:
        if cell.name in self.lost:
            return self.lost[cell.name].without_file()
        result = read_named(self.cache.folder, cell.name, self.cache.code.version)
        if result is None:
            raise OSError(f"study: the cell {cell.name} vanished from {self.cache.folder}")
        return result


def _measure(name: str, result: Result) -> tuple[float, Result]:
    if result.status == EMPTY or result.status not in USABLE:
        return math.nan, result
    if name not in result.values:
        try:
            with speaking_as("study"):
                one_of("measure", name, result.values)
        except ValueError as reason:
            raise DescriptionError(str(reason)) from None
    value: Any = result.values[name]
    if isinstance(value, str | tuple):
        raise DescriptionError(f"study: the measure {name!r} must be one number, got {value!r}")
    return float(value), result
