"""`progress=True`: a bar in a terminal, in a notebook and elsewhere; nothing without a reader."""

from __future__ import annotations

import sys
from typing import ClassVar

import pytest

import little_papers
import penchant
from penchant import progress
from penchant.progress import ProgressBar, reporting

problem = penchant.problems.sparse_regression(10, 20, sparsity=2)


class Recorder:
    """A display that keeps what it is told."""

    made: ClassVar[list[Recorder]] = []

    def __init__(self):
        self.updates, self.closed = [], False
        Recorder.made.append(self)

    def update(self, share, text, seconds):
        self.updates.append((share, text))

    def close(self):
        self.closed = True


@pytest.fixture
def displays(monkeypatch):
    """The displays that calls open, with a clock that does not wait."""
    monkeypatch.setattr(Recorder, "made", [])
    monkeypatch.setattr(progress, "_display", Recorder)
    monkeypatch.setattr(progress, "EVERY", 0.0)
    return Recorder.made


def train(**given):
    method, stop = penchant.GradientDescent(1e-3), penchant.Steps(500)
    return penchant.train(penchant.DiagonalNet(2, alpha=0.1), problem, method, stop=stop, **given)


def square(a):
    return {"value": a**2}


def run(folder, **given):
    study = penchant.Study(name="little", function=square, grid={"a": [1.0, 2.0, 3.0]})
    return penchant.run(study, folder, **given)


CALLS = {
    "train": lambda folder, **given: train(**given),
    "verify": lambda folder, **given: penchant.verify(
        ["A-SUM", "A-MEAN"], registry=little_papers.library, **given
    ),
    "run": run,
    "interpolate_path": lambda folder, **given: penchant.solvers.interpolate_path(
        problem, log_alphas=[float(-k) for k in range(40)], **given
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_bar_rises_and_goes_away(name, displays, tmp_path):
    CALLS[name](tmp_path, progress=True)
    (display,) = displays
    shares = [share for share, _ in display.updates]
    assert shares == sorted(shares)
    assert shares
    assert 0 <= shares[0] <= shares[-1] <= 1
    assert display.updates[0][1].startswith(f"{name}: ")
    assert display.closed


@pytest.mark.parametrize("name", CALLS)
def test_no_bar_where_nobody_reads_it(name, displays, tmp_path):
    CALLS[name](tmp_path)
    CALLS[name](tmp_path, progress=False)
    assert not displays


def test_in_an_interactive_session_a_bar_appears_after_two_seconds(displays, monkeypatch):
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    train()
    assert not displays  # it was over too soon
    monkeypatch.setattr(progress, "DELAY", 0.0)
    train()
    assert len(displays) == 1
    train(progress=False)
    assert len(displays) == 1
    penchant.verify(["A-SUM"], registry=little_papers.library)
    assert len(displays) == 2


def test_the_delay_is_one_of_seconds(displays):
    now = [0.0]
    bar = ProgressBar("train", 2.0, clock=lambda: now[0])
    for now[0] in (0.5, 1.9):
        bar(0.1, "early")
    assert not displays
    now[0] = 2.1
    bar(0.2, "late")
    assert displays[0].updates == [(0.2, "train: late")]


def test_a_call_within_another_shows_no_bar(displays, monkeypatch):
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    monkeypatch.setattr(progress, "DELAY", 0.0)
    with reporting(None, "outer") as outer:
        outer(0.5, "half")
        train()
    assert [display.updates[0][1] for display in displays] == ["outer: half"]


def test_the_numbers_do_not_depend_on_the_bar(displays):
    import numpy as np

    plain, shown = train(), train(progress=True)
    np.testing.assert_array_equal(plain.parameters, shown.parameters)
    assert plain.dataset.identical(shown.dataset)


def test_without_a_terminal_there_are_lines_from_time_to_time(capsys, monkeypatch):
    monkeypatch.setattr(progress, "EVERY", 0.0)
    train(progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1  # the next one is due five seconds later
    assert lines[0].startswith("train: step ")


def test_a_notebook_gets_html_that_goes_away(monkeypatch):
    pytest.importorskip("IPython")
    import IPython.display

    shown = []

    class Handle:
        def update(self, html):
            shown.append(html.data)

    def display(html, display_id):
        shown.append(html.data)
        return Handle()

    monkeypatch.setattr(IPython.display, "display", display)
    cell = progress._NotebookBar()
    cell.update(0.25, "train: <step 3>", 10.0)
    cell.close()
    assert shown[0] == shown[-1] == ""
    assert "<progress value='0.2500'" in shown[1]
    assert "train: &lt;step 3&gt;, 25%, 30 s left" in shown[1]


@pytest.mark.parametrize("name", ["train", "verify", "interpolate_path"])
def test_what_is_no_progress_is_refused(name, tmp_path):
    with pytest.raises(ValueError, match=f"{name}: progress must be True, False or a function"):
        CALLS[name](tmp_path, progress=3)
