"""A study run: finished cells found, missing ones computed, one file gathered."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.studies.adaptive.refine import refined
from tacit.studies.adaptive.rounds import Rounds
from tacit.studies.adaptive.threshold import bisected
from tacit.studies.cells import cells_of
from tacit.studies.code.version import code_of
from tacit.studies.engines.complete import Progress
from tacit.studies.engines.named import Engine, engine_named
from tacit.studies.gather import gather
from tacit.studies.references import DescriptionError
from tacit.studies.storage.cache import CellCache
from tacit.studies.storage.writing import keep_other, write_dataset

if TYPE_CHECKING:
    import xarray

    from tacit.studies.study import Study


def cells_folder(study: Study, out: str | os.PathLike[str]) -> Path:
    """Where the cells of a study lie."""
    return Path(out).absolute() / f"{study.name}.cells"


def run_study(
    study: Study,
    out: str | os.PathLike[str] = "tacit-studies",
    engine: str | Engine = "here",
    jobs: int | None = None,
    progress: Progress | None = None,
    command: str = "",
) -> xarray.Dataset:
    """The finished study, which is also in OUT/NAME.nc; only cells that are missing are computed.

    A cell that fails is a row with its sentence.

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
        What is told about the progress.
    command
        The command that is written into the file.

    Returns
    -------
    xarray.Dataset
        One value per cell.

    Examples
    --------
    >>> import tacit
    >>> import tempfile
    >>> function = "tacit.papers.woodworth2020.lemmas.lemma_13:cell"
    >>> grid = {"rows": [2, 3], "ratio": [1, 4]}
    >>> study = tacit.Study(name="q", function=function, arguments={"draws": 9}, grid=grid)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dataset = tacit.run_study(study, folder)
    >>> dataset.largest.dims, dataset.largest.shape
    (('rows', 'ratio'), (2, 2))
    """
    chosen = engine if callable(engine) else engine_named(engine, jobs)
    cache = CellCache(cells_folder(study, out), code_of(study))
    rounds = Rounds(cache, chosen, progress or Progress())
    try:
        dataset = _asked(study, rounds, command)
    except DescriptionError as fault:
        raise ValueError(f"{study.source}: {fault}") from None
    # not with_suffix, which would cut a name such as v1.2
    file = cache.folder.with_name(f"{study.name}.nc")
    kept = keep_other(study, file)
    if kept:
        rounds.progress.aside(kept)
    write_dataset(dataset, file)
    return dataset


def _asked(study: Study, rounds: Rounds, command: str) -> xarray.Dataset:
    """The dataset of a study: all of its grid, or what an adaptive one asks for in rounds."""
    if study.threshold is not None:
        return bisected(study, rounds, command)
    if study.refine is not None:
        return refined(study, rounds, command)
    code = rounds.cache.code.version
    cells = list(cells_of(study, code))
    rounds.complete(cells)
    return gather(study, cells, rounds.cache.folder, code, rounds.lost, command)
