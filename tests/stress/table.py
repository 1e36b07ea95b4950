"""Everything that must not break penchant, counted: `python tests/stress/table.py [--share 0.1]`.

With --write the table goes into docs/robustness.md. A share below 1 takes that part of each size.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import multiprocessing
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "support"))

import damaged_files
import damaged_studies
import foreign_toml
import hostile_requests
import odd_arrays
import outcomes
from damage import Found

PAGE = Path(__file__).parents[2] / "docs" / "robustness.md"
BEGIN, END = "<!-- stress: begin -->", "<!-- stress: end -->"
LIBRARIES = ("penchant", "numpy", "scipy", "h5py", "xarray", "tornado", "bokeh")


def solvers(folder: Path, count: int) -> Found:
    """Random odd problems, judged by another route (tests/stress/judge.py)."""
    odd = outcomes.table(range(count))[1]
    return [(name, f"{kind}: {why}") for kind, name, why in odd] + [("", "")] * (count - len(odd))


Kind = Callable[[Path, int], Found]
KINDS: dict[str, tuple[Kind, int]] = {
    "damaged and forged results": (damaged_files.results, 600),
    "damaged and forged gathered studies": (damaged_files.studies, 400),
    "damaged and forged records of a watch": (damaged_files.records, 450),
    "damaged and forged verdicts": (damaged_files.verdicts, 400),
    "damaged and forged cells": (damaged_studies.cells, 400),
    "damaged image caches": (damaged_files.image_caches, 250),
    "hostile studies in TOML": (foreign_toml.hostile_studies, 500),
    "studies killed with `kill -9`": (damaged_studies.kills, 40),
    "hostile requests to the page": (hostile_requests.hostile_requests, 90),
    "odd arrays": (odd_arrays.odd_arrays, 1950),
    "odd problems for the solvers": (solvers, 1000),
}


def counted(name: str, share: float) -> tuple[str, Found, float]:
    """The cases of one kind, and the processor time that this process spent on them."""
    kind, size = KINDS[name]
    begun = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        found = kind(Path(folder), max(2, round(size * share)))
    return name, found, time.process_time() - begun


def table(rows: list[tuple[str, Found, float]]) -> str:
    """The rows in Markdown, and what failed beneath."""
    lines = ["| test | count | failures | CPU time |", "|---|---:|---:|---:|"]
    for name, found, seconds in rows:
        failed = sum(bool(wrong) for _, wrong in found)
        lines.append(f"| {name} | {len(found)} | {failed} | {seconds:.0f} s |")
    every = [case for _, found, _ in rows for case in found]
    lines.append(f"| all | {len(every)} | {sum(bool(wrong) for _, wrong in every)} | |")
    failures = [f"- {name}: {wrong}".replace("|", "/")[:300] for name, wrong in every if wrong]
    return "\n".join([*lines, *([""] if failures else []), *failures])


def versions() -> str:
    found = [f"{name} {importlib.metadata.version(name)}" for name in LIBRARIES]
    return ", ".join([f"Python {platform.python_version()}", *found])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=float, default=1.0, help="part of each size")
    parser.add_argument("--write", action="store_true", help="put the table into the docs")
    options = parser.parse_args()
    rows = []
    for name in KINDS:  # one after the other, each in a fresh process: a crash ends only its kind
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            rows.append(pool.apply(counted, (name, options.share)))
        print(table(rows[-1:]), flush=True)
    if options.write:
        command = " ".join(["python", "tests/stress/table.py", *sys.argv[1:]])
        text = f"`{command}` on {datetime.now(UTC):%Y-%m-%d}; {versions()}.\n\n{table(rows)}"
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        after = rest.partition(END)[2]
        PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
