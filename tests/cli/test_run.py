"""`penchant run`: exit codes, what is printed, what is left on disk."""

import importlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import penchant
from child_processes import HEED_CTRL_C, PATH
from commands import penchant_command
from penchant.lab.studies.code import version as versions

command = importlib.import_module("penchant.cli.run")


TOML = """
function = "study_cells:{function}"
seeds = {seeds}
[grid]
a = {values}
"""


@pytest.fixture(autouse=True)
def empty_folder(monkeypatch, tmp_path):
    """The texts of modules are forgotten before every test: the tree may be edited meanwhile."""
    versions._SEEN.clear()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "140")


def write(function="plain", values="[1.0, 2.0, 3.0]", seeds=2):
    text = TOML.format(function=function, values=values, seeds=seeds)
    if seeds is None:
        text = text.replace("seeds = None\n", "")
    Path("sweep.toml").write_text(text)


def run(*words, trust=True):
    return penchant_command("run", *words, *(["--trust"] if trust else []))


def test_a_study_runs_and_runs_again():
    write()
    code, printed = run("sweep.toml", "--jobs", 2)
    assert code == 0
    expected = f"sweep: 6 cells, 6 computed now, 0 failed; {Path('penchant-studies/sweep.nc')}"
    assert expected in printed
    dataset = penchant.load("penchant-studies/sweep.nc")
    assert dataset.attrs["command"] == "penchant run sweep.toml"
    code, printed = run("sweep.toml", "--engine", "here")
    assert code == 0
    assert "6 cells, 0 computed now, 0 failed" in printed


def test_failures_are_counted_and_printed():
    write("moody", "[0.0, 1.0]", None)
    code, printed = run("sweep.toml", "--engine", "here")
    assert code == 0  # a run that diverges is a result
    assert "diverged: a = 1.0: loss 1e300 after 7 steps" in printed
    assert "2 cells, 2 computed now, 1 failed" in printed
    write("moody", "[2.0, 2.5, 3.0]", None)
    code, printed = run("sweep.toml", "--engine", "here")
    assert code == 1  # errors of the code are not
    assert "error: a = 2.0: ZeroDivisionError: no way" in printed


def test_many_failures_are_not_all_listed(monkeypatch):
    monkeypatch.setattr(command, "SHOWN", 1)
    write("moody", "[2.0, 3.0]", None)
    printed = run("sweep.toml", "--engine", "here")[1]
    assert "… and 1 more; see the variables status and sentence" in printed


def test_dry_says_cells_time_and_disk_and_writes_nothing():
    write()
    code, printed = run("sweep.toml", "--dry", "--jobs", 2)
    assert code == 0
    assert "sweep: --dry computes sample cells of study_cells:plain" in printed
    assert "sweep: 6 cells (a 3 x seed 2), 0 finished" in printed
    assert re.search(r"time: about [\d.]+ m?s on 2 worker\(s\), .* on 5 sample cells", printed)
    assert re.search(r"disk: about [\d.]+ kB, [\d.]+ .B free", printed)
    assert os.listdir() == ["sweep.toml"]
    write("moody", "[2.0]", None)
    assert "warning: a sample cell failed: ZeroDivisionError" in run("sweep.toml", "--dry")[1]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["absent.toml"], "run: there is no study file 'absent.toml'"),
        (["sweep.toml", "--engine", "heer"], "run: unknown engine 'heer'; did you mean here?"),
        (["sweep.toml", "--out", "sweep.toml"], "run: 'sweep.toml' must be a directory"),
        (["sweep.toml", "--engine", "slurm"], "the slurm engine needs dask_jobqueue; install it"),
    ],
)
def test_wrong_usage_is_one_line(words, sentence, monkeypatch):
    monkeypatch.setitem(sys.modules, "dask_jobqueue", None)
    write()
    code, printed = run(*words)
    assert code == 2
    (line,) = printed.strip().splitlines()
    assert sentence in line
    assert not list(Path().rglob("*.nc"))


def test_a_misspelled_key_is_named_with_its_file():
    write()
    Path("sweep.toml").write_text(Path("sweep.toml").read_text().replace("seeds", "seds"))
    code, printed = run("sweep.toml")
    assert code == 2
    assert "error: sweep.toml: unknown key 'seds'; did you mean" in printed
    assert "seeds" in printed


def test_a_function_of_a_file_is_run_only_after_a_yes(monkeypatch, tmp_path):

    monkeypatch.setenv("PENCHANT_CACHE", str(tmp_path / "cache"))
    write()
    code, printed = run("sweep.toml", "--dry", trust=False)
    assert code == 2
    assert "the study runs the code of the function 'study_cells:plain'" in printed
    assert "pass --trust" in printed
    answers = []
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr(command.typer, "confirm", lambda text, err: answers.append(text) or True)
    file = Path("sweep.toml").resolve()
    assert command.confirmed(file, "study_cells:plain")
    assert command.confirmed(file, "study_cells:plain")  # remembered
    assert len(answers) == 1
    assert command.confirmed(file, "study_cells:other")  # another function is another question
    assert len(answers) == 2
    monkeypatch.setattr(command.typer, "confirm", lambda text, err: False)
    assert not command.confirmed(tmp_path / "other.toml", "study_cells:plain")


def test_durations_and_sizes_have_units():
    assert [command.duration(s) for s in (0.0021, 3.14, 90, 5400, 2e5)] == [
        "2.1 ms", "3.1 s", "1.5 min", "1.5 h", "2.3 days",
    ]  # fmt: skip
    assert [command.bytes_of(b) for b in (12, 3400, 5.6e6, 7e9)] == [
        "12 bytes", "3.4 kB", "5.6 MB", "7.0 GB",
    ]  # fmt: skip


@pytest.mark.skipif(not hasattr(signal, "SIGINT") or os.name == "nt", reason="a Unix signal")
def test_control_c_leaves_everything_finished():
    write("slow", "{linspace = [0, 999, 1000]}", 3)
    process = subprocess.Popen(
        [sys.executable, "-c", HEED_CTRL_C + "from penchant.cli import app; app()",
         "run", "sweep.toml", "--trust", "--jobs", "2"], stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": PATH}, text=True,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while len(list(Path().rglob("*.cell"))) < 5:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, messages = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted; finished cells are kept; run the same command to continue" in messages
    left = len(list(Path().rglob("*.cell")))
    assert 5 <= left < 3000
    time.sleep(0.2)
    assert len(list(Path().rglob("*.cell"))) == left  # the workers have stopped too


def test_a_bar_on_a_terminal_shows_failures_and_what_was_set_aside():
    from rich.console import Console

    from penchant.cli.run import meter
    from penchant.lab.studies.storage.folder import Done

    console = Console(force_terminal=True, width=120, record=True)
    with meter("sweep", console) as progress:
        progress.begin(3, [Done("a", "solved", "", 0.1, True)])
        progress.done([Done("b", "diverged", "at step 3", 0.1, True)])
        progress.aside("x.cell is empty")
    assert progress.summary() == "3 cells, 1 computed now, 1 failed"
    assert "x.cell is empty" in console.export_text()
