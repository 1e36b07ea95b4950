"""Studies on a dask cluster of two workers on loopback: the same bits, and a killed worker."""

import contextlib
import json
import os
import re
import subprocess
import sys
import time

import pytest

import penchant
from child_processes import PATH
from penchant import Study
from penchant.lab.studies.code import version as code
from penchant.lab.studies.code.version import CodeVersion, numerical_versions
from recorder import Recorder

pytest.importorskip("distributed", reason="pip install 'penchant[distributed]'")


@pytest.fixture(autouse=True)
def fresh_code():
    """The texts of modules are forgotten after every test: the tree may be edited meanwhile."""
    code._SEEN.clear()


def started(module, *words):
    command = [sys.executable, "-m", f"distributed.cli.{module}", *words]
    return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": PATH},
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with a_cluster(tmp_path_factory.mktemp("cluster")) as (address, workers, _):
        yield address, workers


@contextlib.contextmanager
def a_cluster(folder, count=2):
    """(address, the worker processes, the scheduler's)"""
    file = folder / "scheduler.json"
    address = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    scheduler = started("dask_scheduler", *address, "--scheduler-file", str(file))
    alone = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1")
    workers = [started("dask_worker", "--scheduler-file", str(file), *alone) for _ in range(count)]
    try:
        deadline = time.monotonic() + 60
        while not file.exists() or not file.read_text():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield json.loads(file.read_text())["address"], workers, scheduler
    finally:
        for process in (*workers, scheduler):
            process.kill()
            process.wait()


def test_the_cluster_gives_the_same_file(cluster, tmp_path):
    study = Study(name="product", function="study_cells:product", grid={"a": [0.0, 1.0]}, seeds=2)
    written = []
    for engine in ("here", cluster[0]):
        penchant.run(study, tmp_path / engine[:3], engine)
        written.append((tmp_path / engine[:3] / "product.nc").read_bytes())
    assert written[0] == written[1]


def test_a_killed_worker_loses_nothing(cluster, tmp_path):
    address, workers = cluster
    grid = {"a": {"linspace": [0, 149, 150]}}
    study = Study(name="slow", function="study_cells:slow", grid=grid)

    class Killing(Recorder):
        def done(self, cells):
            super().done(cells)
            if len(self.ended) > 20 and workers[0].poll() is None:
                workers[0].kill()
                workers[0].wait()

    progress = Killing()
    dataset = penchant.run(study, tmp_path / "cluster", address, progress=progress)
    assert workers[0].poll() == -9  # it was killed in mid-run, and one worker did the rest
    assert (dataset.status == "solved").all()
    assert len(progress.ended) == 150
    assert dataset.equals(penchant.run(study, tmp_path / "here"))


def test_wrong_code_on_a_worker_is_refused(cluster, tmp_path, monkeypatch):
    from penchant.lab.studies import run

    study = Study(name="plain", function="study_cells:plain", grid={"a": [1.0]})
    other = CodeVersion("0.0.1+other", {"study_cells": "0123456789ab"}, numerical_versions())
    monkeypatch.setattr(run, "code_of", lambda study: other)
    with pytest.raises(
        ValueError, match="a worker has a different version of the module study_cells"
    ):
        penchant.run(study, tmp_path, cluster[0])


def test_a_killed_scheduler_is_one_sentence_and_the_cells_are_safe(tmp_path):
    grid = {"a": {"linspace": [0, 149, 150]}}
    study = Study(name="slow", function="study_cells:slow", grid=grid)
    with a_cluster(tmp_path, count=1) as (address, _, scheduler):
        # in a process of its own: the client of a dead scheduler leaves an open socket behind
        words = [sys.executable, "-c", KILLING, str(tmp_path / "out"), address, str(scheduler.pid)]
        child = subprocess.run(words, env={**os.environ, "PYTHONPATH": PATH}, capture_output=True,
                              text=True, timeout=120)  # fmt: skip
        scheduler.wait()
    assert re.search(r"no longer answers .* finished cells are safe", child.stdout), child
    assert "Traceback" not in child.stderr, child.stderr
    stored = len(list((tmp_path / "out").rglob("*.cell")))
    assert stored > 0
    progress = Recorder()
    penchant.run(study, tmp_path / "out", progress=progress)
    assert len(progress.ended) <= 150 - stored


KILLING = """
import os, signal, sys
from penchant.lab.studies.engines.complete import RunProgress
import penchant
from penchant.lab.studies.study import Study
class Killing(RunProgress):
    def done(self, cells):
        os.kill(int(sys.argv[3]), signal.SIGKILL)
study = Study(name="slow", function="study_cells:slow", grid={"a": {"linspace": [0, 149, 150]}})
try:
    penchant.run(study, sys.argv[1], sys.argv[2], progress=Killing())
except OSError as reason:
    print(reason)
"""
