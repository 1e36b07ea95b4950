"""How adaptive studies ask: cells in rounds, one number back for each."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

from tacit.arguments import one_of
from tacit.studies.cells import Cell
from tacit.studies.compute import OK, Result
from tacit.studies.engines.complete import Progress, complete
from tacit.studies.engines.named import Engine
from tacit.studies.references import DescriptionError
from tacit.studies.storage.cache import CellCache, Done
from tacit.studies.storage.files import read_named


@dataclasses.dataclass(frozen=True)
class Rounds:
    """Where cells go, and who computes them."""

    cache: CellCache
    engine: Engine
    progress: Progress
    lost: dict[str, Done] = dataclasses.field(default_factory=dict)

    def complete(self, cells: Sequence[Cell]) -> None:
        """Bring cells to their end; those that end without a file are in `lost`."""
        self.lost.update(complete(self.cache, cells, self.engine, self.progress))

    def measures(self, cells: Sequence[Cell], name: str) -> list[tuple[float, Result]]:
        """The value called `name` of every cell, NaN where it failed, beside its whole result."""
        self.complete(cells)
        return [_measure(name, self._result(cell)) for cell in cells]

    def _result(self, cell: Cell) -> Result:
        if cell.name in self.lost:
            return Result(self.lost[cell.name].status, self.lost[cell.name].sentence, {}, 0.0)
        result = read_named(self.cache.folder, cell.name, self.cache.code.version)
        if result is None:
            raise OSError(f"study: the cell {cell.name} vanished from {self.cache.folder}")
        return result


def _measure(name: str, result: Result) -> tuple[float, Result]:
    if result.status not in OK:
        return math.nan, result
    if name not in result.values:
        try:
            one_of("study", "measure", name, result.values)
        except ValueError as reason:
            raise DescriptionError(str(reason)) from None
    value: Any = result.values[name]
    if isinstance(value, str | tuple):
        raise DescriptionError(f"study: the measure {name!r} must be one number, got {value!r}")
    return float(value), result
