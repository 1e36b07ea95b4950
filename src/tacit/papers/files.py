"""The files of an experiment: its picture in several formats and its data, all or none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tacit import store
from tacit.papers.experiment import Experiment
from tacit.plotting.files import staged
from tacit.plotting.style import styled

if TYPE_CHECKING:
    import xarray

FORMATS = ("png", "svg", "pdf")
# a date inside would make equal pictures differ
WITHOUT_DATE = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}


def save(
    experiment: Experiment,
    data: Sequence[xarray.Dataset],
    folder: str | Path,
    formats: Iterable[str] = ("png", "svg"),
) -> list[Path]:
    """The files written into `folder`; they appear together once everything has succeeded."""
    picture = experiment.picture(data)
    with staged(Path(folder)) as (stage, written), styled():
        for name in formats:
            file = stage / f"{experiment.id}.{name}"
            picture.savefig(file, format=name, metadata=WITHOUT_DATE.get(name))
        for dataset in data:
            store.save(dataset, stage / f"{dataset.study}.nc")
    return written
