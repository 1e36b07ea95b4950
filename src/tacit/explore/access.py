"""Names and a visible focus for what bokeh draws, which by itself has neither everywhere."""

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
    """A style sheet that shows where the keys go, and titles to their end."""
    from bokeh.models.css import InlineStyleSheet

    return InlineStyleSheet(css=f"{', '.join(PARTS)} {OUTLINE} {WRAP}")


def name_parts(document: Document) -> None:
    """Have the browser name sliders, choices, plots and their tools once they are drawn."""
    from bokeh.models import CustomJS

    document.js_on_event("document_ready", CustomJS(code=NAMES.read_text(encoding="utf-8")))
