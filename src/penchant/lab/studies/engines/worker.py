"""A worker process: cells come in as lines of JSON, their ends go out the same way.

They travel over descriptors of their own, which a child of a cell does not get: what a cell reads
from its standard input is empty, and what it prints goes to the standard error.

Lines instead of pickles, and a fresh interpreter instead of a fork: JAX may hang in a forked
process, and a spawned one would run the caller's script again.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from time import perf_counter, sleep
from typing import Any, BinaryIO, TextIO

from penchant.lab.studies.cells import Cell
from penchant.lab.studies.code.version import Code
from penchant.lab.studies.parts import DescriptionError
from penchant.lab.studies.storage.files import CannotWrite
from penchant.lab.studies.storage.folder import CellCache, Done

TARGET = 0.2  # seconds of work in one portion
MOST = 200
COST = 5e-4  # seconds that a cell takes in addition to its computation


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


PATIENCE = 0.05  # seconds for which ends are collected before they are reported
GRACE = 2.0  # seconds in which a worker may tidy up

Send = Callable[[dict[str, Any]], None]


def worker_setup(cache: CellCache) -> dict[str, Any]:
    """The settings that a worker needs before its first cell."""
    code = dataclasses.asdict(cache.code)
    return {"path": sys.path, "folder": str(cache.folder), "code": code}


def cache_from_setup(setup: dict[str, Any]) -> CellCache:
    """The cache of a worker, if it has the code that the study was planned with."""
    sys.path += [entry for entry in setup["path"] if entry not in sys.path]
    code = Code(**setup["code"])
    difference = code.difference()
    if difference:
        raise DescriptionError(
            f"run: a worker has {difference}; install the same versions on all machines, and do "
            "not change the code while a study runs"
        )
    return CellCache(Path(setup["folder"]), code)


def packed(cells: Iterable[Cell]) -> list[list[Any]]:
    return [[cell.name, cell.spec] for cell in cells]


def compute_all(
    cache: CellCache, cells: Iterable[list[Any]], send: Callable[[list[Done]], None]
) -> None:
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


def end_with_parent() -> None:
    """Stop this process soon after the one that started it is gone, even during a cell."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            sleep(1.0)
        os.kill(os.getpid(), signal.SIGTERM)  # tidies up, unless a library does not let it
        sleep(GRACE)
        os._exit(143)

    threading.Thread(target=watch, daemon=True).start()


def main() -> None:
    """Compute the requested cells until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    signal.signal(signal.SIGTERM, _interrupt)
    end_with_parent()
    commands, answers = _own_descriptors()

    def send(message: dict[str, Any]) -> None:
        answers.write(json.dumps(message) + "\n")

    with suppress(BrokenPipeError, KeyboardInterrupt):  # one thread: the environment says so
        try:
            _serve(commands, send)
        except (CannotWrite, DescriptionError) as reason:
            sentence = reason.strerror if isinstance(reason, CannotWrite) else str(reason)
            send({"stop": [type(reason).__name__, sentence]})
    with suppress(BrokenPipeError):
        answers.close()


def _interrupt(*_: Any) -> None:
    """Unwind, so that no draft is left behind; to a cell, SystemExit would be its own."""
    raise KeyboardInterrupt


def _own_descriptors() -> tuple[BinaryIO, TextIO]:
    """The pipes that the parent gave as standard input and output, moved to other descriptors."""
    commands = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    if hasattr(os, "register_at_fork"):  # or a forked child keeps the pipes of a dead worker open
        numbers = commands.fileno(), answers.fileno()
        os.register_at_fork(after_in_child=lambda: tuple(map(os.close, numbers)))
    return commands, answers


def _serve(commands: BinaryIO, send: Send) -> None:
    lines = iter(commands.readline, b"")
    cache = cache_from_setup(json.loads(next(lines)))
    send({"ready": True})
    for line in lines:
        compute_all(cache, json.loads(line), lambda ended: send({"done": ended}))
