"""The report of a study on disk: NAME.html and NAME.png beside NAME.nc, whole or not at all."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.report.study_page import study_page
from tacit.report.study_pictures import pictures_of
from tacit.store import whole

if TYPE_CHECKING:
    import xarray


@dataclasses.dataclass(frozen=True)
class StudyReport:
    """Where the report is; `picture` is None where `reasons` say why nothing was drawn."""

    page: Path
    picture: Path | None
    reasons: tuple[str, ...]


def write_study_report(dataset: xarray.Dataset, folder: str | Path) -> StudyReport:
    """Write page and picture of a gathered study into `folder`, and say where they are."""
    name = dataset.attrs["study"]
    page, picture = Path(folder) / f"{name}.html", Path(folder) / f"{name}.png"
    pictures = pictures_of(dataset)
    text = study_page(dataset, pictures)
    if pictures.first is None:
        picture.unlink(missing_ok=True)  # an older one would not belong to this result
    else:
        _write(picture, pictures.first.png)
    _write(page, text.encode("utf-8"))
    return StudyReport(page, picture if pictures.first else None, pictures.reasons)


def _write(file: Path, content: bytes) -> None:
    with whole("report", file) as draft:
        draft.write_bytes(content)
