"""The engine without other processes: cells one after the other, in this one."""

from __future__ import annotations

from collections.abc import Sequence

from tacit.studies.cells import Cell
from tacit.studies.storage.cache import CellCache, Ends
from tacit.threads import one_thread


def run_here(cache: CellCache, cells: Sequence[Cell]) -> Ends:
    """The end of every cell, as it comes."""
    with one_thread(xla=True):
        for cell in cells:
            yield [cache.finish(cell)]
