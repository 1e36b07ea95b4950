"""Studies in TOML from somebody else: none starts a program, writes a file or imports a module."""

from __future__ import annotations

import itertools
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import penchant
from damage import Found, chosen, fault
from penchant.description import REFUSED, ROOMS
from penchant.lab import read_study
from penchant.lab.studies.estimate import estimate

BASE = {
    "problem": 'is = "sparse_regression"\nsamples = 4\ndimension = 8\nsparsity = 1',
    "model": 'is = "DiagonalNet"\nalpha = 1.0',
    "method": 'is = "DualFlow"',
    "probes.end": 'is = "angle"\na = "$path.predictor"\nb = "$problem.truth"',
}
#: keys of every name, as somebody would give them who wants something to run or be written
BAIT = {
    "save": 'result = "$path", file = "victim.txt"',
    "load": 'file = "victim.txt"',
    "read_study": 'file = "bait.py"',
    "run": 'study = {is = "Study", name = "x", function = "bait:cell", grid = {a = [1.0]}}',
    "Study": 'name = "x", function = "bait:cell", grid = {a = [1.0]}',
    "verify": 'ids = "W-T1"',
    "import_images": 'name = "mnist", source = "bait.tgz"',
    "watch": 'model = "$model", inputs = "$problem.X"',
}
STRANGERS = (
    "os.system",
    "os:system",
    "__import__",
    "eval",
    "exec",
    "open",
    "subprocess.Popen",
    "bait:cell",
    "penchant.save",
    "penchant.store.write",
    "penchant.lab.studies.run.run",
    "__class__",
    "store",
    "",
    "builtins.open",
    "numpy.load",
    "pickle.loads",
    "shutil.rmtree",
    "pathlib.Path",
    "_public",
    "x" * 5000,
)
FUNCTIONS = (
    "os:system",
    "bait:cell",
    "subprocess:run",
    "builtins:exec",
    "shutil:rmtree",
    "bait:",
    ":cell",
    "penchant:save",
    "penchant.lab.studies.run.run",
    "../bait:cell",
    "bait:cell.__globals__",
)
WATCHED = (
    "os.system",
    "subprocess.Popen",
    "os.exec",
    "os.fork",
    "os.posix_spawn",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "shutil.rmtree",
    "socket.connect",
)


WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Events:
    """What Python tells its audit hook while a file is read."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.folder = ""

    def __call__(self, event: str, given: tuple[Any, ...]) -> None:
        if not self.folder:
            return
        own = f"{tempfile.gettempdir()}{os.sep}penchant-dry-"  # where --dry puts its sample cells
        first = given[0] if given and isinstance(given[0], str) else ""
        inside = event in ("os.remove", "os.rmdir") and given[1] != -1  # how rmtree of it goes on
        if first.startswith(own) or "__pycache__" in first or inside:
            return
        if event in WATCHED or (event == "import" and first == "bait"):
            self.seen.append(f"{event} {first!r:.60}")
        elif event == "open" and isinstance(given[2], int) and given[2] & WRITING:
            self.seen.append(f"open {first!r:.80}")


EVENTS: list[Events] = []  # a hook cannot be taken away: one is enough


@contextmanager
def watched(folder: Path) -> Iterator[list[str]]:
    """Notes what would run or be written meanwhile."""
    if not EVENTS:
        EVENTS.append(Events())
        sys.addaudithook(EVENTS[0])
    events = EVENTS[0]
    events.seen, events.folder = [], str(folder)
    try:
        yield events.seen
    finally:
        events.folder = ""


def names() -> list[str]:
    """The public names that a table may not name."""
    return [
        name
        for name in penchant.__all__
        if getattr(penchant, name).__module__.split(".")[1] not in ROOMS or name in REFUSED
    ]


def texts() -> Iterator[tuple[str, str]]:
    """Studies that name what does not compute, in every place that takes a table."""
    for name, position in itertools.product((*names(), *STRANGERS), TABLES):
        table = f'{{is = "{name}", {BAIT.get(name, "")}}}'.replace(", }", "}")
        yield f"{name[:40]} in {position}", placed(position, table)
    for function, line in itertools.product(FUNCTIONS, FUNCTION_LINES):
        head = line.replace("FUNCTION", function)
        yield f"function {head[:50]}", head + "\n" + placed("stop", "1.0")
        yield f"function {head[:50]} alone", head + "\ngrid.a = [1.0]\n"
    for depth in (50, 5000):
        yield f"nested {depth} deep", placed("stop", "[" * depth + "]" * depth)
        yield (
            f"tables {depth} deep",
            placed("stop", '{is="Q", x=' * depth + "1" + "}" * depth),
        )


TABLES = (
    "problem",
    "model",
    "method",
    "stop",
    "record",
    "model.shape",
    "problem.noise",
    "probes.theft",
    "probes.theft.list",
    "stop.inner",
    "stop.list",
    "grid",
)
FUNCTION_LINES = (
    'function = "FUNCTION"',
    'function = "FUNCTION"\narguments = {command = "touch owned"}',
    'function = {is = "FUNCTION"}',
    'forms.quick.function = "FUNCTION"',
)


def placed(position: str, table: str) -> str:
    """A study with a table at a place."""
    parts = dict(BASE)
    part, _, key = position.partition(".")
    head = ""
    if position == "grid":
        head = f'grid = {{"method.rtol" = [{table}]}}\n'
    elif position == "probes.theft":
        head = f"probes.theft = {table}\n"
        del parts["probes.end"]
    elif position == "probes.theft.list":
        parts["probes.end"] = f'is = "angle"\na = [[{table}]]\nb = "$problem.truth"'
    elif not key:
        head = f"{part} = {table}\n"
        parts.pop(part, None)
    elif position == "stop.list":
        head = f"stop = [[{table}]]\n"
    else:
        parts[part] = parts.get(part, 'is = "Time"\nt = 1.0') + f"\n{key} = {table}"
    return head + "\n".join(f"[{name}]\n{lines}" for name, lines in parts.items()) + "\n"


def hostile_studies(folder: Path, count: int) -> Found:
    """Each is refused by a sentence when it is read, or when its sample cells are computed."""
    (folder / "bait.py").write_text("open('owned', 'w').close()\ndef cell(a):\n    return {}\n")
    file, found = folder / "study.toml", []
    before, path = Path.cwd(), list(sys.path)
    os.chdir(folder)
    try:
        for name, text in chosen(texts(), count):
            file.write_text(text)
            found.append((name, _fault(file)))
    finally:
        os.chdir(before)
        sys.path[:] = path
    return found


def _fault(file: Path) -> str:
    before = sorted(file.parent.iterdir())
    with watched(file.parent) as seen:
        wrong = fault(lambda: _read(file), lambda sentence: bool(sentence))
    if seen:
        return f"ran: {seen[0]}"
    if wrong == "other values without a word":
        return "accepted without a word"
    return wrong if sorted(file.parent.iterdir()) == before else "left a file"


def _read(file: Path) -> str:
    """What a study that can be read says of its cells, as `--dry` does."""
    return estimate(read_study(file), file.parent / "out").failure
