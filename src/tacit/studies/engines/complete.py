"""Cells brought to their end: finished ones found on disk, missing ones given to an engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing

from tacit.studies.cells import Cell
from tacit.studies.engines.named import Engine
from tacit.studies.storage.cache import CellCache, Done
from tacit.studies.storage.folder import listed, survey

ROUNDS = 3  # another run of the same study may set a file aside while we look at it


class Progress:
    """What a run reports while it goes; the plain one does nothing with it."""

    def begin(self, total: int, finished: Iterable[Done]) -> None:
        """The study has `total` cells, and these are finished already."""

    def done(self, cells: Sequence[Done]) -> None:
        """These cells ended just now."""

    def aside(self, sentence: str) -> None:
        """A file among the cells was set aside."""


def complete(
    cache: CellCache, cells: Sequence[Cell], engine: Engine, progress: Progress
) -> dict[str, Done]:
    """The cells that ended without a file; all others are on disk when this returns."""
    wanted = {cell.name: cell for cell in cells}
    lost: dict[str, Done] = {}
    missing = _found(cache, wanted, progress)
    for _ in range(ROUNDS):
        if not missing:
            break
        with closing(engine(cache, missing)) as ends:  # workers stop when we are interrupted
            for ended in ends:
                progress.done(ended)
                lost |= {done.name: done for done in ended if not done.kept}
        there = listed(cache.folder)
        missing = [cell for cell in missing if cell.name not in there and cell.name not in lost]
    return lost


def _found(cache: CellCache, wanted: Mapping[str, Cell], progress: Progress) -> list[Cell]:
    """The cells that are still to be computed, after a look at every file."""
    cache.folder.mkdir(parents=True, exist_ok=True)
    found, aside = survey(cache.folder, wanted, cache.code.version)
    for sentence in aside:
        progress.aside(sentence)
    progress.begin(
        len(wanted),
        [Done(name, r.status, r.sentence, r.seconds, True) for name, r in found.items()],
    )
    return [cell for name, cell in wanted.items() if name not in found]
