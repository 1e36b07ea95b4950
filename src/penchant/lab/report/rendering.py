"""The templates of all pages: every text is escaped unless it is Markup."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from penchant.lab.evidence.evidence import STATUSES
from penchant.lab.evidence.verdict import MEANINGS, SYMBOLS, shown
from penchant.lab.report import section
from penchant.lab.report.markup import Markup, in_html, possible
from penchant.lab.report.math_font import font_face
from penchant.mathematics import in_terminal
from penchant.records import brief

FOLDER = Path(__file__).with_name("templates")


def render(name: str, /, **values: Any) -> str:
    """The page that the template `name` makes of these values."""
    return environment().get_template(name).render(**values)


@lru_cache
def environment(*folders: Path) -> Environment:
    """The templates of the report, and those in `folders`, which may use them."""
    made = Environment(
        loader=FileSystemLoader([*folders, FOLDER]),
        autoescape=True,
        finalize=_possible,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.globals.update(STATUSES=STATUSES, SYMBOLS=SYMBOLS, MEANINGS=MEANINGS, SPAN=section.SPAN)
    made.globals.update(font_face=font_face)
    made.filters.update(
        anchor=section.anchor,
        brief=brief,
        brief_values=lambda values: [
            (in_html(name), in_html(brief(entry))) for name, entry in values.items()
        ],
        compared=section.compared,
        address=section.address,
        image_type=section.image_type,
        in_html=in_html,
        in_terminal=in_terminal,
        kind=section.kind,
        module_of=section.module_of,
        on_record=section.on_record,
        premise_rows=section.premise_rows,
        shown=shown,
        simple=section.simple,
        source_text=section.source_text,
        tracks=section.tracks,
        verbatim=lambda file: Markup((FOLDER / file).read_text(encoding="utf-8")),
    )
    return made


def _possible(value: Any) -> Any:
    plain = isinstance(value, str) and not isinstance(value, Markup)
    return possible(value) if plain else value
