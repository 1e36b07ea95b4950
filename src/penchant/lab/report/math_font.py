"""The font of formulas, one file for the report, the page of `penchant explore` and the site.

It is STIX Two Math with the characters that formulas need; its licence lies beside it. Without it a
browser takes what is installed, and where that is no mathematical font, roots and brackets do not
grow with what they hold.
"""

from __future__ import annotations

from base64 import b64encode
from functools import lru_cache
from pathlib import Path

from markupsafe import Markup

FOLDER = Path(__file__).with_name("fonts")
FILE = FOLDER / "math.woff2"
ABOUT = "© 2001-2021 The STIX Fonts Project Authors, SIL Open Font License 1.1"


@lru_cache
def font_face(address: str = "") -> Markup:
    """The rule of CSS with the font at an address, or with all of the font within the rule."""
    whole = address or f"data:font/woff2;base64,{b64encode(FILE.read_bytes()).decode()}"
    source = f'url("{whole}") format("woff2")'
    return Markup(f'/* {ABOUT} */\n@font-face {{ font-family: "STIX Two Math"; src: {source}; }}')
