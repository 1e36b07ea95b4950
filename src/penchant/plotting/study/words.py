"""What is written into a picture of a study: foreign texts made harmless, numbers in short."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from penchant.mathematics import in_terminal, latex, wrap

if TYPE_CHECKING:
    import xarray

FONT = "DejaVu Sans"
GREEK = {
    *("alpha", "beta", "gamma", "delta", "epsilon", "eta", "theta", "kappa", "lambda"),
    *("mu", "nu", "rho", "sigma", "tau", "phi"),
}
UNKNOWN = "\N{REPLACEMENT CHARACTER}"


@functools.cache
def _letters() -> frozenset[int]:
    """The letters that the font has, in both of the weights that are used."""
    from matplotlib import font_manager

    fonts = [
        font_manager.FontProperties(family=FONT, weight=weight) for weight in ("normal", "bold")
    ]
    maps = [font_manager.get_font(font_manager.findfont(font)).get_charmap() for font in fonts]
    return frozenset(maps[0]) & frozenset(maps[1])


def plain(text: object, most: int = 200) -> str:
    """A foreign text on one line, cut, in letters that the font of the pictures has.

    The name of a Greek letter, as variables have it, becomes this letter.
    """
    words = " ".join(str(text).split())
    if words in GREEK:
        return rf"$\{words}$"
    simple = words.isascii() and words.isprintable()  # which every font has
    known = words if simple else "".join(c if ord(c) in _letters() else UNKNOWN for c in words)
    shown = in_terminal(known)
    return known if len(shown) <= most else f"{shown[: most - 1]}…"


def number(value: Any) -> str:
    """A value of an axis, or a measured one, in a few letters."""
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, int | float | np.number):
        text = f"{float(value):.4g}"
        return in_terminal(f"${latex(float(value), '.4g')}$") if "e" in text else text
    return plain(value, 24)


def label(dataset: xarray.Dataset, name: str, width: int = 48) -> str:
    """What a variable or an axis is, with its unit, in lines of `width` letters."""
    attributes = dataset[name].attrs
    text = plain(attributes.get("long_name") or name, 150)
    if len(text) > 40:
        text = text.split("; ")[0]  # what follows is a remark
    units = plain(attributes.get("units", "1"), 20)
    return wrap(text if units in ("1", "") else f"{text} ({units})", width)


def short(dataset: xarray.Dataset, name: str, most: int = 48) -> str:
    """What a variable is, up to the first colon or semicolon; its name where that is too long."""
    meaning = plain(dataset[name].attrs.get("long_name") or name)
    clause = re.split(r"[:;] ", meaning)[0]
    return clause if len(in_terminal(clause)) <= most else plain(name, 30)


def named(dataset: xarray.Dataset, name: str) -> str:
    """The name of a variable and its meaning."""
    meaning = label(dataset, name, 400)
    return meaning if meaning == plain(name) else f"{plain(name, 40)}: {meaning}"


def title_of(dataset: xarray.Dataset) -> str:
    return plain(dataset.attrs.get("title") or dataset.attrs.get("study", "A study"), 160)
