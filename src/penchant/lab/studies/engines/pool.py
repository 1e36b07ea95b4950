"""A pool of worker processes, for cells and for experiments.

How it works. Every worker is a fresh interpreter with a pipe of its own, and the messages are lines
of JSON. JAX may hang in a forked process, and a spawned one would run the caller's script again. A
ready-made pool would lose every pending result when one of its workers is killed; here a worker
that dies loses only the task it was working on, which gets one more worker before it is given up.

The parent sends the setup, then portions of tasks; `Tasks` decides who gets which. The worker calls
the function that the setup names, once, and what that returns for every portion. It answers with
lists that begin with the name of a task. A task gets nothing of this traffic: its standard input is
empty, and what it prints goes to the standard error. BLAS and XLA have one thread in a worker.
"""

from __future__ import annotations

import abc
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from time import sleep
from typing import Any, BinaryIO, Generic, NamedTuple, TextIO, TypeVar

import penchant
from penchant.threads import VARIABLES

TRIES = 2  # workers that one task may take down before it is given up
STARTS = 3  # workers in a row that may die before they are ready
GRACE = 2.0  # seconds in which a worker may tidy up

Answer = TypeVar("Answer")
Send = Callable[[Sequence[Any]], None]  # answers to the parent, each with its name first
Work = Callable[[list[Any], Send], None]  # what a worker does with a portion of tasks


class PoolTask(NamedTuple):
    """One piece of work; `content` reaches the worker as JSON."""

    name: str
    content: Any


class Stopped(Exception):
    """Raised by a worker: the whole work cannot go on, for the reason in `sentence`."""

    def __init__(self, kind: str, sentence: str):
        super().__init__(sentence)
        self.kind, self.sentence = kind, sentence


class Tasks(abc.ABC, Generic[Answer]):
    """The tasks of a pool: which of them wait, who gets which, and what an answer is.

    `work` is the function that a worker calls with `setup`, as "module:function".
    """

    work: str
    setup: Any

    @abc.abstractmethod
    def __len__(self) -> int:
        """How many tasks wait."""

    @abc.abstractmethod
    def portion(self, worker: Worker, workers: Sequence[Worker]) -> list[PoolTask]:
        """The next tasks of a worker, taken out of those that wait; none if it has enough."""

    @abc.abstractmethod
    def put_back(self, tasks: list[PoolTask]) -> None:
        """Let tasks of a dead worker wait again, before all others."""

    @abc.abstractmethod
    def read(self, answer: list[Any]) -> Answer:
        """The answer of a worker."""

    @abc.abstractmethod
    def give_up(self, task: PoolTask, how: str) -> Answer:
        """The answer for a task whose workers died; `how` says it in a few words."""

    def found(self, task: PoolTask) -> Answer | None:
        """The answer that a dead worker has left on disk, if any."""
        return None

    def stopped(self, reason: Stopped) -> Exception:
        """The error that a worker reported."""
        return reason


def run_in_pool(tasks: Tasks[Answer], jobs: int) -> Iterator[list[Answer]]:
    """The answers, in batches as they arrive."""
    pool = _Pool(tasks)
    try:
        for _ in range(min(jobs, len(tasks))):
            pool.start()
        while pool.is_busy():
            pool.distribute()
            answers = pool.receive()
            if answers:
                yield answers
    finally:  # also when the caller stops early or presses Ctrl-C
        for worker in pool.workers:
            worker.process.terminate()
        for worker in pool.workers:
            worker.stop()


class Worker:
    """One worker process and the tasks that were given to it; `last` is the latest one."""

    def __init__(self, setup: dict[str, Any], inbox: Inbox):
        # the folder of penchant itself, so that a worker starts before it receives our sys.path
        home = str(Path(penchant.__file__).parents[1])
        inherited = os.environ.get("PYTHONPATH")
        path = os.pathsep.join([home, inherited] if inherited else [home])
        self.process = subprocess.Popen(
            [sys.executable, "-c", f"from {__name__} import main; main()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **VARIABLES, "PYTHONPATH": path},
        )
        self.given: dict[str, PoolTask] = {}
        self.last = ""
        self.ready = False
        self.send(setup)
        threading.Thread(target=self._listen, args=(inbox,), daemon=True).start()

    def send(self, message: Any) -> None:
        assert self.process.stdin is not None
        with suppress(OSError):  # a worker that died is noticed by its listener
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()

    def give(self, tasks: list[PoolTask]) -> None:
        self.given |= {task.name: task for task in tasks}
        self.last = tasks[-1].name
        self.send([task.content for task in tasks])

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

    @property
    def end(self) -> str:
        """How the process ended."""
        code = self.process.returncode
        return f"killed by signal {-code}" if code and code < 0 else f"exit code {code}"


Inbox = SimpleQueue[tuple[Worker, dict[str, Any] | None]]


class _Pool(Generic[Answer]):
    """The workers, and what is known about them."""

    def __init__(self, tasks: Tasks[Answer]):
        self.tasks = tasks
        self.setup = {"path": sys.path, "work": tasks.work, "setup": tasks.setup}
        self.workers: list[Worker] = []
        self.inbox: Inbox = SimpleQueue()
        self.deaths: Counter[str] = Counter()
        self.failed_starts = 0

    def start(self) -> None:
        self.workers.append(Worker(self.setup, self.inbox))

    def is_busy(self) -> bool:
        return len(self.tasks) > 0 or any(worker.given for worker in self.workers)

    def distribute(self) -> None:
        """Give tasks to every worker that is about to run out of them."""
        for worker in self.workers:
            portion = self.tasks.portion(worker, self.workers) if worker.ready else []
            if portion:
                worker.give(portion)

    def receive(self) -> list[Answer]:
        """The next answers; none if a worker only reported that it is ready."""
        worker, message = self.inbox.get()
        if message is None:
            return self._replace_dead(worker)
        if "stop" in message:
            raise self.tasks.stopped(Stopped(*message["stop"])) from None
        worker.ready, self.failed_starts = True, 0
        answers = message.get("done", [])
        for name, *_ in answers:
            worker.given.pop(name, None)
        return [self.tasks.read(answer) for answer in answers]

    def _replace_dead(self, worker: Worker) -> list[Answer]:
        """What a dead worker finished; the rest goes to a new one, unless it killed two."""
        self.workers.remove(worker)
        worker.stop()
        self.failed_starts += not worker.ready
        if self.failed_starts >= STARTS:
            raise OSError(f"run: {STARTS} worker processes could not start ({worker.end})")
        pairs = [(task, self.tasks.found(task)) for task in worker.given.values()]
        answers = [answer for _, answer in pairs if answer is not None]
        rest = [task for task, answer in pairs if answer is None]
        if rest:
            self.deaths[rest[0].name] += 1
            if self.deaths[rest[0].name] >= TRIES:
                answers.append(self.tasks.give_up(rest.pop(0), worker.end))
        self.tasks.put_back(rest)
        if len(self.tasks):
            self.start()
        return answers


# --- in the worker ---------------------------------------------------------------------------


def main() -> None:
    """Do the requested work until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    signal.signal(signal.SIGTERM, _interrupt)
    _end_with_parent()
    commands, answers = _own_descriptors()
    sys.dont_write_bytecode = True  # Python takes a module edited within a second for unchanged

    def send(message: dict[str, Any]) -> None:
        answers.write(json.dumps(message) + "\n")

    with suppress(BrokenPipeError, KeyboardInterrupt):  # one thread: the environment says so
        try:
            _serve(commands, send)
        except Stopped as reason:
            send({"stop": [reason.kind, reason.sentence]})
    with suppress(BrokenPipeError, KeyboardInterrupt):
        answers.close()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # nothing is left to unwind but libraries


def _serve(commands: BinaryIO, send: Callable[[dict[str, Any]], None]) -> None:
    lines = iter(commands.readline, b"")
    first = json.loads(next(lines))
    extend_path(first["path"])
    module, _, name = first["work"].partition(":")
    work: Work = getattr(importlib.import_module(module), name)(first["setup"])
    send({"ready": True})
    for line in lines:
        work(json.loads(line), lambda answers: send({"done": answers}))


def extend_path(entries: list[str]) -> None:
    """Let this process import what the parent can."""
    sys.path += [entry for entry in entries if entry not in sys.path]


def _interrupt(*_: Any) -> None:
    """Unwind, so that no draft is left behind; to a cell, SystemExit would be its own."""
    raise KeyboardInterrupt


def _end_with_parent() -> None:
    """Stop this process soon after the one that started it is gone, even during a task."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            sleep(1.0)
        os.kill(os.getpid(), signal.SIGTERM)  # tidies up, unless a library does not let it
        sleep(GRACE)
        os._exit(143)

    threading.Thread(target=watch, daemon=True).start()


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
