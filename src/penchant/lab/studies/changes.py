"""Studies with other parameters: `d=200` becomes the dimension of every study that has one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from penchant.door import Invalid
from penchant.lab.studies.study import Study
from penchant.suggestions import ARGUMENTS, meant

TABLES = ("problem", "model", "method", "penalty", "stop", "record", "arguments")
ALL = ("grid", "seeds")  # besides the tables


def read_changes(texts: Iterable[str]) -> dict[str, Any]:
    """The parameters of texts such as "d=200" and "alpha=0.1,0.01": numbers, lists and words."""
    changes: dict[str, Any] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not (sign and name.strip() and value.strip()):
            raise Invalid(f"--set needs a name and a value, such as d=200, got {text!r:.80}")
        changes[name.strip()] = _value(value.strip())
    return changes


def _value(text: str) -> Any:
    if "," in text and not text.startswith(("[", "{", '"')):
        return [_value(part.strip()) for part in text.split(",") if part.strip()]
    try:
        return json.loads(text)
    except ValueError:
        return text


def changed(studies: Sequence[Study], changes: Mapping[str, Any]) -> list[Study]:
    """The studies with these parameters wherever they have them; each is in one study or more.

    A parameter is an argument, a key of a table or the last part of an axis of the grid; other
    names of the field, such as `d` for the dimension, are understood.
    """
    told = [study.describe() for study in studies]
    known = dict.fromkeys(name for table in told for name in _names(table))
    own = {_known(name, known): value for name, value in changes.items()}
    if not own:
        return list(studies)
    made = []
    for study, table in zip(studies, told, strict=True):
        other = _with(table, own)
        name = f"{study.name}{mark_of(own)}"
        made.append(study if other == table else Study(**{**other, "name": name, "source": name}))
    return made


def mark_of(changes: Mapping[str, Any]) -> str:
    """What the changes add to the name of a file."""
    return "".join(f"-{name}-{_short(value)}" for name, value in changes.items())


def words(changes: Mapping[str, Any]) -> str:
    """The changes in a caption."""
    return ", ".join(f"{name} = {json.dumps(value)}" for name, value in changes.items())


def _names(table: Mapping[str, Any]) -> Iterator[str]:
    """The names of the parameters of a study."""
    yield from (key.rpartition(".")[2] for key in table["grid"])
    if table.get("seeds") is not None:
        yield "seeds"
    for entry in _tables(table):
        yield from (key for key in entry if key != "is")


def _tables(table: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for key in TABLES:
        part = table.get(key) or {}
        yield from part if isinstance(part, list) else [part]


def _known(name: str, known: Iterable[str]) -> str:
    names = list(known)
    if name in names:
        return name
    likely = meant(name, names, ARGUMENTS)
    synonym = ARGUMENTS.get(name.replace("_", "").lower(), ())
    if likely and likely[0] in synonym:
        return likely[0]
    way = f"did you mean {', '.join(likely)}?" if likely else f"known: {', '.join(names)}"
    raise Invalid(f"there is no parameter {name!r:.80}; {way}")


def _with(table: dict[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """The description of a study, whose own lists and tables are replaced."""
    table = json.loads(json.dumps(table))
    for name, value in own.items():
        for axis in table["grid"]:
            if axis.rpartition(".")[2] == name:
                table["grid"][axis] = value if isinstance(value, list) else [value]
        if name == "seeds" and table.get("seeds") is not None:
            table["seeds"] = value
        for entry in _tables(table):
            if name in entry:
                entry[name] = value
    return table


def _short(value: Any) -> str:
    """A value in the name of a file."""
    values = value if isinstance(value, list) else [value]
    return re.sub(r"[^\w.+-]", "", "_".join(map(str, values)))[:40]
