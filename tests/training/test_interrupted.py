"""Ctrl-C in `train`: the path so far, which `resume` continues with the same numbers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import penchant
from child_processes import PATH
from penchant.records import Kind
from penchant.stop import Epochs

problem = penchant.problems.sparse_regression(20, 40, sparsity=3)
NET = penchant.DiagonalNet(2, alpha=0.1)


@pytest.fixture(autouse=True)
def long_ago(monkeypatch):
    """No Ctrl-C was answered just before; pytest's own handler is the usual one."""
    from penchant import interrupt

    monkeypatch.setattr(interrupt._Mark, "answered", -1e9)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def press():
    os.kill(os.getpid(), signal.SIGINT)


def pressing(share, times=1):
    """A callback that presses Ctrl-C once this share is done."""
    left = [times]

    def report(done, text):
        if done >= share:
            while left[0]:
                left[0] -= 1
                press()

    return report


METHODS = {
    "descent": (penchant.GradientDescent(1e-3), {"stop": penchant.Steps(4000)}),
    "momentum": (penchant.GradientDescent(1e-3, momentum=0.9), {"stop": penchant.Steps(4000)}),
    "Adam": (penchant.Adam(1e-3), {"stop": penchant.Steps(4000)}),
    "batches": (penchant.GradientDescent(1e-3), {"stop": Epochs(400), "batch": 5}),
    "by time": (penchant.GradientDescent(1e-3), {"stop": penchant.Time(4.0)}),
}


@pytest.mark.parametrize("name", METHODS)
def test_an_interrupted_run_is_continued_with_the_same_numbers(name):
    method, given = METHODS[name]
    whole = penchant.train(NET, problem, method, **given)
    part = penchant.train(NET, problem, method, **given, progress=pressing(0.3))
    assert part.outcome.kind is Kind.INTERRUPTED
    assert part.outcome.sentence.startswith(f"stopped by Ctrl-C after {part.steps} steps")
    assert 0 < part.steps < 0.6 * whole.steps
    assert np.isfinite(part.dataset.log_loss.values).all()
    rest = penchant.train(NET, problem, method, **given, resume=part)
    assert rest.outcome == whole.outcome
    np.testing.assert_array_equal(rest.parameters, whole.parameters)
    for name in whole.dataset.data_vars:
        # a record measured alone is rounded otherwise than among others, and the loss is down to
        # e^-31, where residuals of 1e-7 have lost nine digits
        own, other = rest.dataset[name].values, whole.dataset[name].values
        np.testing.assert_allclose(own, other, rtol=1e-8)


SCRIPT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
import penchant
problem = penchant.problems.sparse_regression(20, 40, sparsity=3)
net, method = penchant.DiagonalNet(2, alpha=0.1), penchant.GradientDescent(1e-6)
told = lambda share, text: print("working", flush=True)
path = penchant.train(net, problem, method, stop=penchant.Steps(10**9), progress=told)
print(path.outcome.kind.value, path.steps > 0)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="sends a POSIX signal")
def test_a_real_process_ends_its_training_and_goes_on():
    env = {**os.environ, "PYTHONPATH": PATH}
    command = [sys.executable, "-c", SCRIPT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as process:
        try:
            assert process.stdout.readline() == "working\n"
            process.send_signal(signal.SIGINT)
            lines = process.communicate(timeout=120)[0].splitlines()
        finally:
            process.kill()
    assert lines[-1] == "interrupted True"


def test_an_interrupted_path_is_saved_and_read_again(tmp_path):
    method, given = METHODS["descent"]
    part = penchant.train(NET, problem, method, **given, progress=pressing(0.3))
    again = penchant.load(part.save(tmp_path / "part.nc"))
    assert again.outcome == part.outcome
    assert not again.outcome.ok
    assert penchant.train(NET, problem, method, **given, resume=again).steps == 4000


@pytest.mark.parametrize("flow", [penchant.DualFlow(), penchant.ParameterFlow()])
def test_an_exact_flow_returns_what_it_has(flow):
    whole = penchant.train(NET, problem, flow)
    part = penchant.train(NET, problem, flow, progress=pressing(0.0))
    assert part.outcome.kind is Kind.INTERRUPTED
    assert "stopped by Ctrl-C at t=" in part.outcome.sentence
    assert part.t < whole.t
    known = min(len(part.dataset.time), len(whole.dataset.time)) - 1
    np.testing.assert_allclose(
        part.dataset.t.values[:known], whole.dataset.t.values[:known], rtol=1e-12
    )


def test_throw_raises_and_has_the_path():
    method, given = METHODS["descent"]
    with pytest.raises(penchant.NumericalError, match="train: interrupted: stopped by") as error:
        penchant.train(NET, problem, method, **given, progress=pressing(0.3), throw=True)
    assert error.value.result.steps > 0


def test_pressed_twice_it_ends_everything():
    method, given = METHODS["descent"]
    with pytest.raises(KeyboardInterrupt):
        penchant.train(NET, problem, method, **given, progress=pressing(0.3, times=2))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_loop_over_runs_is_left_by_a_second_one_soon_after():
    method, given = METHODS["descent"]
    first = penchant.train(NET, problem, method, **given, progress=pressing(0.3))
    assert first.outcome.kind is Kind.INTERRUPTED
    with pytest.raises(KeyboardInterrupt):
        penchant.train(NET, problem, method, **given, progress=pressing(0.3))


def test_a_cell_of_a_study_is_interrupted_as_before():
    from penchant.training.path import noted_outcomes

    method, given = METHODS["descent"]
    with noted_outcomes(), pytest.raises(KeyboardInterrupt):
        penchant.train(NET, problem, method, **given, progress=pressing(0.3))


def test_other_threads_and_other_handlers_are_left_alone():
    seen = []
    signal.signal(signal.SIGINT, lambda *_: seen.append("own"))
    method, given = METHODS["descent"]
    path = penchant.train(NET, problem, method, **given, progress=pressing(0.3))
    assert (path.steps, seen) == (4000, ["own"])
    paths = []
    thread = threading.Thread(
        target=lambda: paths.append(penchant.train(NET, problem, method, **given))
    )
    thread.start()
    thread.join()
    assert paths[0].steps == 4000
