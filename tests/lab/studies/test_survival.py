"""What a study survives: kill -9 at any moment, a full disk, two runs at once."""

import contextlib
import itertools
import os
import random
import signal
import subprocess
import time

import pytest

import penchant
from killed_studies import (
    CELLS,
    KILLER,
    RUN,
    STUDY,
    child,
    finished_cells,
    kill_points,
    killed_runs,
)
from penchant import Study
from penchant.lab.studies.storage.cell_file import CannotWrite
from recorder import Recorder


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    out = tmp_path_factory.mktemp("undisturbed")
    penchant.run(Study(**STUDY), out)
    return (out / "slow.nc").read_bytes()


def assert_spread(counts):
    """Every kill came in mid-study, and they are spread over the cells."""
    assert counts[0] > 0
    assert counts[-1] < CELLS
    steps = [after - before for before, after in itertools.pairwise([0, *counts, CELLS])]
    assert sum(step > 0 for step in steps) > 0.8 * len(steps)  # a loaded machine may skip some
    assert max(steps) < CELLS / 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills processes the Unix way")
def test_forty_kills_of_the_main_process(tmp_path, undisturbed):
    killer = child(KILLER, tmp_path, 7, 40)
    hits, *counts = map(int, killer.communicate(timeout=200)[0].split())
    assert (hits, len(counts)) == (40, 40)  # every one of them was still running
    assert_spread(counts)
    assert not (tmp_path / "slow.nc").exists()
    penchant.run(Study(**STUDY), tmp_path)
    assert (tmp_path / "slow.nc").read_bytes() == undisturbed


def test_a_killed_run_with_workers(tmp_path, undisturbed):
    run = child(RUN, tmp_path, "processes", stderr=subprocess.DEVNULL)
    while finished_cells(tmp_path) < CELLS // 10 and run.poll() is None:
        time.sleep(0.002)
    run.kill()  # alone: its workers finish what they were given
    run.communicate()
    assert run.returncode == -signal.SIGKILL
    penchant.run(Study(**STUDY), tmp_path)
    assert (tmp_path / "slow.nc").read_bytes() == undisturbed


LONG = """
import sys
import penchant
from penchant.lab.studies.study import Study
if __name__ == "__main__":
    study = Study(name="long", function="study_cells:waiting", grid={"a": [1.0, 2.0]},
                  arguments={"folder": sys.argv[1]})
    penchant.run(study, sys.argv[1], "processes", 2)
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
def test_forty_kills_of_runs_with_workers(tmp_path, undisturbed):
    assert_spread(killed_runs(tmp_path, kill_points(40, random.Random(4))))
    penchant.run(Study(**STUDY), tmp_path)
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
def small_disk(directory):
    """A file system of one megabyte, where one can be mounted."""
    directory.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(directory)]
    try:
        done = subprocess.run(mount, capture_output=True, check=False).returncode
    except FileNotFoundError:
        done = 1
    if done != 0:
        pytest.skip("no file system can be mounted here; see the injected ENOSPC of the files")
    try:
        yield directory
    finally:
        subprocess.run(["umount", str(directory)], check=True)


@pytest.mark.parametrize(("engine", "jobs"), [("here", 1), ("processes", 2)])
def test_a_full_disk(tmp_path, engine, jobs):
    study = Study(name="greedy", function="study_cells:greedy",
                  grid={"a": {"linspace": [0, 9, 10]}})  # fmt: skip
    with small_disk(tmp_path / "disk") as disk:
        with pytest.raises(CannotWrite, match=r"No space left on device.*finished cells are safe"):
            penchant.run(study, disk, engine, jobs)
        finished = list(disk.glob("*/??/*.cell"))
        assert 2 <= len(finished) < 10
        assert not [p for p in disk.rglob("*") if p.suffix in (".part", ".nc")]
        tmp_path.joinpath("disk2").mkdir()
        subprocess.run(["cp", "-r", f"{disk}/.", str(tmp_path / "disk2")], check=True)
    recorder = Recorder()
    dataset = penchant.run(study, tmp_path / "disk2", progress=recorder)
    assert len(recorder.ended) == 10 - len(finished)  # after making room only the rest is computed
    assert (dataset.block.isel(block_0=0) == dataset.a).all()


def test_a_disk_that_is_full_when_the_study_is_gathered(tmp_path):
    study = Study(name="greedy", function="study_cells:greedy",
                  grid={"a": {"linspace": [0, 3, 4]}})  # fmt: skip
    with small_disk(tmp_path / "disk") as disk:
        with pytest.raises(OSError, match=r"No space left|cannot write"):
            penchant.run(study, disk)
        assert len(list(disk.glob("*/??/*.cell"))) == 4
        assert not [p for p in disk.rglob("*") if p.suffix in (".part", ".nc")]
