"""Cells brought to their end: finished ones found on disk, missing ones given to an engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing

from tacit.studies.cells import Cell
from tacit.studies.desk import Desk, Done
from tacit.studies.engines import Engine
from tacit.studies.shelves import listed, survey

ROUNDS = 3  # another run of the same study may set a file aside while we look at it


class Ears:
    """What a run tells while it goes; the plain one hears nothing."""

    def begin(self, total: int, finished: Iterable[Done]) -> None:
        """The study has `total` cells, and these are finished already."""

    def done(self, cells: Sequence[Done]) -> None:
        """These cells ended just now."""

    def aside(self, sentence: str) -> None:
        """A file among the cells was set aside."""


def complete(desk: Desk, cells: Sequence[Cell], engine: Engine, ears: Ears) -> dict[str, Done]:
    """The cells that ended without a file; all others are on disk when this returns."""
    wanted = {cell.name: cell for cell in cells}
    lost: dict[str, Done] = {}
    missing = _found(desk, wanted, ears)
    for _ in range(ROUNDS):
        if not missing:
            break
        with closing(engine(desk, missing)) as ends:  # workers stop when we are interrupted
            for ended in ends:
                ears.done(ended)
                lost |= {done.name: done for done in ended if not done.kept}
        there = listed(desk.folder)
        missing = [cell for cell in missing if cell.name not in there and cell.name not in lost]
    return lost


def _found(desk: Desk, wanted: Mapping[str, Cell], ears: Ears) -> list[Cell]:
    """The cells that are still to be computed, after a look at every file."""
    desk.folder.mkdir(parents=True, exist_ok=True)
    found, aside = survey(desk.folder, wanted, desk.code.version)
    for sentence in aside:
        ears.aside(sentence)
    ears.begin(
        len(wanted),
        [Done(name, r.status, r.sentence, r.seconds, True) for name, r in found.items()],
    )
    return [cell for name, cell in wanted.items() if name not in found]
