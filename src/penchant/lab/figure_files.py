"""The files of a picture: in several formats, with the data that it shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from penchant import store
from penchant.arguments import one_of
from penchant.lab.experiment import Experiment
from penchant.lab.writing import staged, write_text
from penchant.lazy import Dataset, Figure
from penchant.plotting.drawn_data import table_of
from penchant.plotting.mplstyle import styled

FORMATS = ("png", "svg", "pdf")
# a date inside would make equal pictures differ
WITHOUT_DATE = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}


def read_formats(given: Iterable[str]) -> list[str]:
    """The formats of texts such as "pdf,png", each once."""
    names = [name.strip() for text in given for name in text.split(",")]
    return list(dict.fromkeys(one_of("format", name, FORMATS) for name in names))


def save_figure(
    experiment: Experiment,
    data: Sequence[Dataset],
    folder: str | Path,
    formats: Iterable[str] = ("png", "svg"),
    *,
    table: bool = False,
    mark: str = "",
) -> list[Path]:
    """The files written into `folder`; they appear together once everything has succeeded.

    With `table` the data that the picture shows are a CSV file too; `mark` is added to the names.
    """
    picture = experiment.picture(data)
    with staged(Path(folder)) as (stage, written):
        _write(picture, stage, f"{experiment.id}{mark}", formats, table)
        for dataset in data:
            store.write(dataset, stage / f"{dataset.study}.nc")
    return written


def save_picture(
    picture: Figure, name: str, folder: str | Path, formats: Iterable[str], table: bool = False
) -> list[Path]:
    """The files of a picture that comes without datasets, written in the same way."""
    with staged(Path(folder)) as (stage, written):
        _write(picture, stage, name, formats, table)
    return written


def _write(picture: Figure, stage: Path, name: str, formats: Iterable[str], table: bool) -> None:
    with styled():
        for kind in formats:
            metadata = WITHOUT_DATE.get(kind)
            picture.savefig(stage / f"{name}.{kind}", format=kind, metadata=metadata)
    if table:
        write_text(stage / f"{name}.csv", table_of(picture))
