"""Studies: overhead of a tiny cell, two processes against one, gathering 10000 cells.

A busy cell computes for about a millisecond, as long as a file system needs to make its file.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from clock import arguments, ratio, seconds, table

import penchant
from penchant import Study
from penchant.lab.studies.cells import cells_of
from penchant.lab.studies.code.version import code_of
from penchant.lab.studies.gather import gather
from penchant.lab.studies.run import cells_folder, write_dataset

WORK = 20_000  # additions of a busy cell


def tiny(a: float, b: float) -> dict[str, float]:
    """A cell that computes next to nothing."""
    return {"total": a + b, "product": a * b}


def busy(a: float, b: float) -> dict[str, float]:
    """A cell of pure Python work, which a second core can share."""
    total = 0.0
    for k in range(WORK):
        total += a * k + b
    return {"total": total}


def study_of(function: str, side: int) -> Study:
    """side x side cells."""
    axis = np.linspace(0, 1, side).tolist()
    return Study(name=function, function=f"studies:{function}", grid={"a": axis, "b": axis})


def overhead(place: Path, side: int) -> tuple[float, float, float]:
    """(seconds a tiny cell in one process, its CPU seconds, seconds to gather all of them)."""
    study = study_of("tiny", side)
    start, cpu = perf_counter(), process_time()
    penchant.run(study, place)
    whole, used = perf_counter() - start, process_time() - cpu
    code = code_of(study).version
    start = perf_counter()
    dataset = gather(study, list(cells_of(study, code)), cells_folder(study, place), code)
    write_dataset(dataset, place / "again.nc")
    assert dataset.attrs["failed"] == 0
    return whole / side**2, used / side**2, perf_counter() - start


def wall(place: Path, side: int, jobs: int) -> float:
    """Seconds of a study of busy cells, start of the workers included."""
    start = perf_counter()
    penchant.run(study_of("busy", side), place / f"{jobs}", "processes", jobs)
    return perf_counter() - start


def spinning(count: int) -> float:
    """Seconds that `count` plain processes need for the same work each: what the machine gives."""
    code = f"t = 0.0\nfor k in range({300 * WORK}): t += 0.5 * k + 0.5"
    start = perf_counter()
    processes = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(count)]
    for process in processes:
        process.wait()
    return perf_counter() - start


def main() -> None:
    quick = arguments(__doc__ or "").quick
    side = 10 if quick else 100
    with tempfile.TemporaryDirectory(prefix="penchant-bench-") as folder:
        place = Path(folder)
        cell, used, gathered = overhead(place, side)
        one, two = (wall(place, side, jobs) for jobs in (1, 2))
    machine = 2 * spinning(1) / spinning(2)
    rows = [
        [f"{side**2} tiny cells in one process, each", seconds(cell)],
        ["  of which CPU", seconds(used)],
        [f"gathering {side**2} cells into one netCDF file", seconds(gathered)],
        [f"{side**2} busy cells, 1 process", seconds(one)],
        [f"{side**2} busy cells, 2 processes", seconds(two)],
    ]
    table(["what", "time"], rows)
    print(f"\nload {json.dumps(os.getloadavg())}; two plain processes do {machine:.2f} times the "
          "work of one on this machine now")  # fmt: skip
    ratio("overhead of a tiny cell / 3 ms", cell / 3e-3, "<= 1", judged=not quick)
    ratio("gathering / 5 s", gathered / 5.0, "<= 1", judged=not quick)
    ratio("two processes against one", one / two, ">= 1.7", judged=not quick)


if __name__ == "__main__":
    main()
