"""The HTML around every view, and plain pages: a refusal, the claims."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penchant.lab.report.markup import Markup, tag

if TYPE_CHECKING:
    from jinja2 import Template

HERE = Path(__file__).parent


@lru_cache(maxsize=1)
def template() -> Template:
    """The page as a template in which every text is escaped."""
    from jinja2 import Environment

    # what bokeh passes is made of markup already: its scripts must stay as they are
    return Environment(autoescape=True, finalize=_marked).from_string(
        (HERE / "page.html")
        .read_text(encoding="utf-8")
        .replace("{{ plot_script }}", "{{ plot_script | safe }}")
    )


def _marked(value: Any) -> Any:
    """Our own markup as the kind that jinja leaves as it is."""
    from markupsafe import Markup as Safe

    return Safe(str(value)) if isinstance(value, Markup) else value


def variables(
    heading: str, words: str, views: Iterable[str], current: str = "", extra: str = ""
) -> dict[str, Any]:
    """What every page needs; `views` are the names in its menu."""
    style = (HERE / "style.css").read_text(encoding="utf-8")
    return {
        "heading": heading,
        "words": words,
        "links": [(name, name.capitalize()) for name in views],
        "current": current,
        "style": Markup(style + extra),
    }


def plain_page(
    heading: str,
    words: str,
    views: Iterable[str],
    content: Markup,
    current: str = "",
    extra: str = "",
) -> str:
    """A page without a plot."""
    return template().render(**variables(heading, words, views, current, extra), content=content)


def refusal_page(sentence: str, views: Iterable[str]) -> str:
    """A page with only an error message."""
    return plain_page("This cannot be shown", "", views, tag("p", sentence, class_="refused"))
