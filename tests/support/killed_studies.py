"""A slow study, and child processes that run it and are killed by `kill -9`."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from child_processes import PATH

CELLS = 300
STUDY = {"name": "slow", "function": "study_cells:slow", "seeds": 3,
         "grid": {"a": {"linspace": [0, CELLS // 3 - 1, CELLS // 3]}}}  # fmt: skip


def kill_points(times, chance):
    """How many cells there are at each kill: spread over all, none before the first or the last."""
    width = (CELLS - 2) / times
    return [1 + int((k + chance.uniform(0.0, 0.9)) * width) for k in range(times)]


# a process without threads, which forks the runs that are to be killed: no time goes to imports
KILLER = f"""
import os, random, signal, sys, time
from killed_studies import finished_cells, kill_points
from penchant.lab.studies.code.version import code_of
import penchant
from penchant.lab.studies.study import Study
from penchant.threads import controller
controller()
code_of(Study(**{STUDY!r}))
study, chance, hits, counts = Study(**{STUDY!r}), random.Random(int(sys.argv[2])), 0, []
for point in kill_points(int(sys.argv[3]), chance):
    child = os.fork()
    if child == 0:
        penchant.run(study, sys.argv[1])
        os._exit(0)
    while finished_cells(sys.argv[1]) < point:
        time.sleep(0.002)
    time.sleep(chance.uniform(0.0, 0.003))  # a cell takes as long, so some are killed in its midst
    os.kill(child, signal.SIGKILL)
    hits += os.WIFSIGNALED(os.waitpid(child, 0)[1])
    counts.append(finished_cells(sys.argv[1]))
print(hits, *counts)
"""


def finished_cells(out):
    """The number of cells on disk."""
    from penchant.lab.studies.storage.folder import listed

    return len(listed(Path(out) / "slow.cells"))


def child(code, *words, **more):
    environment = {**os.environ, "PYTHONPATH": PATH, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, "-c", code, *map(str, words)], text=True,
                            stdout=subprocess.PIPE, env=environment, **more)  # fmt: skip


RUN = f"""
import sys
import penchant
from penchant.lab.studies.study import Study
if __name__ == "__main__":
    penchant.run(Study(**{STUDY!r}), sys.argv[1], sys.argv[2], 2)
"""


def killed_runs(out, points):
    """The number of cells when each run on two processes was killed with its workers.

    Workers that are left behind would finish what they were given, a third of the study.
    """
    counts = []
    for point in points:
        run = child(RUN, out, "processes", stderr=subprocess.DEVNULL, start_new_session=True)
        while finished_cells(out) < point and run.poll() is None:
            time.sleep(0.002)
        os.killpg(run.pid, signal.SIGKILL)
        run.communicate()
        assert run.returncode == -signal.SIGKILL  # it was alive
        counts.append(finished_cells(out))
    return counts
