"""Paths on disk: they come back as they were, go on to the bit, and other files are refused."""

import collections
import json
import os

import numpy as np
import pytest

from penchant import Adam, DiagonalNet, GradientDescent, Outcome, Path, Steps, load, store, train
from penchant.lab import Kind
from penchant.models.tokens.two_layer import Weights
from penchant.problems import sparse_regression
from penchant.training import path as saving

PROBLEM = sparse_regression(12, 20, sparsity=2, seed=0)
NET = DiagonalNet(2, alpha=0.1)
GIVEN = {"batch": 5, "seed": 3}
Mine = collections.namedtuple("Mine", ["a", "b"])
RNG = np.random.default_rng(0)
A, B, C = RNG.normal(size=(2, 3)), np.float32(RNG.normal(size=4)), np.array(1.5)


@pytest.fixture(scope="module")
def runs():
    """A run of 40 steps and its first 20."""
    return [train(NET, PROBLEM, Adam(0.01), stop=Steps(n), **GIVEN) for n in (40, 20)]


def assert_same(one, other):
    assert one.outcome == other.outcome
    assert one.dataset.identical(other.dataset)
    pairs = []
    for path in (one, other):
        leaves = []
        pairs.append((saving._structure([path.parameters, path.memory], leaves), leaves))
    assert pairs[0][0] == pairs[1][0]
    for leaf, same in zip(pairs[0][1], pairs[1][1], strict=True):
        assert (leaf.dtype, leaf.shape) == (same.dtype, same.shape)
        np.testing.assert_array_equal(leaf, same)


def test_a_run_goes_on_from_a_file_to_the_bit(runs, tmp_path):
    whole, half = runs
    file = half.save(tmp_path / "half.nc")
    loaded = load(file)
    assert_same(loaded, half)
    again = train(NET, PROBLEM, Adam(0.01), stop=Steps(40), resume=loaded, **GIVEN)
    assert_same(again, whole)
    with pytest.raises(AssertionError):
        assert_same(half, whole)  # the control
    with pytest.raises(
        ValueError, match="the same method, which was Adam and now is GradientDescent"
    ):
        train(NET, PROBLEM, GradientDescent(0.01), stop=Steps(40), resume=loaded, **GIVEN)


TREES = {
    "flat": (A[0], (A[0], A[1])),
    "dict": ({"layer 1": A, "layer 2": B, "layer 10": A}, ({"m": A}["m"], B)),
    "named tuple": (Weights(A, B, A), (C, A)),
    "nested": ({"x": [A, (B, None)], "y": {}}, ()),
    "diverged": (A, None),
    "none": (None, None),
    "whole numbers": ([np.arange(3), np.array([True, False])], (np.uint32([1, 2]),)),
}


@pytest.mark.parametrize("name", TREES)
def test_parameters_of_every_structure_come_back(name, runs, tmp_path):
    parameters, memory = TREES[name]
    outcome = Outcome(Kind.BUDGET_SPENT, "ü: more")
    path = Path(outcome, runs[0].dataset, parameters, memory)
    found = load(path.save(tmp_path / "path.nc"))
    assert_same(found, path)
    assert type(found.parameters) is type(parameters)
    if name == "dict":
        assert list(found.parameters) == list(parameters)
    assert (found.memory is None) == (memory is None)


def test_a_named_tuple_from_elsewhere_is_made_alike_and_nothing_is_imported(runs, tmp_path):
    path = Path(runs[0].outcome, runs[0].dataset, Mine(A, B))
    found = load(path.save(tmp_path / "path.nc")).parameters
    assert type(found) is not Mine
    assert (type(found).__name__, found._fields) == ("Mine", ("a", "b"))
    np.testing.assert_array_equal(found.a, A)
    for module in ("this", "penchant.cli.__main__", "penchant.models.nothing"):
        assert saving._named(f"{module}:X", ("a",))(1) == (1,)
    assert "this" not in __import__("sys").modules


def test_what_is_no_array_is_refused(runs, tmp_path):
    for wrong in ({"a": "text"}, [object()], {1: A}):
        path = Path(runs[0].outcome, runs[0].dataset, wrong)
        with pytest.raises(ValueError, match=r"Path\.save: parameters must be arrays of numbers"):
            path.save(tmp_path / "path.nc")
    assert os.listdir(tmp_path) == []


def test_an_interrupted_save_leaves_the_older_file(runs, tmp_path, monkeypatch):
    whole, half = runs
    file = half.save(tmp_path / "run.nc")

    def broken(*_):
        raise KeyboardInterrupt

    for call in ("replace", "fsync"):
        with monkeypatch.context() as patch:
            patch.setattr(os, call, broken)
            with pytest.raises(KeyboardInterrupt):
                whole.save(file)
        assert_same(load(file), half)
        assert os.listdir(tmp_path) == ["run.nc"]
    whole.save(file)
    assert_same(load(file), whole)


def test_files_that_are_no_paths_are_refused(runs, tmp_path):
    half = runs[1]
    data = half.save(tmp_path / "run.nc").read_bytes()
    middle = len(data) // 3
    flipped = bytes(byte ^ 255 for byte in data[middle : middle + 64])
    wrong = {
        "cut": (data[: len(data) // 2], "is cut short or damaged"),
        "bent": (data[:middle] + flipped + data[middle + 64 :], "checksum is wrong"),
        "foreign": (b"PK and so on", "is cut short or is no netCDF file"),
    }
    for name, (content, sentence) in wrong.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=f"load: .*{sentence}"):
            load(tmp_path / name)
    store.write(half.dataset, tmp_path / "plain.nc")
    assert load(tmp_path / "plain.nc").identical(half.dataset)  # a dataset that is no path
    for header in ("{}", "[]", json.dumps({"parameters": {"array": 7}, "memory": None})):
        marked = half.dataset.assign_attrs({saving.MARK: header})
        store.write(marked, tmp_path / "odd.nc")
        with pytest.raises(ValueError, match=r"load: .* was not written by path\.save"):
            load(tmp_path / "odd.nc")
    with pytest.raises(FileNotFoundError, match="load: there is no file"):
        load(tmp_path / "none.nc")
    with pytest.raises(ValueError, match="lies in no existing folder"):
        half.save(tmp_path / "nowhere" / "run.nc")
