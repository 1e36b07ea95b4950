"""The page of a study: its pictures, how its cells ended, its description, how to repeat it.

The page contains no time, so the same study gives the same page, byte for byte.
"""

from __future__ import annotations

import base64
import dataclasses
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from penchant.door import door_as
from penchant.lab.report.rendering import render
from penchant.lab.report.study_cells import (
    axes,
    doubts,
    endings,
    failures,
    results,
    settings,
    toml,
)
from penchant.lab.studies.compute import message_of
from penchant.lab.studies.gathered import description_of
from penchant.lab.writing import write_text
from penchant.plotting.mplstyle import styled
from penchant.plotting.study.picture import draw_study, further
from penchant.plotting.study.words import title_of
from penchant.store import whole

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure


DPI = 150  # sharp on a screen with many pixels, yet below 100 kB


@dataclasses.dataclass(frozen=True)
class StudyPicture:
    """A PNG file, its title, and its intended width."""

    text: str
    png: bytes
    inches: float

    @property
    def base64(self) -> str:
        return base64.b64encode(self.png).decode("ascii")


@dataclasses.dataclass(frozen=True)
class Pictures:
    """`first` is the study's own picture; `reasons` say why others are absent."""

    first: StudyPicture | None
    more: tuple[StudyPicture, ...]
    reasons: tuple[str, ...]


def pictures_of(dataset: xarray.Dataset) -> Pictures:
    """All pictures of a study, and a reason for each one that cannot be drawn."""
    reasons: list[str] = []
    first = _drawn(title_of(dataset), lambda: draw_study(dataset), reasons)
    if first is None:
        return Pictures(None, (), tuple(reasons))
    drawings = [_drawn(drawing.text, drawing.draw, reasons) for drawing in further(dataset)]
    more = tuple(picture for picture in drawings if picture is not None)
    return Pictures(first, more, tuple(reasons))


def _drawn(text: str, draw: Callable[[], Figure], reasons: list[str]) -> StudyPicture | None:
    buffer = io.BytesIO()
    try:
        with styled():
            figure = draw()
            figure.savefig(buffer, format="png", dpi=DPI, metadata={"Software": None})
    except Exception as error:  # a failed picture must not prevent the report
        reasons.append(message_of(error))
        return None
    return StudyPicture(text, buffer.getvalue(), float(figure.get_size_inches()[0]))


NARROW = 7.0  # inches; a wider picture is not shrunk below legibility, but scrolls


def study_page(dataset: xarray.Dataset, pictures: Pictures) -> str:
    """The report of a gathered study as one HTML document that loads nothing."""
    attributes, name = dataset.attrs, dataset.attrs["study"]
    description = description_of(dataset)
    return render(
        "study.html",
        name=name,
        title=str(attributes["title"]),
        lead=_lead(dataset, bool(description.get("threshold"))),
        endings=endings(dataset),
        pictures=pictures,
        NARROW=NARROW,
        failures=failures(dataset),
        doubts=doubts(dataset),
        results=results(dataset),
        axes=axes(dataset),
        settings=settings(description),
        toml=toml(description),
        command=attributes.get("command") or f"penchant run {name}.toml",
        versions=_versions(json.loads(attributes["versions"])),
        mixed=attributes.get("mixed"),
        code=attributes["code"],
    )


def _lead(dataset: xarray.Dataset, searched: bool) -> str:
    """How many cells or searches there are, and how many of them failed."""
    sizes = " × ".join(f"{dim} ({dataset.sizes[dim]})" for dim in dataset.status.dims)
    cells, failed = (int(dataset.attrs[key]) for key in ("cells", "failed"))
    if searched:
        searches = f"{dataset.status.size} searches over {sizes or 'one line'}"
        return f"{cells} cells for {searches}, {failed} of them without a threshold."
    doubtful = int(dataset.attrs.get("doubtful", 0))
    over = f" over {sizes}" if sizes else ""
    rest = f", {doubtful} doubtful." if doubtful else "."
    return f"{cells} cell{'s' * (cells != 1)}{over}, {failed} failed{rest}"


def _versions(versions: dict[str, str | list[str]]) -> str:
    numbers = {p: n if isinstance(n, str) else " and ".join(n) for p, n in versions.items()}
    return ", ".join(f"{package} {number}" for package, number in numbers.items())


@dataclasses.dataclass(frozen=True)
class StudyReport:
    """Where the report is; `picture` is None where `reasons` say why nothing was drawn."""

    page: Path
    picture: Path | None
    reasons: tuple[str, ...]


@door_as("report")
def write_study_report(dataset: xarray.Dataset, folder: str | Path) -> StudyReport:
    """Write the page and the picture of a gathered study into `folder`; returns their paths."""
    name = dataset.attrs["study"]
    page, picture = Path(folder) / f"{name}.html", Path(folder) / f"{name}.png"
    pictures = pictures_of(dataset)
    text = study_page(dataset, pictures)
    if pictures.first is None:
        picture.unlink(missing_ok=True)  # an older one would not belong to this result
    else:
        with whole(picture) as draft:
            draft.write_bytes(pictures.first.png)
    write_text(page, text)
    return StudyReport(page, picture if pictures.first else None, pictures.reasons)
