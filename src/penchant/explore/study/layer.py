"""The diagram of a study: colours, failures and lines over two of its axes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from penchant.arguments import Array
from penchant.explore.controls import WHO
from penchant.explore.picture import Curve, Range, Style
from penchant.explore.study.grid import CUT, Grid, Requested, plain
from penchant.lab.studies.gather import has_failed
from penchant.plotting.study.layer import layer, spans_decades
from penchant.plotting.study.map import crossings
from penchant.plotting.study.ruler import Ruler
from penchant.plotting.style import BLACK, RED

if TYPE_CHECKING:
    import xarray

MOST_CELLS = 250_000  # of one diagram: an image of a megabyte
NONE = "-"
# style, colour, width, and width with a white rim: a line of theory lies upon the measured one
MEASURED: tuple[Style, str, float, float] = ("line", RED, 6, 8)
THEORY: tuple[tuple[Style, str, float, float], ...] = (
    ("dashed", BLACK, 2, 3.5),
    ("dotted", BLACK, 2.5, 4),
)
Fixed = tuple[tuple[str, int], ...]  # places on the axes that are held


@dataclass(frozen=True, eq=False)
class Diagram:
    """Numbers by rows, the cells of which something failed, what they say, and lines on them."""

    numbers: Array
    span: Range
    label: str
    failed: NDArray[np.bool_]
    notes: tuple[str, ...]
    lines: tuple[Curve, ...]


def diagram(grid: Grid, show: str, x: str, y: str, fixed: Fixed) -> Diagram:
    """The variable `show` over x and y; the median is taken over an axis that is not held."""
    cells = grid.dataset.sizes[x] * (grid.dataset.sizes[y] if y != NONE else 1)
    if cells > MOST_CELLS:
        raise ValueError(
            f"{WHO}: {cells} cells are too many for one diagram (at most {MOST_CELLS}); "
            "choose other axes"
        )
    across = (x,) if y == NONE else (y, x)
    data = grid.dataset.isel(dict(fixed))
    numbers, span, label = _colours(grid, data, show, across)
    failed, notes = _failures(data, across)
    return Diagram(numbers, span, label, failed, notes, _lines(grid, data, across))


def _colours(
    grid: Grid, data: xarray.Dataset, show: str, across: tuple[str, ...]
) -> tuple[Array, Range, str]:
    """(a number a cell, the ends of the colours, what the numbers are)."""
    if show == "status":
        return _statuses(grid, data, across)
    numbers = np.atleast_2d(layer(data, show, across).value)
    requested = grid.requested if show == grid.requested.colour else Requested()
    log = False if requested.log is None and requested.range is not None else requested.log
    numbers, label = logarithmic(numbers, plain(show, CUT), log)
    if requested.range is None:
        return numbers, span_of(numbers), label
    low, high = np.log10(requested.range) if requested.log else requested.range
    return numbers, (float(low), float(high)), label


def _statuses(
    grid: Grid, data: xarray.Dataset, across: tuple[str, ...]
) -> tuple[Array, Range, str]:
    """How cells ended, as numbers with their words."""
    kinds = np.unique(grid.dataset.status.values)
    words = ", ".join(f"{k} {plain(kind, 20)}" for k, kind in enumerate(kinds[:6]))
    numbers = np.searchsorted(kinds, data.status.transpose(*across).values).astype(float)
    return np.atleast_2d(numbers), (0.0, float(max(len(kinds) - 1, 1))), words


def _failures(
    data: xarray.Dataset, across: tuple[str, ...]
) -> tuple[NDArray[np.bool_], tuple[str, ...]]:
    """(the cells of which something failed, what every cell says, by rows)."""
    order = (*across, *(str(dim) for dim in data.status.dims if dim not in across))
    shape = np.atleast_2d(np.empty([data.sizes[dim] for dim in across])).shape
    status = data.status.transpose(*order).values.reshape(*shape, -1)
    known = "sentence" in data and data.sentence.dims == data.status.dims
    sentences = data.sentence.transpose(*order).values.reshape(status.shape) if known else status
    bad = has_failed(status)
    failed = np.asarray(bad.any(axis=-1))
    notes = np.full(shape, "", dtype=object)
    for cell in zip(*np.nonzero(failed), strict=True):  # most cells have no message
        first = int(bad[cell].argmax())
        count = f" ({bad[cell].sum()} of {bad.shape[-1]} seeds)" if bad.shape[-1] > 1 else ""
        notes[cell] = (
            f"{plain(status[cell][first], 20)}{count}: {plain(sentences[cell][first], 100)}"
        )
    return failed, tuple(notes.ravel())


def _lines(grid: Grid, data: xarray.Dataset, across: tuple[str, ...]) -> tuple[Curve, ...]:
    """The contours of the study; the first is measured, the others are theory."""
    curves: list[Curve] = []
    for index, (name, level) in enumerate(grid.requested.contours.items()):
        x, y = np.empty(0), np.empty(0)
        if len(across) == 2:
            powers = bool(index or grid.requested.log)
            values = layer(data, name, across).value
            x, y = _joined(crossings(*_rulers(data, across), values, level, powers))
        words = f"{plain(name, 30)} = {level:.4g}, {'theory' if index else 'measured'}"
        style, colour, width, rim = THEORY[min(index, 2) - 1] if index else MEASURED
        curves.append(Curve(words, x, y, style, colour, width, rim=rim))
    return tuple(curves)


def _rulers(data: xarray.Dataset, across: tuple[str, ...]) -> tuple[Ruler, Ruler]:
    """Across and up, as the page draws them: cells side by side, whatever their values."""
    x, y = (
        Ruler(dim, dim, (), np.arange(data.sizes[dim], dtype=float), "places", True)
        for dim in across[::-1]
    )
    return x, y


def _joined(pieces: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    """One curve of several, with gaps between."""
    gap = np.full(1, np.nan)
    parts = [[np.concatenate([part, gap]) for part in side] for side in zip(*pieces, strict=True)]
    x, y = (np.concatenate(side) for side in parts) if parts else (np.empty(0), np.empty(0))
    return x, y


def logarithmic(values: Array, label: str, log: bool | None = None) -> tuple[Array, str]:
    """The values, or their logarithms to base 10 where they are positive over many decades."""
    if spans_decades(values) if log is None else log:
        with np.errstate(invalid="ignore", divide="ignore"):
            values, label = np.log10(values), f"log10 of {label}"
    return np.where(np.isfinite(values), values, np.nan), label


def span_of(values: Array) -> Range:
    """The smallest and the largest finite value, kept apart."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return 0.0, 1.0
    low, high = float(finite.min()), float(finite.max())
    return (low, high) if high > low else (low - 0.5, high + 0.5)
