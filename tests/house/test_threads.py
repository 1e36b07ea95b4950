"""BLAS takes one thread in every command, figure, worker, flow and script of the docs."""

from __future__ import annotations

import importlib
import os
import runpy
from pathlib import Path

import pytest
import scipy.linalg  # noqa: F401  (a BLAS of its own, to be counted from the start)
from threadpoolctl import threadpool_limits
from typer.testing import CliRunner

import little_papers
import tacit
from little_papers import blas_threads
from tacit.cli import app
from tacit.cli.console import errors_in_one_line

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def two_threads(monkeypatch, tmp_path):
    """A process whose BLAS takes two threads, unless something limits it."""
    monkeypatch.chdir(tmp_path)
    for name in tacit.threads.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    with threadpool_limits(2):
        assert 2 in blas_threads()  # a library built for one thread may stand beside
        yield
        assert 2 in blas_threads()  # and it is given back
        assert not set(tacit.threads.VARIABLES) & set(os.environ)


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
        importlib.import_module("tacit.cli.verify"), "library", lambda: little_papers.threads
    )
    result = CliRunner().invoke(app, ["verify", "--no-report", "--jobs", str(jobs)])
    assert result.exit_code == 0, result.output
    assert "2 holds" in result.output


def test_training_is_limited():
    seen = []
    with pytest.raises(Stopped):
        tacit.train(Probe(seen), Probe(seen), tacit.DualFlow())
    assert seen == [{1}]


def test_the_scripts_of_the_docs_are_limited(monkeypatch, tmp_path):
    build = runpy.run_path(str(ROOT / "docs" / "build.py"))
    seen = []

    def draw(name, file):
        seen.append((blas_threads(), os.environ["OPENBLAS_NUM_THREADS"]))

    monkeypatch.setitem(build["build"].__globals__, "_draw", draw)
    monkeypatch.setitem(build["build"].__globals__, "_shrink", lambda file, colours: None)
    build["build"](tmp_path / "pictures", ["W-F9", "weight_decay"])
    assert seen == [({1}, "1")] * 2  # a script is a child process, and reads the variable
