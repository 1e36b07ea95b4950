"""HTML that is escaped unless it was built here."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from xml.etree import ElementTree

from penchant.mathematics import FORMULA, mathml

VOID = ("meta", "br", "img", "input")
# what neither HTML nor a file in UTF-8 can hold: control characters and halves of characters
IMPOSSIBLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")

ATTRIBUTES = {
    *("display", "stretchy", "lspace", "rspace", "mathvariant", "accent", "fence", "form"),
    *("separator", "width", "movablelimits", "minsize", "maxsize"),
}


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
    given = (child for child in children if child is not None)
    return Markup("".join(c if isinstance(c, Markup) else _escaped(c) for c in given))


def in_html(text: str) -> Markup:
    """The text with its formulas as MathML; everything else is escaped."""
    parts = FORMULA.split(text)
    return joined(
        *(_formula(part) if k % 2 else part.replace(r"\$", "$") for k, part in enumerate(parts))
    )


def _formula(latex: str) -> str:
    """MathML, or the formula as it is written if it cannot be read or contains more than that."""
    written = f"${latex}$"
    if IMPOSSIBLE.search(latex):
        return written
    try:
        found = mathml(latex)
        elements = ElementTree.fromstring(found).iter()
    except Exception:  # latex2mathml's errors have no common class
        return written
    harmless = all(set(element.attrib) <= ATTRIBUTES for element in elements)  # no link, no style
    return Markup(found) if harmless else written


def _escaped(text: str) -> str:
    return html.escape(IMPOSSIBLE.sub("\N{REPLACEMENT CHARACTER}", text))


def document(title: str, *body: Markup) -> str:
    """The whole document around the parts of its body."""
    style = Path(__file__).with_name("style.css").read_text(encoding="utf-8")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("style", Markup(style)),
    )
    return "<!doctype html>\n" + tag("html", head, tag("body", *body), lang="en") + "\n"


def part(title: str, *content: Markup | None) -> Markup:
    """Content under a heading."""
    return joined(tag("h3", title), *content)


def table(head: Sequence[str], rows: Iterable[Sequence[str]], class_: str | None = None) -> Markup:
    """A table that becomes a list of named values on a narrow screen."""
    cells = [
        [tag("td", cell, data_label=name) for name, cell in zip(head, row, strict=True)]
        for row in rows
    ]
    titles = tag("tr", *(tag("th", name, scope="col") for name in head))
    body = tag("tbody", *(tag("tr", *row) for row in cells))
    return tag("table", tag("thead", titles), body, class_=class_)


def definitions(pairs: Iterable[tuple[str, str]], class_: str | None = None) -> Markup:
    """A list of terms, each with its description."""
    entries = (joined(tag("dt", term), tag("dd", text)) for term, text in pairs)
    return tag("dl", *entries, class_=class_)


def tile(symbol: str, count: int, word: str, kind: str, filters: str | None = None) -> Markup:
    """A number with a word and a symbol, so that colour is not the only cue; pale if it is 0.

    With `filters` the tile links to this id, and the style sheet then shows only its kind.
    """
    inside = joined(
        tag("span", symbol, class_="symbol", aria_hidden="true"),
        tag("b", str(count)),
        tag("span", word),
    )
    content = inside if filters is None else tag("a", inside, href=f"#{filters}")
    return tag("li", content, class_=f"tile {kind}{'' if count else ' none'}", id=filters)
