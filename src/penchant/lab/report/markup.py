"""Text that HTML can hold, with formulas as MathML; pages are written as templates."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from markupsafe import Markup, escape

from penchant.mathematics import FORMULA, mathml

__all__ = ["Markup", "in_html", "possible"]

# what neither HTML nor a file in UTF-8 can hold: control characters and halves of characters
IMPOSSIBLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
SIGN = re.compile("&#x0*(?!(?:22|26|3C|3E);)([0-9A-F]+);")  # all but the quote, &, < and >
SINGLE = re.compile("<mrow>(<m[in]>[^<]*</m[in]>)</mrow>")  # a row of one letter or number
ATTRIBUTES = {
    *("display", "stretchy", "lspace", "rspace", "mathvariant", "accent", "fence", "form"),
    *("separator", "width", "movablelimits", "minsize", "maxsize"),
}


def possible(text: str) -> str:
    """The text with a mark in place of every character that a page cannot hold."""
    return IMPOSSIBLE.sub("\N{REPLACEMENT CHARACTER}", text)


def in_html(text: str) -> Markup:
    """The text with its formulas as MathML; everything else is escaped."""
    parts = FORMULA.split(text)
    return Markup("").join(
        _formula(part) if k % 2 else escape(possible(part.replace(r"\$", "$")))
        for k, part in enumerate(parts)
    )


def _formula(latex: str) -> Markup:
    """MathML, or the formula as it is written if it cannot be read or contains more than that."""
    written = escape(possible(f"${latex}$"))
    if IMPOSSIBLE.search(latex):
        return written
    try:
        text = mathml(latex).replace(' display="inline"', "")  # what math is by itself
        text = SIGN.sub(lambda sign: chr(int(sign[1], 16)), text)
        root = ElementTree.fromstring(text)
    except Exception:  # latex2mathml's errors have no common class
        return written
    harmless = all(set(part.attrib) <= ATTRIBUTES for part in root.iter())  # no link, no style
    if len(root) == 1 and text.startswith("<math><mrow>"):  # <math> is a row by itself
        text = f"<math>{text.removeprefix('<math><mrow>').removesuffix('</mrow></math>')}</math>"
    return Markup(SINGLE.sub(r"\1", text)) if harmless else written
