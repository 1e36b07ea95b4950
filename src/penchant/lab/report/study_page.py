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

from penchant.lab.report.markup import Markup, definitions, document, joined, part, tag
from penchant.lab.report.study_cells import doubts, ended, failures, outcome, parameters
from penchant.lab.studies.compute import message_of
from penchant.lab.studies.gathered import description_of
from penchant.lab.writing import write_text
from penchant.plotting.study.picture import draw_study, further
from penchant.plotting.study.words import title_of
from penchant.plotting.style import styled
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
    drawings = [_drawn(one.text, one.draw, reasons) for one in further(dataset)]
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
    title = str(dataset.attrs["title"])
    description = description_of(dataset)
    parts = (
        _pictures(pictures),
        failures(dataset),
        doubts(dataset),
        outcome(dataset),
        parameters(dataset, description),
        _repeat(dataset),
    )
    main = tag("main", *(tag("section", found) for found in parts if found))
    return document(f"penchant: {title}", _header(dataset, title), main, _footer(dataset))


def _header(dataset: xarray.Dataset, title: str) -> Markup:
    sizes = " × ".join(f"{dim} ({dataset.sizes[dim]})" for dim in dataset.status.dims)
    cells, failed = (int(dataset.attrs[key]) for key in ("cells", "failed"))
    doubtful = int(dataset.attrs.get("doubtful", 0))
    lead = f"{cells} cell{'s' * (cells != 1)}{f' over {sizes}' if sizes else ''}, {failed} failed"
    lead += f", {doubtful} doubtful." if doubtful else "."
    if description_of(dataset).get("threshold"):
        lead = f"{cells} cells for {dataset.status.size} searches over {sizes or 'one line'}, "
        lead += f"{failed} of them without a threshold."
    return tag(
        "header",
        tag("p", f"penchant run: {dataset.attrs['study']}", class_="kicker"),
        tag("h1", title),
        tag("p", lead, class_="lead"),
        ended(dataset),
        id="top",
    )


def _pictures(pictures: Pictures) -> Markup:
    first = _figure(pictures.first) if pictures.first else None
    more = tag("div", *map(_figure, pictures.more), class_="plots") if pictures.more else None
    missing = [
        tag("p", f"No picture: {reason}.", class_="reason inconclusive")
        for reason in pictures.reasons
    ]
    return joined(tag("h2", "Pictures" if more else "Picture"), first, more, *missing)


def _figure(picture: StudyPicture) -> Markup:
    """A picture inside the page, with its title as alternative text."""
    data = base64.b64encode(picture.png).decode("ascii")
    wide = f"min-width:{picture.inches * 62:.0f}px" if picture.inches > NARROW else None
    image = tag("img", src=f"data:image/png;base64,{data}", alt=picture.text, style=wide)
    return tag("figure", tag("div", image, class_="scroll"), class_="picture")


def _repeat(dataset: xarray.Dataset) -> Markup:
    name = dataset.attrs["study"]
    command = dataset.attrs.get("command") or f"penchant run {name}.toml"
    alternative = f"or save the description above as {name}.toml and run that"
    rows = {
        command: f"run it again, on any engine; finished cells are not repeated; {alternative}",
        f"penchant show {name}.nc": "show its sizes, variables and origin",
        f"penchant explore {name}.nc": "open the study as a page; click on a cell to see it",
        f'penchant.load("{name}.nc")': "load the labelled data in Python as an xarray.Dataset",
    }
    pairs = ((tag("code", line), text) for line, text in rows.items())
    files = f"{name}.nc is in the same folder as this page, and so is {name}.png if it was drawn."
    return joined(
        tag("h2", "Repeat and open"),
        definitions(pairs, "commands"),
        tag("p", files, class_="place"),
        _provenance(dataset),
    )


def _provenance(dataset: xarray.Dataset) -> Markup:
    versions = json.loads(dataset.attrs["versions"])
    numbers = {p: n if isinstance(n, str) else " and ".join(n) for p, n in versions.items()}
    text = ", ".join(f"{package} {number}" for package, number in numbers.items())
    mixed = dataset.attrs.get("mixed")
    return part(
        "Versions",
        tag("p", text or "unknown"),
        tag("p", f"The cells were computed with different versions: {mixed}.") if mixed else None,
        tag("p", "Code: ", tag("code", str(dataset.attrs["code"]))),
    )


def _footer(dataset: xarray.Dataset) -> Markup:
    text = f"The report of {dataset.attrs['study']}.nc; the same study gives the same page."
    return tag("footer", tag("p", text))


@dataclasses.dataclass(frozen=True)
class StudyReport:
    """Where the report is; `picture` is None where `reasons` say why nothing was drawn."""

    page: Path
    picture: Path | None
    reasons: tuple[str, ...]


def write_study_report(dataset: xarray.Dataset, folder: str | Path) -> StudyReport:
    """Write the page and the picture of a gathered study into `folder`; returns their paths."""
    name = dataset.attrs["study"]
    page, picture = Path(folder) / f"{name}.html", Path(folder) / f"{name}.png"
    pictures = pictures_of(dataset)
    text = study_page(dataset, pictures)
    if pictures.first is None:
        picture.unlink(missing_ok=True)  # an older one would not belong to this result
    else:
        with whole("report", picture) as draft:
            draft.write_bytes(pictures.first.png)
    write_text("report", page, text)
    return StudyReport(page, picture if pictures.first else None, pictures.reasons)
