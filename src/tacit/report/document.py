"""The frame of every report: one HTML document with its style inside, which loads nothing."""

from __future__ import annotations

from pathlib import Path

from tacit.report.markup import Markup, tag


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
