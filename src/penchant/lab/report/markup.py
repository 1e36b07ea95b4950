"""Text that HTML can hold, and elements for `mathml`; pages are written as templates."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

__all__ = ["Markup", "joined", "possible", "tag"]

VOID = ("meta", "br", "img", "input")
# what neither HTML nor a file in UTF-8 can hold: control characters and halves of characters
IMPOSSIBLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def possible(text: str) -> str:
    """The text with a mark in place of every character that a page cannot hold."""
    return IMPOSSIBLE.sub("\N{REPLACEMENT CHARACTER}", text)


def tag(name: str, /, *children: str | None, **attributes: str | None) -> Markup:
    """One element; `class_` stands for class, `data_label` for data-label; None is left out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(possible(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in VOID:
        return Markup(f"<{name}{written} />")
    return Markup(f"<{name}{written}>{joined(*children)}</{name}>")


def joined(*children: str | None) -> Markup:
    """The children one after another, plain text escaped, None left out."""
    given = (child for child in children if child is not None)
    return Markup("").join(c if isinstance(c, Markup) else possible(c) for c in given)
