"""A description as TOML, to be read, copied and run again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any


def toml(description: Mapping[str, Any]) -> str:
    """The text of a TOML file with these values; None, which TOML does not have, is left out."""
    return "\n".join(_lines((), description)).strip() + "\n"


def _lines(path: tuple[str, ...], table: Mapping[str, Any]) -> Iterator[str]:
    """The plain values of a table, then its tables under their own headings."""
    kept = {key: value for key, value in table.items() if value is not None}
    inner = {key: value for key, value in kept.items() if isinstance(value, Mapping)}
    if path and (len(inner) < len(kept) or not kept):
        yield f"\n[{'.'.join(map(_key, path))}]"
    for key in (key for key in kept if key not in inner):
        yield f"{_key(key)} = {_value(kept[key])}"
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
    """A basic string: JSON's, but that TOML wants a delete character escaped too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
