"""How the cells of a study ended, what failed and doubtful ones say, and the resulting numbers."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from penchant.lab.report.markup import in_html
from penchant.lab.studies.compute import ERROR
from penchant.lab.studies.gather import MISSING, has_failed, is_doubtful
from penchant.lab.studies.gathered import description_of
from penchant.records import Kind

if TYPE_CHECKING:
    import xarray


SHOWN = 10  # failed cells, and doubtful ones
LETTERS = 500  # of a sentence
GOOD, ODD, BAD = ("✓", "holds"), ("?", "inconclusive"), ("✗", "fails")
LOOKS = {
    Kind.SOLVED.value: GOOD,
    Kind.NOT_UNIQUE.value: ("✓", "corrected"),
    Kind.DIVERGED.value: BAD,
    ERROR: BAD,
    MISSING: ("·", "inconclusive"),
}


def endings(dataset: xarray.Dataset) -> list[tuple[str, int, str, str]]:
    """(symbol, number of cells, word, look) of every way in which cells ended."""
    kinds, counts = np.unique(dataset.status.values, return_counts=True)
    tally = dict(zip(map(str, kinds), map(int, counts), strict=True))
    order = dict.fromkeys(kind for kind in (*LOOKS, *sorted(tally)) if kind in tally)
    looks = ((kind, *LOOKS.get(kind, ODD)) for kind in order)
    return [(symbol, tally[kind], _word(kind, dataset), look) for kind, symbol, look in looks]


def _word(kind: str, dataset: xarray.Dataset) -> str:
    if kind != MISSING:
        return kind
    adaptive = description_of(dataset).get("refine")
    return "not needed" if adaptive else "not reached"


@dataclasses.dataclass(frozen=True)
class Messages:
    """The first of `count` cells of a kind, a row each: place, status, message."""

    words: str
    count: int
    rows: list[tuple[str, str, str]]


def failures(dataset: xarray.Dataset) -> Messages | None:
    """The first failed cells with their messages."""
    searched = description_of(dataset).get("threshold")
    words = "Searches without a threshold" if searched else "Cells that failed"
    return _messages(dataset, words, has_failed(dataset.status.values))


def doubts(dataset: xarray.Dataset) -> Messages | None:
    """The first doubtful cells with their messages; their values are among the results."""
    return _messages(dataset, "Doubtful cells", is_doubtful(dataset.status.values))


def _messages(dataset: xarray.Dataset, words: str, where: np.ndarray) -> Messages | None:
    places = np.argwhere(where)
    if not len(places):
        return None
    status, sentences = dataset.status.values, dataset.sentence.values
    rows = [
        (_position_text(dataset, at), str(status[at]), _cut(str(sentences[at])))
        for at in map(tuple, places[:SHOWN])
    ]
    return Messages(words, len(places), rows)


def _position_text(dataset: xarray.Dataset, index: tuple[int, ...]) -> str:
    indices = zip(dataset.status.dims, index, strict=True)
    texts = (f"{dim} = {listed([dataset[dim].values[i].item()])}" for dim, i in indices)
    return ", ".join(texts) or "the cell"


def _cut(text: str) -> str:
    return text if len(text) <= LETTERS else f"{text[: LETTERS - 1]}…"


def results(dataset: xarray.Dataset) -> list[tuple[str, ...]]:
    """A row for every number that the cells computed: its meaning and its range."""
    names = [name for name, variable in dataset.data_vars.items() if variable.dtype.kind in "fiub"]
    return [_row(str(name), dataset[name]) for name in names]


def _row(name: str, variable: Any) -> tuple[str, ...]:
    values = np.asarray(variable.values, dtype=float)
    finite = values[np.isfinite(values)]
    units = variable.attrs.get("units", "1")
    meaning = f"{variable.attrs.get('long_name', name)}{'' if units == '1' else f' ({units})'}"
    ends = (finite.min(), np.median(finite), finite.max()) if finite.size else ()
    numbers = [f"{float(value):.5g}" for value in ends] or ["-"] * 3
    count = f"{finite.size}" + (f" of {values.size}" if finite.size < values.size else "")
    return (name, in_html(meaning), *numbers, count)


FEW = 10  # values that are spelled out
IS = "is"
ELSEWHERE = ("name", "title", "grid", "seeds", "labels", "draw")  # on the page, or only to copy


def settings(description: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(name, text) of every setting that the page does not show elsewhere."""
    given = ((key, value) for key, value in description.items() if value is not None)
    return list(_named_texts("", {key: value for key, value in given if key not in ELSEWHERE}))


def axes(dataset: xarray.Dataset) -> list[tuple[str, ...]]:
    """A row for every axis as it was run."""
    return [
        (
            str(dim),
            in_html(str(dataset[dim].attrs.get("long_name", dim))),
            str(dataset.sizes[dim]),
            listed(dataset[dim].values.tolist()),
        )
        for dim in dataset.status.dims
    ]


def listed(values: list[Any]) -> str:
    """The values of an axis; long lists show only some of them."""
    texts = [f"{v:.6g}" if isinstance(v, float) else str(v) for v in values]
    return ", ".join(texts if len(texts) <= FEW else [*texts[:3], "…", *texts[-2:]])


def _named_texts(prefix: str, described: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(name, text) of every value; a table that names a part of penchant is written as a call."""
    for key, value in described.items():
        if isinstance(value, Mapping) and value and IS not in value:
            yield from _named_texts(f"{prefix}{key}.", value)
        else:
            yield f"{prefix}{key}", _short(value)


def _short(value: Any) -> str:
    if isinstance(value, Mapping):
        inside = ", ".join(f"{key}={_short(entry)}" for key, entry in value.items() if key != IS)
        return f"{value.get(IS, '')}({inside})"
    return listed(value) if isinstance(value, list) else str(value)


def toml(description: Mapping[str, Any]) -> str:
    """The text of a TOML file with these values; None, which TOML does not have, is left out."""
    return "\n".join(_lines((), description)).strip() + "\n"


def _lines(path: tuple[str, ...], table: Mapping[str, Any]) -> Iterator[str]:
    """The plain values of a table, then its tables under their own headings."""
    given = {key: value for key, value in table.items() if value is not None}
    inner = {key: value for key, value in given.items() if isinstance(value, Mapping)}
    if path and (len(inner) < len(given) or not given):
        yield f"\n[{'.'.join(map(_key, path))}]"
    for key in (key for key in given if key not in inner):
        yield f"{_key(key)} = {_value(given[key])}"
    for key, value in inner.items():
        yield from _lines((*path, key), value)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _text(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        pairs = (f"{_key(key)} = {_value(entry)}" for key, entry in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    return repr(value)


def _text(text: str) -> str:
    """A basic string as in JSON, except that TOML also escapes the delete character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
