"""N-F1: what its checks see in runs that are right, and in runs that are wrong."""

import numpy as np
import pytest
import xarray

from tacit.claims.notsawo import addition

TWINS = 0.4


def fake(t1=150, t2=4000, plateau=TWINS, novel=0.01, last=1.0):
    """A run whose training is solved at t1 and whose validation rises from a plateau at t2."""
    step = np.unique(np.geomspace(1, 6000, 300).astype(int))
    train = np.where(step >= t1, 1.0, 0.3)
    test = np.where(step >= t2, last, plateau)
    novel = np.where(step >= t2, last, novel)
    curves = {"train_accuracy": train, "test_accuracy": test, "novel_accuracy": novel}
    data = {name: ("time", curve) for name, curve in curves.items()}
    return xarray.Dataset(data, {"step": ("time", step)}, {"twins": TWINS})


def judged(monkeypatch, right, bare=None, ordered=None):
    """Evidence from fakes: the run, the run without penalty, the net that is not symmetric."""
    bare = fake(last=TWINS) if bare is None else bare
    ordered = fake(plateau=0.02, t2=10**6) if ordered is None else ordered

    def train(setting, seed, variant="source", **changes):
        return ordered if variant == "code" else bare if changes.get("beta") == 0 else right

    monkeypatch.setattr(addition, "train", train)
    return addition.figure_1("quick")


def failed(evidence):
    return [check.name for check in evidence.checks if not check.passes]


def test_a_run_like_the_source_passes_and_all_controls_miss(monkeypatch):
    evidence = judged(monkeypatch, fake())
    assert not failed(evidence)
    assert all(control.misses for control in evidence.controls.values())


@pytest.mark.parametrize(
    ("wrong", "caught"),
    [
        ({"t1": 900, "t2": 4500}, "largest t1"),
        ({"t2": 700}, "runs whose t2"),
        ({"last": 0.8}, "runs whose t2"),
        ({"plateau": 0.5}, "gap of the plateau"),
        ({"novel": 0.2}, "without twins"),
    ],
)
def test_a_wrong_run_is_caught(monkeypatch, wrong, caught):
    assert any(caught in name for name in failed(judged(monkeypatch, fake(**wrong))))


def test_controls_that_behave_like_the_run_do_not_miss(monkeypatch):
    evidence = judged(monkeypatch, fake(), bare=fake(), ordered=fake(t2=10**6))
    passing = {name for name, control in evidence.controls.items() if not control.misses}
    assert passing == {"no penalty", "no penalty as a grok", "a net that is not symmetric"}


def test_landmarks_are_the_first_records_that_reach_the_levels():
    found = addition.landmarks(fake())
    assert 150 <= found["t1"] < 160
    assert 4000 <= found["t2"] < 4150
    assert found["plateau"] == TWINS


def test_a_run_that_never_generalizes_has_no_plateau():
    found = addition.landmarks(fake(last=0.5))
    assert np.isnan(found["t2"])
    assert np.isnan(found["plateau"])
