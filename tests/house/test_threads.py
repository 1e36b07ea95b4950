"""BLAS takes one thread in every command, figure, worker, flow and script of the docs."""

from __future__ import annotations

import importlib
import json
import os
import runpy
import threading
from pathlib import Path

import pytest
import scipy.linalg  # noqa: F401  (a BLAS of its own, to be counted from the start)
from threadpoolctl import OpenBLASController, threadpool_limits
from typer.testing import CliRunner

import little_papers
import penchant
from little_papers import blas_threads
from penchant.cli import app
from penchant.cli.console import errors_in_one_line

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def two_threads(monkeypatch, tmp_path):
    """A process whose BLAS takes two threads, unless something limits it."""
    monkeypatch.chdir(tmp_path)
    for name in penchant.threads.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    with threadpool_limits(2):
        assert 2 in blas_threads()  # a library built for one thread may stand beside
        yield
        assert 2 in blas_threads()  # and it is given back
        assert not set(penchant.threads.VARIABLES) & set(os.environ)


class Stopped(Exception):
    """The probe has seen enough."""


class Probe:
    """An object that notes how many threads BLAS has when anything is asked of it."""

    def __init__(self, seen):
        object.__setattr__(self, "seen", seen)

    def __getattribute__(self, name):
        object.__getattribute__(self, "seen").append(blas_threads())
        raise Stopped


def test_every_command_is_limited():
    seen = []

    @errors_in_one_line
    def command():
        seen.append((blas_threads(), os.environ.get("OPENBLAS_NUM_THREADS")))

    command()
    assert seen == [({1}, "1")]
    made_by = {entry.callback.__code__ for entry in app.registered_commands}
    assert made_by == {command.__code__}  # each is what `errors_in_one_line` returns


def test_the_control_a_bare_function_is_not_limited():
    assert 2 in blas_threads()


@pytest.mark.parametrize("jobs", [1, 2])
def test_claims_are_limited_here_and_in_workers(jobs, monkeypatch):
    monkeypatch.setattr(
        importlib.import_module("penchant.cli.verify"), "all_claims", lambda: little_papers.threads
    )
    result = CliRunner().invoke(app, ["verify", "--no-report", "--jobs", str(jobs)])
    assert result.exit_code == 0, result.output
    assert "2 holds" in result.output


def test_training_is_limited():
    seen = []
    with pytest.raises(Stopped):
        penchant.train(Probe(seen), Probe(seen), penchant.DualFlow())
    assert seen == [{1}]


def test_the_scripts_of_the_docs_are_limited(monkeypatch, tmp_path):
    build = runpy.run_path(str(ROOT / "docs" / "build.py"))
    seen = []

    def draw(name, file):
        seen.append((blas_threads(), os.environ["OPENBLAS_NUM_THREADS"]))
        return 2.34

    monkeypatch.setitem(build["build"].__globals__, "_draw", draw)
    monkeypatch.setitem(build["build"].__globals__, "_shrink", lambda file, colours: None)
    build["build"](tmp_path / "pictures", ["W-F9", "weight_decay"])
    assert json.loads((tmp_path / "seconds.json").read_text()) == {"weight_decay": 2.3}
    assert seen == [({1}, "1")] * 2  # a script is a child process, and reads the variable


def test_the_last_of_several_threads_gives_the_threads_back():
    first_is_in, second_is_in = threading.Event(), threading.Event()
    seen = {}

    def first():
        with penchant.threads.one_thread(xla=True):
            first_is_in.set()
            second_is_in.wait(10)
        seen["second is still inside"] = blas_threads()

    runner = threading.Thread(target=first)
    runner.start()
    first_is_in.wait(10)
    with penchant.threads.one_thread(xla=True):  # enters second, leaves last
        second_is_in.set()
        runner.join(10)
    assert seen == {"second is still inside": {1}}
    assert 2 in blas_threads()  # and the fixture looks at the environment


def test_a_cleared_environment_inside_is_no_error():
    with penchant.threads.one_thread(xla=True):
        for name in penchant.threads.VARIABLES:
            del os.environ[name]


def test_many_calls_from_many_threads_leave_the_threads_as_they_were():
    problem = penchant.problems.sparse_regression(5, 8, sparsity=2)
    # the fixture's thread must not be the only one that threadpoolctl 3.8 obeys
    getattr(OpenBLASController, "clear_controlling_thread", lambda force: None)(force=True)

    def solve():
        for _ in range(20):
            penchant.interpolate(problem, penchant.L2())

    runners = [threading.Thread(target=solve) for _ in range(6)]
    for runner in runners:
        runner.start()
    for runner in runners:
        runner.join(60)
    assert 2 in blas_threads()


class OpenMP:
    """A BLAS whose number of threads belongs to the Python thread that sets it."""

    user_api, internal_api, threading_layer = "blas", "openblas", "openmp"

    def __init__(self):
        self.own = threading.local()

    @property
    def num_threads(self):
        return getattr(self.own, "number", 8)

    def set_num_threads(self, number):
        self.own.number = number


def test_a_blas_with_a_number_for_each_thread_is_limited_in_each(monkeypatch):
    library, entered, leave = OpenMP(), threading.Event(), threading.Event()
    fake = type("Controller", (), {"lib_controllers": [library]})
    monkeypatch.setattr(penchant.threads, "controller", lambda: fake)
    penchant.threads._libraries.cache_clear()
    seen = []

    def other():
        with penchant.threads.one_blas_thread():
            seen.append(library.num_threads)
            entered.set()
            leave.wait(10)
        seen.append(library.num_threads)

    runner = threading.Thread(target=other)
    runner.start()
    entered.wait(10)
    with penchant.threads.one_blas_thread():
        assert library.num_threads == 1
    assert library.num_threads == 8
    leave.set()
    runner.join(10)
    assert seen == [1, 8]
    penchant.threads._libraries.cache_clear()
