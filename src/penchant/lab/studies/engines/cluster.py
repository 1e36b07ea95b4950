"""The engine of many machines: cells as tasks of dask.distributed, files on a shared disk."""

from __future__ import annotations

import functools
import json
import logging
import os
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from penchant.lab.studies.cells import Cell
from penchant.lab.studies.compute import ERROR
from penchant.lab.studies.engines.pool import extend_path
from penchant.lab.studies.engines.processes import (
    ChunkSize,
    cache_from,
    compute_all,
    describe_cache,
    pack,
    refuse_main,
)
from penchant.lab.studies.parts import DescriptionError
from penchant.lab.studies.storage.cell_file import CannotWrite, file_of
from penchant.lab.studies.storage.folder import CellCache, Done, Ends

WAIT = 10.0  # seconds for a scheduler to answer
AHEAD = 3  # portions on their way for every worker
ONE = threading.Lock()  # a worker with several threads computes one cell at a time


def run_on_scheduler(address: str, cache: CellCache, cells: Sequence[Cell]) -> Ends:
    """The ends of the cells, computed by the workers of the scheduler at `address`."""
    distributed = _library("distributed", "penchant[distributed]", "dask engine")
    try:
        client = distributed.Client(address, timeout=WAIT, set_as_default=False)
    except (OSError, ValueError) as reason:
        raise ValueError(
            f"run: no dask scheduler answers at {address} ({reason}); start one with "
            "`dask scheduler`, and workers with `dask worker ADDRESS --nthreads 1`"
        ) from None
    with _quiet_logs(), client:
        _await_worker(client, address)
        with _explained_loss(f"the dask scheduler at {address}"):
            yield from _run(client, cache, cells)


@contextmanager
def _quiet_logs() -> Iterator[None]:
    """Silences dask's own log of a lost connection; one error message replaces it."""
    # each module of dask has a logger with a level of its own
    known = list(logging.root.manager.loggerDict)
    names = [name for name in known if name.split(".")[0] in ("distributed", "asyncio")]
    loggers = [logging.getLogger(name) for name in names]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


@contextmanager
def _explained_loss(scheduler: str) -> Iterator[None]:
    """Raise one clear error if the connection to a scheduler breaks."""
    from concurrent.futures import CancelledError

    try:
        yield
    except (CannotWrite, DescriptionError):
        raise
    except (OSError, CancelledError, TimeoutError) as reason:
        words = str(reason).split("\n")[0] or type(reason).__name__
        raise OSError(
            f"run: {scheduler} no longer answers ({words}); finished cells are safe; start "
            "it again, and run the same command to continue"
        ) from None


def _await_worker(client: Any, address: str) -> None:
    try:
        client.wait_for_workers(1, timeout=WAIT)
    except TimeoutError:
        raise ValueError(
            f"run: the dask scheduler at {address} has no workers; start some with "
            f"`dask worker {address} --nthreads 1`"
        ) from None


def run_under_slurm(jobs: int, cache: CellCache, cells: Sequence[Cell]) -> Ends:
    """The same with workers that SLURM starts, as configured for dask-jobqueue."""
    jobqueue = _library("dask_jobqueue", "penchant[slurm]", "slurm engine")
    distributed = _library("distributed", "penchant[distributed]", "slurm engine")
    with ExitStack() as stack:
        cluster = stack.enter_context(jobqueue.SLURMCluster())
        cluster.scale(jobs=jobs)
        client = stack.enter_context(distributed.Client(cluster, set_as_default=False))
        yield from _run(client, cache, cells)


def _library(module: str, extra: str, engine: str) -> Any:
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError:
        raise ValueError(
            f"run: the {engine} needs {module}; install it with `pip install '{extra}'`"
        ) from None


def _run(client: Any, cache: CellCache, cells: Sequence[Cell]) -> Ends:
    """Hand out portions, a few ahead, and pass on what comes back."""
    from distributed import as_completed

    refuse_main(cells)
    setup, chunks = json.dumps([sys.path, describe_cache(cache)]), ChunkSize()
    waiting, running = deque(cells), as_completed(loop=client.loop)
    sent: dict[Any, list[Cell]] = {}

    def send(portion: list[Cell]) -> None:
        text = json.dumps(pack(portion))
        future = client.submit(compute_portion, setup, text, pure=False)
        sent[future.key] = portion
        running.add(future)

    while waiting or sent:
        workers = max(1, len(client.scheduler_info(n_workers=-1)["workers"]))
        while waiting and len(sent) < AHEAD * workers:
            count = chunks.portion(len(waiting), workers)
            send([waiting.popleft() for _ in range(min(count, len(waiting)))])
        future = next(running)
        ended, again = _ends_of(future, sent.pop(future.key))
        for cell in again:  # alone, so that the one that kills its worker is known
            send([cell])
        for done in ended:
            chunks.took(done.seconds)
        _refuse_unshared(cache, ended)
        if ended:
            yield ended


def _ends_of(future: Any, portion: list[Cell]) -> tuple[list[Done], list[Cell]]:
    """(the ends of a portion, the cells to send again); dask has tried a killed one elsewhere."""
    from distributed import KilledWorker

    try:
        answer = future.result()
    except KilledWorker as reason:
        if len(portion) > 1:
            return [], portion
        sentence = f"its dask workers died: {str(reason).split('. ')[0]}"
        return [Done(portion[0].name, ERROR, sentence, 0.0, False)], []
    if answer["full"]:
        raise CannotWrite(0, answer["full"])
    return [Done(*fields) for fields in answer["done"]], []


def _refuse_unshared(cache: CellCache, ended: Iterable[Done]) -> None:
    """Raise if a worker wrote its cells where we cannot see them."""
    stored = [done.name for done in ended if done.stored]
    if stored and not os.path.exists(file_of(cache.folder, stored[0])):
        raise ValueError(
            f"run: a worker wrote its cells, but they are not in {cache.folder} here; --out must "
            "be on a file system that all machines share, under the same path"
        )


def compute_portion(setup: str, cells: str) -> dict[str, Any]:
    """Computes a portion on a dask worker: {"done": ends, "full": why it cannot write}."""
    ended: list[Done] = []
    with ONE:
        try:
            compute_all(_cache(setup), json.loads(cells), ended.extend)
        except CannotWrite as reason:
            return {"done": [], "full": reason.strerror}
    return {"done": [list(done) for done in ended], "full": None}


@functools.lru_cache(maxsize=4)
def _cache(setup: str) -> CellCache:
    """The cache of this worker process, whose BLAS and XLA are set to one thread for good."""
    from penchant.threads import VARIABLES, controller

    os.environ.update(VARIABLES)
    controller().limit(limits=1, user_api="blas")
    path, described = json.loads(setup)
    extend_path(path)
    return cache_from(described)
