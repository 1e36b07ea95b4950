"""The first and the second `penchant verify W M L N` in an empty folder, and the default tests."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from clock import arguments, ratio, seconds, table

ROOT = Path(__file__).resolve().parent.parent
PENCHANT = (sys.executable, "-c", "from penchant.cli import app; app()")


def timed(command: tuple[str, ...], folder: Path | str) -> float:
    """Wall seconds of a command that must end well."""
    start = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    quick = arguments(__doc__ or "").quick
    what = ("W-T1", "W-F2") if quick else ("W", "M", "L", "N")
    with tempfile.TemporaryDirectory() as folder:
        first, second = (timed((*PENCHANT, "verify", *what), folder) for _ in range(2))
    rows = [
        [f"penchant verify {' '.join(what)}, first time", seconds(first)],
        ["the same again", seconds(second)],
    ]
    if not quick:
        tests = timed((sys.executable, "-m", "pytest"), ROOT)
        rows.append(["default tests", seconds(tests)])
    table(["command", "wall time"], rows)
    ratio("first verify / 120 s", first / 120, "<= 1", judged=not quick)
    ratio("second verify / 10 s", second / 10, "<= 1", judged=not quick)
    if not quick:
        ratio("default tests / 6 min", tests / 360, "<= 1")


if __name__ == "__main__":
    main()
