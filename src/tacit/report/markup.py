"""HTML that is escaped unless it was built here."""

from __future__ import annotations

import html
import re

VOID = ("meta", "br", "img", "input")
# what neither HTML nor a file in UTF-8 can hold: control characters and halves of characters
IMPOSSIBLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


class Markup(str):
    """Text that is HTML already; every other string is escaped when it becomes a child."""


def tag(name: str, /, *children: str | None, **attributes: str | None) -> Markup:
    """One element; `class_` stands for class, `data_label` for data-label; None is left out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_escaped(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in VOID:
        return Markup(f"<{name}{written} />")
    return Markup(f"<{name}{written}>{joined(*children)}</{name}>")


def joined(*children: str | None) -> Markup:
    """The children one after another, plain text escaped, None left out."""
    return Markup("".join(_safe(child) for child in children if child is not None))


def _safe(child: str) -> str:
    return child if isinstance(child, Markup) else _escaped(child)


def _escaped(text: str) -> str:
    return html.escape(IMPOSSIBLE.sub("\N{REPLACEMENT CHARACTER}", text))
