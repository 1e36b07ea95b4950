"""The pictures of a study as PNG files in memory, or the sentences that say why there are none."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Callable
from typing import TYPE_CHECKING

from tacit.plotting.study.picture import draw_study, further
from tacit.plotting.study.words import title_of
from tacit.plotting.style import styled
from tacit.studies.compute import message_of

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

DPI = 150  # sharp on a screen with many pixels, yet below 100 kB


@dataclasses.dataclass(frozen=True)
class Picture:
    """A PNG file, what it shows, and how wide it was meant to be."""

    text: str
    png: bytes
    inches: float


@dataclasses.dataclass(frozen=True)
class Pictures:
    """`first` is the study's own picture; `reasons` tell why others are absent."""

    first: Picture | None
    more: tuple[Picture, ...]
    reasons: tuple[str, ...]


def pictures_of(dataset: xarray.Dataset) -> Pictures:
    """All pictures of a study; one that cannot be drawn leaves a sentence."""
    reasons: list[str] = []
    first = _drawn(title_of(dataset), lambda: draw_study(dataset), reasons)
    if first is None:
        return Pictures(None, (), tuple(reasons))
    drawings = [_drawn(one.text, one.draw, reasons) for one in further(dataset)]
    more = tuple(picture for picture in drawings if picture is not None)
    return Pictures(first, more, tuple(reasons))


def _drawn(text: str, draw: Callable[[], Figure], reasons: list[str]) -> Picture | None:
    try:
        with styled():
            return _picture(text, draw())
    except Exception as error:  # a picture must not cost the result its report
        reasons.append(message_of(error))
        return None


def _picture(text: str, figure: Figure) -> Picture:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI, metadata={"Software": None})
    return Picture(text, buffer.getvalue(), float(figure.get_size_inches()[0]))
