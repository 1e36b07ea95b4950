"""Engines by name: in this process, in other local processes, on a dask cluster, under SLURM."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial

from penchant.arguments import integer, one_of
from penchant.door import door_as
from penchant.lab.studies.cells import Cell
from penchant.lab.studies.code.version import refuse_changed_inputs
from penchant.lab.studies.storage.folder import CellCache, Ends
from penchant.threads import one_thread


def run_here(cache: CellCache, cells: Sequence[Cell]) -> Ends:
    """The end of every cell, as soon as it is known."""
    refuse_changed_inputs(cache.code)
    with one_thread(xla=True):
        for cell in cells:
            yield [cache.finish(cell)]


#: cells in, their ends out; the values are on disk when an end is reported
Engine = Callable[[CellCache, Sequence[Cell]], Ends]
NAMES = ("here", "processes", "slurm")


@door_as("run")
def engine_named(name: str, jobs: int | None = None) -> Engine:
    """The engine with this name, or at an address such as tcp://10.0.0.1:8786."""
    if jobs is not None:
        jobs = integer("jobs", jobs, least=1)
    if "://" in name:
        from penchant.lab.studies.engines.cluster import run_on_scheduler

        return partial(run_on_scheduler, name)
    one_of("engine", name, (*NAMES, "tcp://HOST:PORT"))
    if name == "processes":
        from penchant.lab.studies.engines.processes import run_in_processes

        return partial(run_in_processes, jobs or cores())
    if name == "slurm":
        from penchant.lab.studies.engines.cluster import run_under_slurm

        return partial(run_under_slurm, jobs or 1)
    return run_here


def cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
