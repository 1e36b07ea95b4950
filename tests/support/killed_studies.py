"""A slow study, and child processes that run it and are killed by `kill -9`."""

import os
import signal
import subprocess
import sys
import time

from child_processes import PATH

CELLS = 300
STUDY = {"name": "slow", "function": "study_cells:slow", "seeds": 3,
         "grid": {"a": {"linspace": [0, CELLS // 3 - 1, CELLS // 3]}}}  # fmt: skip

# a process without threads, which forks the runs that are to be killed: no time goes to imports
KILLER = f"""
import os, random, signal, sys, time
from tacit.studies.code.version import code_of
from tacit.studies.run import run_study
from tacit.studies.storage.folder import listed
from tacit.studies.study import Study
from tacit.threads import controller
from pathlib import Path
controller()
code_of(Study(**{STUDY!r}))
count = lambda: len(listed(Path(sys.argv[1]) / "slow.cells"))
study, chance, hits, grown = Study(**{STUDY!r}), random.Random(int(sys.argv[2])), 0, set()
for _ in range(int(sys.argv[3])):
    child = os.fork()
    if child == 0:
        run_study(study, sys.argv[1])
        os._exit(0)
    at = count() + chance.randint(0, 8)
    while count() < at:  # some are killed before their first cell, most between two others
        time.sleep(0.01)
    time.sleep(chance.uniform(0.0, 0.01))
    os.kill(child, signal.SIGKILL)
    hits += os.WIFSIGNALED(os.waitpid(child, 0)[1])
    grown.add(count())
print(hits, len(grown), max(grown))
"""


def child(code, *words, **more):
    environment = {**os.environ, "PYTHONPATH": PATH, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, "-c", code, *map(str, words)], text=True,
                            stdout=subprocess.PIPE, env=environment, **more)  # fmt: skip


RUN = f"""
import sys
from tacit.studies.run import run_study
from tacit.studies.study import Study
if __name__ == "__main__":
    run_study(Study(**{STUDY!r}), sys.argv[1], sys.argv[2], 2)
"""


def killed_runs(out, times, chance, longest):
    """How many runs on two processes were alive when they were killed."""
    hits = 0
    for _ in range(times):
        run = child(RUN, out, "processes", stderr=subprocess.DEVNULL)
        time.sleep(chance.uniform(0.2, longest))
        run.kill()
        run.communicate()
        hits += run.returncode == -signal.SIGKILL
    return hits
