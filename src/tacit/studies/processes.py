"""The engine of local processes: one pipe each, so that one may die alone.

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

import tacit
from tacit.studies.cells import Cell
from tacit.studies.compute import ERROR
from tacit.studies.desk import Desk, Done, Ends
from tacit.studies.files import CannotWrite, NotACell, read_named
from tacit.studies.pace import Pace
from tacit.studies.references import DescriptionError
from tacit.studies.worker import GRACE, hello, packed
from tacit.threads import VARIABLES

TRIES = 2  # workers that one cell may take down before it is given up
STARTS = 3  # workers in a row that may die before they are ready

Inbox = SimpleQueue[tuple["Hand", dict[str, Any] | None]]


def run_in_processes(jobs: int, desk: Desk, cells: Sequence[Cell]) -> Ends:
    """The ends of the cells, in batches; a worker that dies loses only what it was computing."""
    refuse_main(cells)
    crew = _Crew(desk, cells)
    try:
        for _ in range(min(jobs, len(cells))):
            crew.hire()
        while crew.busy():
            crew.share_out()
            ended = crew.hear()
            if ended:
                yield ended
    finally:  # also when the caller stops early or presses Ctrl-C
        crew.dismiss()


def refuse_main(cells: Sequence[Cell]) -> None:
    """Raise for a function that only this process knows."""
    for cell in cells[:1]:
        function = str(cell.spec.get("function", ""))
        if function.startswith("__main__:"):
            raise ValueError(
                f"run: the function {function.partition(':')[2]!r} stands in the running script or "
                "notebook, where other processes cannot find it; move it into a module, or use "
                "the engine here"
            )


class Hand:
    """One worker process and the cells that were given to it."""

    def __init__(self, greeting: dict[str, Any], inbox: Inbox):
        # the folder of tacit itself, so that a worker starts before it is told our sys.path
        home = str(Path(tacit.__file__).parents[1])
        inherited = os.environ.get("PYTHONPATH")
        path = os.pathsep.join([home, inherited] if inherited else [home])
        self.process = subprocess.Popen(
            [sys.executable, "-c", "from tacit.studies.worker import main; main()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **VARIABLES, "PYTHONPATH": path},
        )
        self.given: dict[str, Cell] = {}
        self.ready = False
        self.say(greeting)
        threading.Thread(target=self._listen, args=(inbox,), daemon=True).start()

    def say(self, message: Any) -> None:
        assert self.process.stdin is not None
        with suppress(OSError):  # a worker that died is noticed by its listener
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()

    def give(self, cells: list[Cell]) -> None:
        self.given |= {cell.name: cell for cell in cells}
        self.say(packed(cells))

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


class _Crew:
    """The workers, the cells that wait, and what is known about both."""

    def __init__(self, desk: Desk, cells: Sequence[Cell]):
        self.desk = desk
        self.greeting = hello(desk)
        self.waiting = deque(cells)
        self.hands: list[Hand] = []
        self.inbox: Inbox = SimpleQueue()
        self.deaths: Counter[str] = Counter()
        self.stillborn = 0
        self.pace = Pace()

    def hire(self) -> None:
        self.hands.append(Hand(self.greeting, self.inbox))

    def busy(self) -> bool:
        return bool(self.waiting) or any(hand.given for hand in self.hands)

    def share_out(self) -> None:
        """Give cells to every worker that is about to run out of them."""
        for hand in self.hands:
            count = self.pace.portion(len(self.waiting), len(self.hands))
            if hand.ready and self.waiting and len(hand.given) <= count // 2:
                hand.give([self.waiting.popleft() for _ in range(min(count, len(self.waiting)))])

    def hear(self) -> list[Done]:
        """The next ends of cells; none where a worker only said that it is there."""
        hand, message = self.inbox.get()
        if message is None:
            return self._bury(hand)
        if "stop" in message:
            raise _error(*message["stop"])
        hand.ready, self.stillborn = True, 0
        ended = [Done(*told) for told in message.get("done", [])]
        for done in ended:
            hand.given.pop(done.name, None)
            self.pace.took(done.seconds)
        return ended

    def _bury(self, hand: Hand) -> list[Done]:
        """What a dead worker finished; the rest goes to a new one, unless it killed two."""
        self.hands.remove(hand)
        hand.stop()
        self.stillborn += not hand.ready
        if self.stillborn >= STARTS:
            raise OSError(f"run: {STARTS} worker processes could not start ({_how(hand)})")
        ended, rest = self._sorted(hand.given.values())
        if rest:
            self.deaths[rest[0].name] += 1
            if self.deaths[rest[0].name] >= TRIES:
                ended.append(_given_up(rest.pop(0), hand))
        self.waiting.extendleft(reversed(rest))
        if self.waiting:
            self.hire()
        return ended

    def _sorted(self, cells: Any) -> tuple[list[Done], list[Cell]]:
        """(ends of the cells that are on disk, the other cells), in order."""
        ended, rest = [], []
        for cell in cells:
            try:
                result = read_named(self.desk.folder, cell.name, self.desk.code.version)
            except NotACell:
                result = None
            if result is None:
                rest.append(cell)
            else:
                ended.append(Done(cell.name, result.status, result.sentence, result.seconds, True))
        return ended, rest

    def dismiss(self) -> None:
        for hand in self.hands:
            hand.stop()


def _how(hand: Hand) -> str:
    code = hand.process.returncode
    return f"killed by signal {-code}" if code and code < 0 else f"exit code {code}"


def _given_up(cell: Cell, hand: Hand) -> Done:
    sentence = f"{TRIES} worker processes ended while computing this cell ({_how(hand)})"
    return Done(cell.name, ERROR, sentence, 0.0, False)


def _error(kind: str, sentence: str) -> Exception:
    return CannotWrite(0, sentence) if kind == "CannotWrite" else DescriptionError(sentence)
