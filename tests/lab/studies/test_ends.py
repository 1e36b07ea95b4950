"""How cells end: rude exits are failures, doubtful results are states, children store nothing."""

import json
import math
import os
import subprocess

import numpy as np
import pytest

import penchant
from commands import penchant_command
from killed_studies import child
from penchant import Study
from penchant.lab.report.study_page import write_study_report
from penchant.lab.studies.compute import compute
from recorder import Recorder

ENGINES = [("here", 1), ("processes", 2)]


def of(function, values, **more):
    return Study(name=function, function=f"study_cells:{function}", grid={"a": values}, **more)


@pytest.fixture
def environment():
    """The environment as it was, after a cell that clears it."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.mark.parametrize(("engine", "jobs"), ENGINES)
def test_an_exit_is_a_failure_of_its_cell(tmp_path, engine, jobs, environment):
    study = of("leaving", [0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    dataset = penchant.run(study, tmp_path, engine, jobs)
    assert list(dataset.status.values) == ["solved", "error", "error", "error", "solved", "solved"]
    assert list(dataset.sentence.values[1:4]) == [
        "the cell called sys.exit(0)", "the cell called sys.exit('enough')", "Rude: no Exception",
    ]  # fmt: skip
    again = Recorder()
    penchant.run(study, tmp_path, engine, jobs, again)
    assert again.ended == []  # they would end in the same way


def test_a_module_that_exits_when_it_is_imported_is_refused(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "leaves.py").write_text("import sys\nsys.exit(0)\n")
    with pytest.raises(ValueError, match=r"cannot be imported \(it calls sys.exit\(0\)\)"):
        Study(name="s", function="leaves:cell", grid={"a": [1.0]})
    code, text = penchant_command("run", tmp_path / "leaves.py", "--out", tmp_path / "out")
    assert code == 2
    assert "leaves.py calls sys.exit(0) when it is imported" in text


def test_ctrl_c_is_no_failure(monkeypatch):
    def interrupted(a):
        raise KeyboardInterrupt

    monkeypatch.setattr("study_cells.plain", interrupted)
    with pytest.raises(KeyboardInterrupt):
        compute({"function": "study_cells:plain", "arguments": {"a": 1.0}, "dims": {}})


def test_a_cell_that_reads_its_standard_input_gets_nothing(tmp_path):
    dataset = penchant.run(of("reading", [0.0, 1.0, 2.0, 3.0, 4.0]), tmp_path, "processes", 1)
    assert set(dataset.status.values) == {"solved"}
    assert set(dataset.text.values) == set(dataset.child.values) == {""}
    np.testing.assert_array_equal(dataset.value, dataset.a)


FORKS = """
import json, sys
import penchant
from penchant.lab.studies.study import Study
if __name__ == "__main__":
    study = Study(name="forks", function="study_cells:forking", grid={"a": [0.0, 1.0, 2.0]},
                  arguments={"folder": sys.argv[1]})
    dataset = penchant.run(study, sys.argv[1], sys.argv[2], 1)
    rows = {name: dataset[name].values.tolist() for name in ("value", "code", "status")}
    print(json.dumps(rows), flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.parametrize("engine", ["here", "processes"])
def test_a_forked_child_that_comes_back_stores_no_value(tmp_path, engine):
    run = child(FORKS, tmp_path, engine, stderr=subprocess.DEVNULL)
    lines = run.communicate(timeout=100)[0].splitlines()
    assert run.returncode == 0
    (rows,) = map(json.loads, lines)  # one process came to the end, not several
    assert rows == {"value": [0, 1, 2], "code": [0, 1, 7], "status": ["solved"] * 3}
    marks = [(tmp_path / name).read_text() for name in "012"]
    assert marks == ["parent\n"] * 3


STATES = ["solved", "empty", "not a number", "not a number", "path diverged", "path diverged"]


def test_a_doubtful_result_is_a_state_of_its_own(tmp_path):
    dataset = penchant.run(of("doubtful", [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]), tmp_path)
    assert list(dataset.status.values) == STATES
    sentences = list(map(str, dataset.sentence.values))
    assert sentences[:4] == ["", "the cell returned no value", "value: NaN", "curve: NaN"]
    assert "beyond float64 after" in sentences[4]
    assert sentences[5] == f"1 of 2 paths did not end well; the first: {sentences[4]}"
    assert (dataset.failed, dataset.doubtful) == (0, 5)
    np.testing.assert_array_equal(dataset.value[[0, 3]], [-math.inf, 1.0])  # values are kept


def test_other_processes_report_doubts_too(tmp_path):
    dataset = penchant.run(of("doubtful", [0.0, 1.0, 2.0, 3.0]), tmp_path, "processes", 1)
    assert list(dataset.status.values) == STATES[:4]
    assert (dataset.failed, dataset.doubtful) == (0, 3)


def test_doubtful_cells_are_counted_and_shown(tmp_path):
    (tmp_path / "odd.toml").write_text(
        'function = "study_cells:doubtful"\n[grid]\na = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]\n'
    )
    words = ("run", tmp_path / "odd.toml", "--trust", "--engine", "here", "--out", tmp_path)
    code, text = penchant_command(*words)
    assert code == 0
    assert "6 cells, 6 computed now, 0 failed, 5 doubtful" in text
    assert "empty: a = 1.0: the cell returned no value" in text
    assert "not a number: a = 2.0: value: NaN" in text
    page = write_study_report(penchant.load(tmp_path / "odd.nc"), tmp_path).page.read_text()
    assert "6 cells over a (6), 0 failed, 5 doubtful." in page
    assert "Doubtful cells: 5" in page
    assert page.count("path diverged") >= 3  # a tile, and two rows


def test_a_solved_study_has_no_doubt(tmp_path):
    dataset = penchant.run(of("plain", [1.0]), tmp_path)
    assert (dataset.failed, dataset.doubtful) == (0, 0)
    assert "oubtful" not in write_study_report(dataset, tmp_path).page.read_text()


def test_a_search_needs_a_number(tmp_path):
    rule = {"axis": "a", "measure": "value", "below": 0.5, "between": [1.0, 2.0]}
    study = Study(name="s", function="study_cells:doubtful", threshold=rule)
    dataset = penchant.run(study, tmp_path)
    assert (str(dataset.status.values), dataset.failed, dataset.doubtful) == ("stalled", 1, 0)
    assert str(dataset.sentence.values) == "at a = 1: the cell returned no value"
