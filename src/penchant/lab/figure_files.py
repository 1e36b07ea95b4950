"""The files of `penchant figure`: the picture of an experiment in several formats, and its data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from penchant import store
from penchant.lab.experiment import Experiment
from penchant.lab.writing import staged
from penchant.lazy import Dataset
from penchant.plotting.style import styled

FORMATS = ("png", "svg", "pdf")
# a date inside would make equal pictures differ
WITHOUT_DATE = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}


def save_figure(
    experiment: Experiment,
    data: Sequence[Dataset],
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
            store.write(dataset, stage / f"{dataset.study}.nc")
    return written
