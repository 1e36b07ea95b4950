"""Parts that every report is made of: a headed part, a table, a tile."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tacit.report.markup import Markup, joined, tag


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


def tile(symbol: str, count: int, word: str, kind: str, filters: str | None = None) -> Markup:
    """A number with its word and symbol, so that colour is never alone; pale where it is 0.

    With `filters` it is a link to itself under this id, by which the style shows only its kind.
    """
    inside = joined(
        tag("span", symbol, class_="symbol", aria_hidden="true"),
        tag("b", str(count)),
        tag("span", word),
    )
    content = inside if filters is None else tag("a", inside, href=f"#{filters}")
    return tag("li", content, class_=f"tile {kind}{'' if count else ' none'}", id=filters)
