"""Cells in worker processes: portions of them, and what a worker does with a portion."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from penchant.lab.studies.cells import Cell
from penchant.lab.studies.code.version import CodeVersion
from penchant.lab.studies.compute import ERROR
from penchant.lab.studies.engines.pool import (
    TRIES,
    PoolTask,
    Send,
    Stopped,
    Tasks,
    Work,
    Worker,
    run_in_pool,
)
from penchant.lab.studies.parts import DescriptionError
from penchant.lab.studies.storage.cell_file import CannotWrite
from penchant.lab.studies.storage.folder import CellCache, Done, Ends

TARGET = 0.2  # seconds of work in one portion
MOST = 200
COST = 5e-4  # seconds that a cell takes in addition to its computation
PATIENCE = 0.05  # seconds for which ends are collected before they are reported


def run_in_processes(jobs: int, cache: CellCache, cells: Sequence[Cell]) -> Ends:
    """The ends of the cells, in batches; a worker that dies loses only what it was computing."""
    refuse_main(cells)
    yield from run_in_pool(_CellTasks(cache, cells), jobs)


def refuse_main(cells: Sequence[Cell]) -> None:
    """Raise for a function that other processes cannot import."""
    for cell in cells[:1]:
        function = str(cell.spec.get("function", ""))
        if function.startswith("__main__:"):
            raise ValueError(
                f"run: the function {function.partition(':')[2]!r} is defined in the running "
                "script or notebook, where other processes cannot find it; move it into a "
                "module, or use the engine 'here'"
            )


class ChunkSize:
    """The mean time of a cell, recent ones counting more."""

    def __init__(self) -> None:
        self.mean: float | None = None

    def took(self, seconds: float) -> None:
        fresh = seconds + COST
        self.mean = fresh if self.mean is None else 0.9 * self.mean + 0.1 * fresh

    def portion(self, waiting: int, workers: int) -> int:
        """Cells for one worker: one until times are known, few when few are left."""
        if self.mean is None:
            return 1
        share = -(-waiting // max(2 * workers, 1))
        return max(1, min(int(TARGET / self.mean), share, MOST))


class _CellTasks(Tasks[Done]):
    """Cells that wait: a worker gets as many as take a fifth of a second."""

    work = f"{__name__}:compute_cells"

    def __init__(self, cache: CellCache, cells: Sequence[Cell]):
        self.cache = cache
        self.setup = describe_cache(cache)
        self.cells = {cell.name: cell for cell in cells}
        self.waiting = deque(map(PoolTask, self.cells, pack(cells)))
        self.chunks = ChunkSize()

    def __len__(self) -> int:
        return len(self.waiting)

    def portion(self, worker: Worker, workers: Sequence[Worker]) -> list[PoolTask]:
        count = self.chunks.portion(len(self.waiting), len(workers))
        if len(worker.given) > count // 2:
            return []
        return [self.waiting.popleft() for _ in range(min(count, len(self.waiting)))]

    def put_back(self, tasks: list[PoolTask]) -> None:
        self.waiting.extendleft(reversed(tasks))

    def read(self, answer: list[Any]) -> Done:
        done = Done(*answer)
        self.chunks.took(done.seconds)
        return done

    def found(self, task: PoolTask) -> Done | None:
        result = self.cache.read(self.cells[task.name])
        return None if result is None else Done.of(task.name, result)

    def give_up(self, task: PoolTask, how: str) -> Done:
        sentence = f"{TRIES} worker processes ended while computing this cell ({how})"
        return Done(task.name, ERROR, sentence, 0.0, False)

    def stopped(self, reason: Stopped) -> Exception:
        full = reason.kind == CannotWrite.__name__
        return CannotWrite(0, reason.sentence) if full else DescriptionError(reason.sentence)


def pack(cells: Iterable[Cell]) -> list[list[Any]]:
    """Cells as JSON values."""
    return [[cell.name, cell.spec] for cell in cells]


def describe_cache(cache: CellCache) -> dict[str, Any]:
    """The folder and the code of a cache as JSON values."""
    return {"folder": str(cache.folder), "code": dataclasses.asdict(cache.code)}


def cache_from(described: dict[str, Any]) -> CellCache:
    """The cache of a worker, if it has the code that the study was planned with."""
    code = CodeVersion(**described["code"])
    difference = code.difference()
    if difference:
        raise DescriptionError(
            f"run: a worker has {difference}; install the same versions on all machines, and do "
            "not change the code while a study runs"
        )
    return CellCache(Path(described["folder"]), code)


def compute_cells(setup: dict[str, Any]) -> Work:
    """What a worker does with a portion of cells."""

    def reported(function: Callable[..., Any], *given: Any) -> Any:
        try:
            return function(*given)
        except (CannotWrite, DescriptionError) as reason:
            sentence = reason.strerror if isinstance(reason, CannotWrite) else str(reason)
            raise Stopped(type(reason).__name__, str(sentence)) from None

    cache = reported(cache_from, setup)
    return lambda cells, send: reported(compute_all, cache, cells, send)


def compute_all(cache: CellCache, cells: Iterable[list[Any]], send: Send) -> None:
    """Compute cells in turn, and report their ends at intervals."""
    ended: list[Done] = []
    last_report = perf_counter()
    for name, spec in cells:
        ended.append(cache.finish(Cell(name, (), spec)))
        if perf_counter() - last_report > PATIENCE:
            send(ended)
            ended, last_report = [], perf_counter()
    if ended:
        send(ended)
