"""What a study survives: kill -9 at any moment, a full disk, two runs at once."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tacit
from tacit.studies.files import CannotWrite
from tacit.studies.run import run_study
from tacit.studies.study import Study

HERE = Path(__file__).parent
PATH = os.pathsep.join([str(HERE), str(Path(tacit.__file__).parents[1])])
CELLS = 300
STUDY = {"name": "slow", "function": "study_cells:slow", "seeds": 3,
         "grid": {"a": {"linspace": [0, CELLS // 3 - 1, CELLS // 3]}}}  # fmt: skip

# a process without threads, which forks the runs that are to be killed: no time goes to imports
KILLER = f"""
import os, random, signal, sys, time
from tacit.studies.code import code_of
from tacit.studies.run import run_study
from tacit.studies.shelves import listed
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


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    out = tmp_path_factory.mktemp("undisturbed")
    run_study(Study(**STUDY), out)
    return (out / "slow.nc").read_bytes()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills processes the Unix way")
def test_twenty_kills_of_the_main_process(tmp_path, undisturbed):
    killer = child(KILLER, tmp_path, 7, 20)
    hits, grown, most = map(int, killer.communicate(timeout=120)[0].split())
    assert hits == 20  # every one of them was still running
    assert grown > 10  # most were killed in mid-study
    assert 0 < most < CELLS
    assert not (tmp_path / "slow.nc").exists()
    run_study(Study(**STUDY), tmp_path)
    assert (tmp_path / "slow.nc").read_bytes() == undisturbed


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


def test_a_killed_run_with_workers(tmp_path, undisturbed):
    assert killed_runs(tmp_path, 1, random.Random(3), 0.8) == 1
    run_study(Study(**STUDY), tmp_path)
    assert (tmp_path / "slow.nc").read_bytes() == undisturbed


LONG = """
import sys
from tacit.studies.run import run_study
from tacit.studies.study import Study
if __name__ == "__main__":
    study = Study(name="long", function="study_cells:waiting", grid={"a": [1.0, 2.0]},
                  arguments={"folder": sys.argv[1]})
    run_study(study, sys.argv[1], "processes", 2)
"""


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="looks for processes the Linux way")
def test_workers_do_not_outlive_their_main_process(tmp_path):
    run = child(LONG, tmp_path, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while len(workers := [int(f.name[4:]) for f in tmp_path.glob("pid-*")]) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    run.kill()
    run.communicate()
    while alive := [pid for pid in workers if os.path.exists(f"/proc/{pid}")]:
        assert time.monotonic() < deadline, alive
        time.sleep(0.1)


@pytest.mark.slow
def test_twenty_kills_of_runs_with_workers(tmp_path, undisturbed):
    assert killed_runs(tmp_path, 20, random.Random(4), 1.5) > 0
    run_study(Study(**STUDY), tmp_path)
    assert (tmp_path / "slow.nc").read_bytes() == undisturbed


def test_two_runs_at_once(tmp_path, undisturbed):
    runs = [child(RUN, tmp_path, engine) for engine in ("here", "processes")]
    assert [run.wait(timeout=120) for run in runs] == [0, 0]
    for run in runs:
        run.stdout.close()
    assert (tmp_path / "slow.nc").read_bytes() == undisturbed
    left = [p.name for p in tmp_path.rglob("*") if p.suffix == ".part" or "aside" in p.parts]
    assert left == []


@contextlib.contextmanager
def small_disk(place):
    """A file system of one megabyte, where one can be mounted."""
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    try:
        done = subprocess.run(mount, capture_output=True, check=False).returncode
    except FileNotFoundError:
        done = 1
    if done != 0:
        pytest.skip("no file system can be mounted here; see the injected ENOSPC of the files")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


@pytest.mark.parametrize(("engine", "jobs"), [("here", 1), ("processes", 2)])
def test_a_full_disk(tmp_path, engine, jobs):
    study = Study(name="greedy", function="study_cells:greedy",
                  grid={"a": {"linspace": [0, 9, 10]}})  # fmt: skip
    with small_disk(tmp_path / "disk") as disk:
        with pytest.raises(CannotWrite, match=r"No space left on device.*finished is safe"):
            run_study(study, disk, engine, jobs)
        finished = list(disk.glob("*/??/*.cell"))
        assert 2 <= len(finished) < 10
        assert not [p for p in disk.rglob("*") if p.suffix in (".part", ".nc")]
        tmp_path.joinpath("disk2").mkdir()
        subprocess.run(["cp", "-r", f"{disk}/.", str(tmp_path / "disk2")], check=True)
    heard = []
    dataset = run_study(study, tmp_path / "disk2", ears=_Counting(heard))
    assert len(heard) == 10 - len(finished)  # after making room only the rest is computed
    assert (dataset.block.isel(block_0=0) == dataset.a).all()


def test_a_disk_that_is_full_when_the_study_is_gathered(tmp_path):
    study = Study(name="greedy", function="study_cells:greedy",
                  grid={"a": {"linspace": [0, 3, 4]}})  # fmt: skip
    with small_disk(tmp_path / "disk") as disk:
        with pytest.raises(OSError, match=r"No space left|cannot write"):
            run_study(study, disk)
        assert len(list(disk.glob("*/??/*.cell"))) == 4
        assert not [p for p in disk.rglob("*") if p.suffix in (".part", ".nc")]


class _Counting:
    def __init__(self, heard):
        self.heard = heard

    def begin(self, total, finished):
        pass

    def done(self, cells):
        self.heard += cells

    def aside(self, sentence):
        pass
