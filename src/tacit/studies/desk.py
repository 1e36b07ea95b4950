"""What every worker does with a cell: take it from disk, or compute it and write it."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tacit.studies.cells import Cell
from tacit.studies.code import Code
from tacit.studies.compute import compute
from tacit.studies.files import NotACell, read_named, write_cell
from tacit.studies.inputs import inputs, noticed
from tacit.versions import versions

#: one thread for BLAS and XLA: cores are shared out by cells, and numbers repeat bit for bit
THREADS = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
     "BLIS_NUM_THREADS", "NPROC"), "1",
)  # fmt: skip


class Done(NamedTuple):
    """How one cell ended; its values are on disk."""

    name: str
    status: str
    sentence: str
    seconds: float
    kept: bool


Ends = Generator[list[Done], None, None]  # batches of ends, in any order


@dataclasses.dataclass(frozen=True)
class Desk:
    """Where cells are written, and the version of the code that must compute them."""

    folder: Path
    code: Code

    def attend(self, cell: Cell) -> Done:
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


@contextlib.contextmanager
def one_thread() -> Iterator[Any]:
    """A context in which BLAS, and XLA if it starts in it, use one thread each."""
    from tacit.threads import one_blas_thread

    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(THREADS)
    try:
        with one_blas_thread():
            yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
