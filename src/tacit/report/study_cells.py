"""How the cells of a study ended, what the failed ones say, and the numbers that came out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.records import Kind
from tacit.report.markup import Markup, joined, tag
from tacit.report.parts import table, tile
from tacit.report.study_parameters import listed
from tacit.studies.compute import ERROR, OK
from tacit.studies.gather import MISSING

if TYPE_CHECKING:
    import xarray

SHOWN = 10  # failed cells
LETTERS = 500  # of a sentence
GOOD, ODD, BAD = ("✓", "holds"), ("?", "inconclusive"), ("✗", "fails")
LOOKS = {
    Kind.SOLVED.value: GOOD,
    Kind.NOT_UNIQUE.value: ("✓", "corrected"),
    Kind.DIVERGED.value: BAD,
    ERROR: BAD,
    MISSING: ("·", "inconclusive"),
}


def ended(dataset: xarray.Dataset) -> Markup:
    """One tile for every way in which cells ended."""
    kinds, counts = np.unique(dataset.status.values, return_counts=True)
    found = dict(zip(map(str, kinds), map(int, counts), strict=True))
    order = [kind for kind in (*LOOKS, *sorted(found)) if kind in found]
    tiles = [
        tile(LOOKS.get(kind, ODD)[0], found[kind], _word(kind, dataset), LOOKS.get(kind, ODD)[1])
        for kind in dict.fromkeys(order)
    ]
    return tag("ul", *tiles, class_="tiles")


def _word(kind: str, dataset: xarray.Dataset) -> str:
    if kind != MISSING:
        return kind
    adaptive = json.loads(dataset.attrs["description"]).get("refine")
    return "not asked for" if adaptive else "not reached"


def failures(dataset: xarray.Dataset) -> Markup | None:
    """The first failed cells with their sentences."""
    status = dataset.status.values
    failed = np.argwhere(~np.isin(status, [*OK, MISSING]))
    if not len(failed):
        return None
    said = dataset.sentence.values
    rows = [
        (_place(dataset, at), str(status[at]), _cut(str(said[at])))
        for at in map(tuple, failed[:SHOWN])
    ]
    rest = f"and {len(failed) - SHOWN} more: see status and sentence in the file"
    more = tag("p", rest, class_="place") if len(failed) > SHOWN else None
    searched = json.loads(dataset.attrs["description"]).get("threshold")
    words = "Searches without a threshold" if searched else "Cells that failed"
    heading = tag("h2", f"{words}: {len(failed)}")
    return joined(heading, table(("cell", "ended", "what it says"), rows, "plain"), more)


def _place(dataset: xarray.Dataset, index: tuple[int, ...]) -> str:
    places = zip(dataset.status.dims, index, strict=True)
    told = (f"{dim} = {listed([dataset[dim].values[i].item()])}" for dim, i in places)
    return ", ".join(told) or "the cell"


def _cut(text: str) -> str:
    return text if len(text) <= LETTERS else f"{text[: LETTERS - 1]}…"


def outcome(dataset: xarray.Dataset) -> Markup | None:
    """Every number that the cells gave: what it is, and from where to where it goes."""
    names = [name for name, found in dataset.data_vars.items() if found.dtype.kind in "fiub"]
    if not names:
        return None
    head = ("result", "what it is", "smallest", "median", "largest", "numbers")
    rows = [_row(str(name), dataset[name]) for name in names]
    return joined(tag("h2", "What came out"), table(head, rows, "plain"))


def _row(name: str, found: Any) -> tuple[str, ...]:
    values = np.asarray(found.values, dtype=float)
    finite = values[np.isfinite(values)]
    units = found.attrs.get("units", "1")
    meaning = f"{found.attrs.get('long_name', name)}{'' if units == '1' else f' ({units})'}"
    ends = (finite.min(), np.median(finite), finite.max()) if finite.size else ()
    numbers = [f"{float(value):.5g}" for value in ends] or ["-"] * 3
    count = f"{finite.size}" + (f" of {values.size}" if finite.size < values.size else "")
    return (name, meaning, *numbers, count)
