"""The cost of a study: cells, time and disk, from finished cells or from a few samples."""

from __future__ import annotations

import dataclasses
import math
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from penchant.door import door_as
from penchant.lab.studies.adaptive.refine import on_lattice
from penchant.lab.studies.adaptive.threshold import most_trials, read_threshold, with_axis
from penchant.lab.studies.cells import Cell, cells_of
from penchant.lab.studies.code.version import CodeVersion, code_of
from penchant.lab.studies.compute import ERROR
from penchant.lab.studies.run import cells_folder
from penchant.lab.studies.storage.cell_file import file_of
from penchant.lab.studies.storage.folder import CellCache, Done, finished, listed
from penchant.records import Record
from penchant.threads import one_thread

if TYPE_CHECKING:
    from penchant.lab.studies.study import Study

OVERHEAD = 1e-3  # seconds in addition to the computation of a cell
SAMPLES = 10
PATIENCE = 5.0  # seconds after which no other sample is begun
LONG = 30.0  # seconds of a first sample, imports and compilation included, that stays the only one
BLOCK = 4096  # bytes that a file system gives to a small file


@dataclasses.dataclass(frozen=True, repr=False)
class Estimate(Record):
    """Seconds and bytes are for one cell; `basis` says where they come from.

    `at_most` marks an adaptive study, which computes at most `cells` cells.
    """

    cells: int
    finished: int
    seconds: float
    bytes: float
    basis: str
    free: int
    failure: str = ""
    at_most: bool = False

    def wall(self, workers: int) -> float:
        """Seconds for the missing cells on this many workers."""
        missing = self.cells - self.finished
        return missing * (self.seconds + OVERHEAD) / max(1, min(workers, missing))

    @property
    def disk(self) -> float:
        """Bytes for the missing cells and the gathered file."""
        missing = self.cells - self.finished
        return missing * max(self.bytes, BLOCK) + self.cells * self.bytes


def estimate(study: Study, out: str | os.PathLike[str]) -> Estimate:
    """Cells, time and disk of a study; nothing is written into `out`."""
    code = code_of(study)
    cache = CellCache(cells_folder(study, out), code)
    plain, most = _planned(study)
    cells = list(cells_of(plain, code.version))
    wanted = listed(cache.folder) if most else {cell.name for cell in cells}
    results = finished(cache.folder, wanted, code.version)
    if results:
        seconds = [result.seconds for result in results.values()]
        sizes = [os.path.getsize(file_of(cache.folder, name)) for name in results]
        basis, failure = f"the {len(results)} finished cells", ""
    else:
        ends, sizes = _sampled(cells, code)
        seconds = [done.seconds for done in ends]
        basis = "one sample cell" if len(ends) == 1 else f"{len(ends)} sample cells"
        if len(cells) == 1 or max(seconds) > LONG:
            basis += ", imports and compilation included"
        failure = next((done.sentence for done in ends if done.status == ERROR), "")
    mean, size = sum(seconds) / len(seconds), sum(sizes) / max(len(sizes), 1)
    number = max(most, len(results)) if most else len(cells)
    return Estimate(
        number, len(results), mean, size, basis, _free(cache.folder), failure, bool(most)
    )


@door_as(lambda study: study.source)
def _planned(study: Study) -> tuple[Study, int]:
    """(a plain study with similar cells, the largest number of cells of an adaptive one)."""
    if study.threshold is not None:
        rule = read_threshold(study.threshold)
        return with_axis(study), math.prod(study.shape) * most_trials(rule)
    if study.refine is not None:
        plain = on_lattice(study)
        return plain, math.prod(plain.shape)
    return study, 0


def _sampled(cells: Sequence[Cell], code: CodeVersion) -> tuple[list[Done], list[int]]:
    """Ends and file sizes of cells from all over the grid; the first one includes the imports."""
    spread = np.unique(np.linspace(0, len(cells) - 1, SAMPLES + 1).astype(int))
    with tempfile.TemporaryDirectory(prefix="penchant-dry-") as directory, one_thread(xla=True):
        cache, start = CellCache(Path(directory), code), perf_counter()
        ends = []
        for at in spread:
            ends.append(cache.finish(cells[at]))
            if perf_counter() - start > (PATIENCE if len(ends) > 1 else LONG):
                break
        ends = ends[1:] or ends
        files = [file_of(cache.folder, done.name) for done in ends if done.stored]
        return ends, [os.path.getsize(file) for file in files]


def _free(folder: Path) -> int:
    here = next(directory for directory in (folder, *folder.parents) if directory.exists())
    return shutil.disk_usage(here).free
