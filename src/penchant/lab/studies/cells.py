"""The cells of a study: the full description of each, and the name derived from it."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np

from penchant.arguments import integer, one_of, real
from penchant.door import Invalid, door_as
from penchant.lab.studies.parts import takes_seed
from penchant.records import Record

if TYPE_CHECKING:
    from penchant.lab.studies.study import Study


Scalar = float | int | str | bool
SPACES = ("linspace", "logspace", "geomspace")
RESERVED = ("seed", "status", "sentence")
MOST = 10_000_000  # cells of one study, and values of one axis


@dataclasses.dataclass(frozen=True, repr=False)
class Axis(Record):
    """One axis: `key` is what it sets (`model.alpha`), `name` its dimension in the result."""

    key: str
    name: str
    values: tuple[Scalar, ...]


def read_axes(grid: Mapping[str, Any]) -> tuple[Axis, ...]:
    """The axes of a grid, in its order; `model.alpha` may be one key or two nested ones."""
    flat = dict(_flat(grid))
    last = Counter(key.rpartition(".")[2] for key in flat)
    return tuple(
        Axis(key, _name(key, last), read_values(f"grid.{key}", values))
        for key, values in flat.items()
    )


def _name(key: str, last: Counter[str]) -> str:
    """`alpha` for `model.alpha`, or `model_alpha` where another axis ends in alpha too."""
    short = key.rpartition(".")[2]
    return short if last[short] == 1 and short not in RESERVED else key.replace(".", "_")


def _flat(grid: Any, prefix: str = "") -> list[tuple[str, Any]]:
    if not isinstance(grid, Mapping):
        raise Invalid(f"grid must be a table of axes, got {grid!r:.80}")
    entries: list[tuple[str, Any]] = []
    for key, value in grid.items():
        name = f"{prefix}{key}"
        nested = isinstance(value, Mapping) and value and not _spacelike(value)
        entries += _flat(value, f"{name}.") if nested else [(name, value)]
    return entries


def _spacelike(table: Mapping[str, Any]) -> bool:
    """Whether a table is meant as a space, even if a key is misspelled."""
    return any(get_close_matches(str(key), SPACES, n=1, cutoff=0.75) for key in table)


def read_values(where: str, given: Any) -> tuple[Scalar, ...]:
    """The values of an axis: a list as it is, or a space such as {logspace = [-3, 1, 9]}."""
    if isinstance(given, Mapping):
        given = _spaced(where, given)
    if isinstance(given, np.ndarray):
        given = given.tolist()
    if isinstance(given, str | bytes) or not isinstance(given, Sequence):
        raise Invalid(
            f"{where} must be a list of values or one of {', '.join(SPACES)}, got {given!r:.80}"
        )
    values = tuple(_scalar(where, value) for value in given)
    if not values:
        raise Invalid(f"{where} must not be empty")
    if len({_family(value) for value in values}) > 1:
        raise Invalid(f"{where} mixes numbers, strings or booleans: {values!r:.80}")
    twice = [value for value, count in Counter(values).items() if count > 1]
    if twice:
        raise Invalid(f"{where} names {twice[0]!r} more than once; keep one")
    return values


def _family(value: Scalar) -> str:
    if isinstance(value, bool | str):
        return type(value).__name__
    return "number"


def _scalar(where: str, value: Any) -> Scalar:
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, float) and not math.isfinite(plain):
        raise Invalid(f"{where} must be finite, got {plain}")
    if not isinstance(plain, bool | int | float | str):
        raise Invalid(
            f"{where} must hold numbers, strings or booleans, got {plain!r:.80}; for "
            "anything else write a function cell and put an axis of names here"
        )
    return plain


def _spaced(where: str, table: Mapping[str, Any]) -> list[Any]:
    """Values between two ends; `round = true` makes them whole numbers, each once."""
    for key in table:
        one_of(f"key in {where}", key, (*SPACES, "round"))
    named = [key for key in table if key in SPACES]
    if len(named) != 1:
        raise Invalid(f"{where} must name exactly one of {', '.join(SPACES)}")
    ends = table[named[0]]
    if not isinstance(ends, Sequence) or isinstance(ends, str) or len(ends) != 3:
        rule = "must be [first, last, count]"
        raise Invalid(f"{where}.{named[0]} {rule}, got {ends!r:.80}")
    first, last = (real(f"{where}.{named[0]}", end) for end in ends[:2])
    count = integer(f"{where}.{named[0]}'s count", ends[2], least=1)
    refuse_endless(f"{where}.{named[0]}", count)
    if named[0] == "geomspace" and min(first, last) <= 0:
        raise Invalid(f"{where}.geomspace needs ends > 0, got {first} and {last}")
    values = getattr(np, named[0])(first, last, count)
    if not np.isfinite(values).all():
        raise Invalid(f"{where}.logspace is in powers of ten; 10**{last:g} overflows")
    if not table.get("round", False):
        return values.tolist()
    return [int(value) for value in np.unique(np.rint(values))]


def read_seeds(seeds: Any) -> tuple[int, ...] | None:
    """0 to n - 1 for a number n, a list as it is, None where the study has no seed."""
    if seeds is None:
        return None
    if isinstance(seeds, Sequence | np.ndarray) and not isinstance(seeds, str):
        numbers = tuple(integer("seeds", seed, least=0) for seed in seeds)
        if not numbers or len(set(numbers)) != len(numbers):
            raise Invalid(f"seeds must be different whole numbers, got {numbers!r:.80}")
        return numbers
    count = integer("seeds", seeds, least=1)
    refuse_endless("seeds", count)
    return tuple(range(count))


def refuse_endless(where: str, count: int) -> None:
    """Raise if a grid has more cells than a run could finish."""
    if count > MOST:
        raise Invalid(
            f"{where} gives {count} cells, and a study may have {MOST}; use fewer, or split "
            "it into several studies"
        )


PARTS = ("problem", "model", "method")
OPTIONAL = ("penalty", "stop", "record")  # tables that a study may also have


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
    for point in itertools.product(*(range(len(axis.values)) for axis in study.axes)):
        yield from cells_at(study, point, code)


def cells_at(study: Study, point: tuple[int, ...], code: str) -> Iterator[Cell]:
    """The cells at one point of the grid, one for every seed."""
    values = [axis.values[i] for axis, i in zip(study.axes, point, strict=True)]
    seeds: Sequence[int | None] = study.seed_values or (None,)
    for k, seed in enumerate(seeds):
        spec = spec_at(study, values, seed)
        yield Cell(cell_name(spec, code), point if seed is None else (*point, k), spec)


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


@door_as("study")
def _seeded(spec: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """The same with the seed given to every part that takes one and does not set its own."""
    with_seed: dict[str, Any] = {
        part: {**spec[part], "seed": seed} for part in PARTS if takes_seed(part, spec[part])
    }
    if "batch" in spec:  # which is drawn from the seed
        with_seed["seed"] = seed
    return {**spec, **with_seed}
