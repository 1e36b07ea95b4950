"""The HTML around every view, and plain pages: a refusal, the claims."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penchant.lab.report.markup import Markup
from penchant.lab.report.rendering import environment

if TYPE_CHECKING:
    from jinja2 import Template

HERE = Path(__file__).parent


def template(name: str = "page.html") -> Template:
    """A page as a template in which every text is escaped."""
    return environment(HERE).get_template(name)


def variables(heading: str, words: str, views: Iterable[str], current: str = "") -> dict[str, Any]:
    """What every page needs; `views` are the names in its menu."""
    return {
        "heading": heading,
        "words": words,
        "links": [(name, name.capitalize()) for name in views],
        "current": current,
        "style": Markup((HERE / "style.css").read_text(encoding="utf-8")),
    }


def refusal_page(sentence: str, views: Iterable[str]) -> str:
    """A page with only an error message."""
    frame = variables("This cannot be shown", "", views)
    return template("refusal.html").render(**frame, sentence=sentence)
