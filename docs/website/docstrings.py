"""Docstrings of penchant as reStructuredText: they are plain text with code between backticks."""

import re
from typing import Any

from links import target
from penchant.namespaces import public_names

CAMEL = re.compile(r"\b([A-Z][a-z0-9]+[A-Z]\w*|[A-Z]\w+(?=\())")


def prepare(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Escape what reStructuredText would read as markup, and link public names."""
    text = "\n".join(lines)
    head, mark, examples = text.partition("\nExamples\n--------\n")
    lines[:] = [*_escaped(head).splitlines(), "", *(mark + examples).splitlines()]


def _escaped(text: str) -> str:
    parts = re.split(r"(`[^`\n]+`)", text)
    return "".join(_code(part[1:-1]) if k % 2 else _plain(part) for k, part in enumerate(parts))


def _code(text: str) -> str:
    name = text.removeprefix("penchant.")
    return _link(name) if name in public_names() else f"``{text}``"


def _link(name: str) -> str:
    return rf"\ :py:obj:`{name} <{target(name)}>`\ "


def _plain(text: str) -> str:
    text = re.sub(r"([\\*|])", r"\\\1", text)
    text = re.sub(r"_(?=\W|$)", r"\\_", text, flags=re.M)
    return CAMEL.sub(
        lambda found: _link(found[1]) if found[1] in public_names() else found[0], text
    )
