"""Running a study: find the finished cells, compute the missing ones, write one file."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penchant import store
from penchant.door import door
from penchant.lab.studies.adaptive.refine import refined
from penchant.lab.studies.adaptive.threshold import bisected
from penchant.lab.studies.cells import canonical, cells_of
from penchant.lab.studies.code.inputs import ABSENT
from penchant.lab.studies.code.version import code_of
from penchant.lab.studies.engines.complete import CellsOnBar, Rounds, RunProgress
from penchant.lab.studies.engines.named import Engine, engine_named
from penchant.lab.studies.gather import gather
from penchant.lab.studies.parts import DescriptionError
from penchant.lab.studies.storage.cell_file import CannotWrite
from penchant.lab.studies.storage.folder import CellCache
from penchant.progress import ProgressBar, reporting

if TYPE_CHECKING:
    import xarray

    from penchant.lab.studies.study import Study


#: what may change in a study without making it another one
SAME_STUDY = ("grid", "seeds", "title", "labels", "draw", "threshold", "refine", "inputs")


def keep_other(study: Study, file: Path) -> str | None:
    """Rename the result of another study of the same name; returns a message if there is one."""
    if not file.exists():
        return None
    try:
        description = json.loads(store.read(file).attrs["description"])
        if _nature(description) == _nature(study.describe()):
            return None
        mark = _digest(_nature(description).encode())
    except (ValueError, KeyError, OSError):  # not a result of penchant, or a damaged one
        seen = file.stat()  # its content may be large
        mark = _digest(f"{seen.st_size} {seen.st_mtime_ns}".encode())
    renamed = file.with_name(f"{study.name}-{mark}.nc")
    for suffix in (".nc", ".html", ".png"):
        own = file.with_name(f"{study.name}{suffix}")
        if own.exists():
            os.replace(own, renamed.with_name(f"{study.name}-{mark}{suffix}"))
    return f"{file.name} held a different study of the same name; it was renamed to {renamed.name}"


def _nature(description: dict[str, Any]) -> str:
    """What a study computes at any point of its grid, as text."""
    plain = {key: value for key, value in description.items() if key not in SAME_STUDY}
    return canonical(plain)


def _digest(text: bytes) -> str:
    return hashlib.blake2b(text, digest_size=4).hexdigest()


def write_dataset(dataset: xarray.Dataset, file: Path) -> None:
    """Write the gathered file whole, and wait until the disk has it."""
    try:
        store.write(dataset, file)
    except OSError as reason:
        if reason.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise CannotWrite(
            reason.errno,
            f"study: {reason.strerror} for {file}; the cells are safe; free some disk space "
            "and run the same command again",
        ) from None


def cells_folder(study: Study, out: str | os.PathLike[str]) -> Path:
    """The folder of the cells of a study."""
    return Path(out).absolute() / f"{study.name}.cells"


@door
def run(
    study: Study,
    out: str | os.PathLike[str] = "penchant-studies",
    engine: str | Engine = "here",
    jobs: int | None = None,
    progress: bool | RunProgress | None = None,
    command: str = "",
) -> xarray.Dataset:
    """The finished study, which is also written to OUT/NAME.nc; only missing cells are computed.

    A cell that fails does not stop the study: `status` and `sentence` describe its error.

    Parameters
    ----------
    study
        The study.
    out
        The folder for its files.
    engine
        "here" (this process), "processes", "tcp://host:port" (a dask scheduler) or "slurm".
    jobs
        The number of workers.
    progress
        True shows a bar, False none; None shows one in an interactive session if the study takes
        more than two seconds. Or the object that receives progress reports.
    command
        The command to record in the file.

    Returns
    -------
    xarray.Dataset
        One value per cell.

    Examples
    --------
    >>> import penchant
    >>> import tempfile
    >>> function = "penchant_papers.woodworth2020.lemmas.lemma_13:cell"
    >>> grid = {"rows": [2, 3], "ratio": [1, 4]}
    >>> given = {"function": function, "arguments": {"draws": 9, "seed": 0}}
    >>> study = penchant.Study(name="q", grid=grid, **given)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dataset = penchant.run(study, folder)
    >>> dataset.largest.dims, dataset.largest.shape
    (('rows', 'ratio'), (2, 2))
    """
    with reporting(progress, "run") as told:
        report = CellsOnBar(told) if isinstance(told, ProgressBar) else told or RunProgress()
        dataset = compute_study(study, out, engine, jobs, report, command)
    # not with_suffix, which would cut a name such as v1.2
    file = cells_folder(study, out).with_name(f"{study.name}.nc")
    message = keep_other(study, file)
    if message:
        report.aside(message)
    write_dataset(dataset, file)
    return dataset


def compute_study(
    study: Study,
    out: str | os.PathLike[str],
    engine: str | Engine = "here",
    jobs: int | None = None,
    progress: RunProgress | None = None,
    command: str = "",
) -> xarray.Dataset:
    """The finished study from its cells; those that are missing are computed and stored."""
    chosen = engine if callable(engine) else engine_named(engine, jobs)
    cache = CellCache(cells_folder(study, out), code_of(study))
    rounds = Rounds(cache, chosen, progress or RunProgress())
    for name in (name for name, digest in cache.code.inputs.items() if digest == ABSENT):
        rounds.progress.warn(f"study: inputs names {name}, which does not exist")
    try:
        return _gathered(study, rounds, command)
    except DescriptionError as fault:
        raise ValueError(f"{study.source}: {fault}") from None


def _gathered(study: Study, rounds: Rounds, command: str) -> xarray.Dataset:
    """The dataset of a study: its whole grid, or the cells that an adaptive study chooses."""
    if study.threshold is not None:
        return bisected(study, rounds, command)
    if study.refine is not None:
        return refined(study, rounds, command)
    code = rounds.cache.code.version
    cells = list(cells_of(study, code))
    rounds.complete(cells)
    return gather(study, cells, rounds.cache.folder, code, rounds.lost, command)
