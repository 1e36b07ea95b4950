"""Refinement of a phase boundary: cells where a measure crosses a level, and only there.

    [refine]
    measure = "test_error"
    level = 0.1
    rounds = 3                  # every round halves the boxes that the boundary crosses

The grid gives the first, coarse boxes. A box is split where the measure (its mean over the seeds)
lies on both sides of the level on its corners, or on a point of a finer neighbour. Points between
two values are in the middle of their logarithms where an axis is evenly spaced in them, and an
axis of whole numbers stays one.

The dataset has the dimensions of the grid with all values of the finest boxes; `status` is
"missing" where no value was needed. A run with more rounds, or after an interruption, finds the
old cells on disk.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from penchant.arguments import Array, integer, one_of, real
from penchant.door import Invalid, door_as
from penchant.lab.studies.cells import Axis, Cell, cells_at
from penchant.lab.studies.engines.complete import Rounds
from penchant.lab.studies.gather import gather, provenance
from penchant.limits import Turns

if TYPE_CHECKING:
    import xarray

    from penchant.lab.studies.study import Study

KEYS = ("measure", "level", "rounds")
Point = tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Box:
    """A box of the lattice: its lowest corner and its width, in steps of the finest lattice."""

    corner: Point
    width: int

    def points(self) -> tuple[slice, ...]:
        """Every lattice point of the box, its faces included."""
        return tuple(slice(at, at + self.width + 1) for at in self.corner)

    def corners(self) -> Iterable[Point]:
        return itertools.product(*((at, at + self.width) for at in self.corner))

    def halves(self) -> list[Box]:
        half = self.width // 2
        starts = itertools.product(*((at, at + half) for at in self.corner))
        return [Box(start, half) for start in starts]


def read_refine(table: Mapping[str, Any]) -> tuple[str, float, int]:
    """(measure, level, rounds) of the table [refine]."""
    if not isinstance(table, Mapping):
        raise Invalid(f"refine must be a table, got {table!r:.80}")
    for key in table:
        one_of("key in refine", key, KEYS)
    if not isinstance(table.get("measure"), str):
        raise Invalid(f"refine.measure must be a name, got {table.get('measure')!r:.80}")
    rounds = integer("refine.rounds", table.get("rounds", 2), least=1)
    return table["measure"], real("refine.level", table.get("level")), rounds


@door_as(lambda study: study.source)
def on_lattice(study: Study) -> Study:
    """The plain study on the finest lattice."""
    _, _, rounds = read_refine(study.refine or {})
    if not study.axes:
        raise ValueError(f"{study.source}: refine needs a grid to refine")
    grid = {axis.key: _split(axis, 2**rounds) for axis in study.axes}
    return dataclasses.replace(study, refine=None, grid=grid)


def _split(axis: Axis, parts: int) -> Sequence[float]:
    """The values of an axis with every interval in `parts`."""
    values = np.array([v for v in axis.values if isinstance(v, int | float)], dtype=float)
    steps = np.diff(values)
    if len(values) != len(axis.values) or len(values) < 2 or not (steps > 0).all():
        raise Invalid(f"refine needs two or more rising numbers in grid.{axis.key}")
    log = (
        len(values) > 2
        and bool((values > 0).all())
        and np.allclose(np.diff(np.log(values)), np.log(values[1] / values[0]))
    )
    points = [float(values[0])]
    for low, high in itertools.pairwise(values):
        shares = np.arange(1, parts) / parts
        inner = low * (high / low) ** shares if log else low + (high - low) * shares
        points += [*map(float, inner), float(high)]
    if not all(isinstance(v, int) for v in axis.values):
        return points
    whole = [round(v) for v in points]
    if len(set(whole)) < len(whole):
        raise Invalid(
            f"grid.{axis.key} has too few whole numbers for refine.rounds; take fewer "
            "rounds, or write 1.0 for 1"
        )
    return whole


class Lattice:
    """The measure where it is known, and the boxes so far."""

    def __init__(self, shape: Point, parts: int, level: float):
        self.level = level
        self.known: Array = np.full(shape, np.nan)
        self.requested: dict[Point, list[Cell]] = {}
        starts = itertools.product(*(range(0, size - 1, parts) for size in shape))
        self.boxes = [Box(start, parts) for start in starts]

    def missing_points(self) -> list[Point]:
        """The corners that have not been computed yet."""
        corners = dict.fromkeys(point for box in self.boxes for point in box.corners())
        return [point for point in corners if point not in self.requested]

    def crossed(self, box: Box) -> bool:
        block = self.known[box.points()] - self.level
        block = block[np.isfinite(block)]
        return bool(block.size) and bool(block.min() <= 0 < block.max())

    def split(self) -> bool:
        """Halve every box that the boundary crosses; False if there is none left."""
        crossed = [box.width > 1 and self.crossed(box) for box in self.boxes]
        pairs = zip(self.boxes, crossed, strict=True)
        self.boxes = [new for box, yes in pairs for new in (box.halves() if yes else [box])]
        return any(crossed)


@door_as(lambda study: study.source)
def refined(study: Study, rounds: Rounds, command: str) -> xarray.Dataset:
    """The study on its finest lattice, known near the boundary and at the first corners."""
    measure, level, depth = read_refine(study.refine or {})
    plain, code = on_lattice(study), rounds.cache.code.version
    shape = tuple(len(axis.values) for axis in plain.axes)
    lattice = Lattice(shape, 2**depth, level)
    going = True
    turns = Turns(1000, "the refinement")
    while going:
        turns.take()
        points = lattice.missing_points()
        fresh = {point: list(cells_at(plain, point, code)) for point in points}
        lattice.requested |= fresh
        answers = iter(rounds.measures([c for cells in fresh.values() for c in cells], measure))
        for point, cells in fresh.items():
            values = np.array([next(answers)[0] for _ in cells])
            known = values[~np.isnan(values)]
            lattice.known[point] = known.mean() if known.size else np.nan
        going = lattice.split()
    cells = [cell for group in lattice.requested.values() for cell in group]
    dataset = gather(plain, cells, rounds.cache.folder, code, rounds.lost, command)
    return dataset.assign_attrs({**provenance(study, code, command), "versions": dataset.versions})
