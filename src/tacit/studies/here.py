"""The engine without other processes: cells one after the other, in this one."""

from __future__ import annotations

from collections.abc import Sequence

from tacit.studies.cells import Cell
from tacit.studies.desk import Desk, Ends
from tacit.threads import one_thread


def run_here(desk: Desk, cells: Sequence[Cell]) -> Ends:
    """The end of every cell, as it comes."""
    with one_thread(xla=True):
        for cell in cells:
            yield [desk.attend(cell)]
