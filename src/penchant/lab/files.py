"""The files of an experiment: its picture in several formats and its data, all or none."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from penchant import store
from penchant.lab.experiment import Experiment
from penchant.lazy import Dataset
from penchant.plotting.style import styled


@contextmanager
def staged(folder: Path) -> Iterator[tuple[Path, list[Path]]]:
    """A hidden stage inside `folder`, and the list that names the files once they are in place.

    When the block ends well each file on the stage is renamed into `folder`; when it raises,
    the stage goes away, and so do the folders that were created for it.
    """
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"figure: the folder {str(folder)!r} is a file; name a directory")
    created = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    try:
        with tempfile.TemporaryDirectory(prefix=".penchant-", dir=folder) as stage:
            yield Path(stage), written
            files = sorted(Path(stage).iterdir())
            blocked = [file.name for file in files if (folder / file.name).is_dir()]
            if blocked:
                raise ValueError(f"figure: {blocked[0]} in {str(folder)!r} is a directory; move it")
            for file in files:
                os.replace(file, folder / file.name)
                written.append(folder / file.name)
    except BaseException:
        for path in created:
            if path.is_dir() and not any(path.iterdir()):
                path.rmdir()
        raise


FORMATS = ("png", "svg", "pdf")
# a date inside would make equal pictures differ
WITHOUT_DATE = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}


def save(
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
