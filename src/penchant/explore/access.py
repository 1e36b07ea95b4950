"""Accessible names and a visible focus for bokeh's widgets, which do not all have them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bokeh.document import Document

NAMES = Path(__file__).parent / "names.js"
OUTLINE = "{ outline: 3px solid #b35900; outline-offset: 1px; }"  # 5 to 1 against white
PARTS = (".noUi-handle:focus", ".bk-input:focus", "[tabindex]:focus-visible")
WRAP = ".bk-slider-title { white-space: normal; }"  # a long title takes two lines


def readable() -> Any:
    """A style sheet that shows the keyboard focus, and long titles in full."""
    from bokeh.models.css import InlineStyleSheet

    return InlineStyleSheet(css=f"{', '.join(PARTS)} {OUTLINE} {WRAP}")


def name_parts(document: Document) -> None:
    """Add accessible names to sliders, choices, plots and their tools after they are drawn."""
    from bokeh.models import CustomJS

    document.js_on_event("document_ready", CustomJS(code=NAMES.read_text(encoding="utf-8")))
