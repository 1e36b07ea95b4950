"""The engine of local processes: one pipe each, so that a dying worker stops no other.

A ready-made pool would lose every pending result when one of its workers is killed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import penchant
from penchant.lab.studies.cells import Cell
from penchant.lab.studies.compute import ERROR
from penchant.lab.studies.engines.worker import GRACE, ChunkSize, packed, worker_setup
from penchant.lab.studies.parts import DescriptionError
from penchant.lab.studies.storage.files import CannotWrite
from penchant.lab.studies.storage.folder import CellCache, Done, Ends
from penchant.threads import VARIABLES

TRIES = 2  # workers that one cell may take down before it is given up
STARTS = 3  # workers in a row that may die before they are ready

Inbox = SimpleQueue[tuple["Worker", dict[str, Any] | None]]


def run_in_processes(jobs: int, cache: CellCache, cells: Sequence[Cell]) -> Ends:
    """The ends of the cells, in batches; a worker that dies loses only what it was computing."""
    refuse_main(cells)
    pool = _Pool(cache, cells)
    try:
        for _ in range(min(jobs, len(cells))):
            pool.start()
        while pool.busy():
            pool.distribute()
            ended = pool.receive()
            if ended:
                yield ended
    finally:  # also when the caller stops early or presses Ctrl-C
        pool.stop()


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


class Worker:
    """One worker process and the cells that were given to it."""

    def __init__(self, setup: dict[str, Any], inbox: Inbox):
        # the folder of penchant itself, so that a worker starts before it receives our sys.path
        home = str(Path(penchant.__file__).parents[1])
        inherited = os.environ.get("PYTHONPATH")
        path = os.pathsep.join([home, inherited] if inherited else [home])
        self.process = subprocess.Popen(
            [sys.executable, "-c", "from penchant.lab.studies.engines.worker import main; main()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **VARIABLES, "PYTHONPATH": path},
        )
        self.given: dict[str, Cell] = {}
        self.ready = False
        self.send(setup)
        threading.Thread(target=self._listen, args=(inbox,), daemon=True).start()

    def send(self, message: Any) -> None:
        assert self.process.stdin is not None
        with suppress(OSError):  # a worker that died is noticed by its listener
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()

    def give(self, cells: list[Cell]) -> None:
        self.given |= {cell.name: cell for cell in cells}
        self.send(packed(cells))

    def _listen(self, inbox: Inbox) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with suppress(ValueError):  # the last line of a killed worker may be cut
                inbox.put((self, json.loads(line)))
        inbox.put((self, None))

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(timeout=GRACE)
        except subprocess.TimeoutExpired:  # deep inside a library; its draft is removed later
            self.process.kill()
            self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()


class _Pool:
    """The workers, the cells that wait, and what is known about both."""

    def __init__(self, cache: CellCache, cells: Sequence[Cell]):
        self.cache = cache
        self.setup = worker_setup(cache)
        self.waiting = deque(cells)
        self.workers: list[Worker] = []
        self.inbox: Inbox = SimpleQueue()
        self.deaths: Counter[str] = Counter()
        self.failed_starts = 0
        self.chunks = ChunkSize()

    def start(self) -> None:
        self.workers.append(Worker(self.setup, self.inbox))

    def busy(self) -> bool:
        return bool(self.waiting) or any(worker.given for worker in self.workers)

    def distribute(self) -> None:
        """Give cells to every worker that is about to run out of them."""
        for worker in self.workers:
            count = self.chunks.portion(len(self.waiting), len(self.workers))
            if worker.ready and self.waiting and len(worker.given) <= count // 2:
                worker.give([self.waiting.popleft() for _ in range(min(count, len(self.waiting)))])

    def receive(self) -> list[Done]:
        """The next ends of cells; none if a worker only reported that it is ready."""
        worker, message = self.inbox.get()
        if message is None:
            return self._replace_dead(worker)
        if "stop" in message:
            kind, sentence = message["stop"]
            full = kind == CannotWrite.__name__
            raise CannotWrite(0, sentence) if full else DescriptionError(sentence)
        worker.ready, self.failed_starts = True, 0
        ended = [Done(*fields) for fields in message.get("done", [])]
        for done in ended:
            worker.given.pop(done.name, None)
            self.chunks.took(done.seconds)
        return ended

    def _replace_dead(self, worker: Worker) -> list[Done]:
        """What a dead worker finished; the rest goes to a new one, unless it killed two."""
        self.workers.remove(worker)
        worker.stop()
        self.failed_starts += not worker.ready
        if self.failed_starts >= STARTS:
            raise OSError(f"run: {STARTS} worker processes could not start ({_how(worker)})")
        ended, rest = self._sorted(worker.given.values())
        if rest:
            self.deaths[rest[0].name] += 1
            if self.deaths[rest[0].name] >= TRIES:
                ended.append(_given_up(rest.pop(0), worker))
        self.waiting.extendleft(reversed(rest))
        if self.waiting:
            self.start()
        return ended

    def _sorted(self, cells: Any) -> tuple[list[Done], list[Cell]]:
        """(ends of the cells that are on disk, the other cells), in order."""
        ended, rest = [], []
        for cell in cells:
            result = self.cache.read(cell)
            if result is None:
                rest.append(cell)
            else:
                ended.append(Done.of(cell.name, result))
        return ended, rest

    def stop(self) -> None:
        for worker in self.workers:
            worker.stop()


def _how(worker: Worker) -> str:
    code = worker.process.returncode
    return f"killed by signal {-code}" if code and code < 0 else f"exit code {code}"


def _given_up(cell: Cell, worker: Worker) -> Done:
    sentence = f"{TRIES} worker processes ended while computing this cell ({_how(worker)})"
    return Done(cell.name, ERROR, sentence, 0.0, False)
