"""The cells of a study: what one computes, in full, and the name that follows from it."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tacit.studies.axes import Scalar
from tacit.studies.parts import takes_seed

if TYPE_CHECKING:
    from tacit.studies.study import Study

PARTS = ("problem", "model", "method")
OPTIONAL = ("penalty", "stop", "record")  # tables that a study may have beside them


@dataclasses.dataclass(frozen=True)
class Cell:
    """One point of the grid with one seed; `spec` is all that is needed to compute it."""

    name: str
    index: tuple[int, ...]
    spec: Mapping[str, Any]


def canonical(value: Any) -> str:
    """The one JSON text of a value, whatever the order of its keys."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def cell_name(spec: Mapping[str, Any], code: str) -> str:
    """32 hexadecimal digits from the full description and the version of the code."""
    text = canonical([code, spec])
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def cells_of(study: Study, code: str) -> Iterator[Cell]:
    """Every cell of the grid, the last axis (or the seed) fastest."""
    points = [axis.values for axis in study.axes]
    seeds: Sequence[int | None] = study.seed_values or (None,)
    for index in itertools.product(*(range(len(p)) for p in points), range(len(seeds))):
        values = [p[i] for p, i in zip(points, index, strict=False)]
        spec = spec_at(study, values, seeds[index[-1]])
        place = index if study.seed_values else index[:-1]
        yield Cell(cell_name(spec, code), place, spec)


def spec_at(study: Study, values: Sequence[Scalar], seed: int | None) -> dict[str, Any]:
    """The full description of the cell at these values of the axes."""
    keys = [axis.key for axis in study.axes]
    if study.function is not None:
        arguments = {**study.arguments, **dict(zip(keys, values, strict=True))}
        own = {} if seed is None else {"seed": seed}
        return {"function": study.function, "arguments": arguments | own, "dims": study.dims}
    spec = study.template()
    for key, value in zip(keys, values, strict=True):
        spec = placed(spec, key.split("."), value)
    return spec if seed is None else _seeded(spec, seed)


def placed(table: Mapping[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    """A copy of nested tables with one entry set."""
    head, *rest = path
    inner = table.get(head)
    if rest:
        value = placed(inner if isinstance(inner, Mapping) else {}, rest, value)
    return {**table, head: value}


def _seeded(spec: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """The same with the seed given to every part that takes one and does not set its own."""
    takers: dict[str, Any] = {
        part: {**spec[part], "seed": seed}
        for part in PARTS
        if takes_seed("study", part, spec[part])
    }
    if "batch" in spec:  # which is drawn from the seed
        takers["seed"] = seed
    return {**spec, **takers}
