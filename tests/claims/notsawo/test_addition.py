"""N-F1: what its checks see in runs that are right, and in runs that are wrong."""

import numpy as np
import pytest
import xarray

from tacit.claims.notsawo import addition

TWINS = 0.4


def fake(t1=150, t2=4000, plateau=TWINS, novel=0.01, last=1.0):
    """A run whose training is solved at t1 and whose validation rises from a plateau at t2."""
    step = np.unique(np.geomspace(1, 21_000, 600).astype(int))
    train = np.where(step >= t1, 1.0, 0.3)
    test = np.where(step >= t2, last, plateau)
    novel = np.where(step >= t2, last, novel)
    curves = {"train_accuracy": train, "test_accuracy": test, "novel_accuracy": novel}
    data = {name: ("time", curve) for name, curve in curves.items()}
    return xarray.Dataset(data, {"step": ("time", step)}, {"twins": TWINS})


def judged(monkeypatch, right, bare=None, ordered=None, weak=None, size="quick"):
    """Evidence from fakes: the run, those without penalty and with a tenth, the other net."""
    bare = fake(last=TWINS) if bare is None else bare
    weak = fake(t2=20_000) if weak is None else weak
    ordered = fake(plateau=0.02, t2=10**6) if ordered is None else ordered

    beta = addition.SETTINGS[size].beta

    def run_of(setting, seed, variant="source", scale=1.0):
        penalties = {0.0: bare, beta / 10: weak, beta: right}
        return ordered if variant == "code" else penalties[setting.beta]

    monkeypatch.setattr(addition, "run_of", run_of)
    return addition.figure_1(size)


def failed(evidence):
    return [check.name for check in evidence.checks if not check.passes]


def test_a_run_like_the_source_passes_and_all_controls_miss(monkeypatch):
    evidence = judged(monkeypatch, fake())
    assert not failed(evidence)
    assert all(control.misses for control in evidence.controls.values())


@pytest.mark.parametrize(
    ("wrong", "caught"),
    [
        ({"t1": 900, "t2": 4500}, "t2/t1"),
        ({"t2": 700}, "t2/t1"),
        ({"t2": 5900}, "t2/t1"),  # at the end of the record, and too late
        ({"last": 0.8}, "t2/t1"),
        ({"plateau": 0.5}, "gap of the plateau"),
        ({"novel": 0.2}, "without twins"),
    ],
)
def test_a_wrong_run_is_caught(monkeypatch, wrong, caught):
    assert any(caught in name for name in failed(judged(monkeypatch, fake(**wrong))))


def test_the_printed_times_are_checked_at_the_size_of_the_source(monkeypatch):
    evidence = judged(monkeypatch, fake(560, 11_000), weak=fake(560, 15_500), size="full")
    assert not failed(evidence)
    assert all(control.misses for control in evidence.controls.values())
    assert evidence.controls["a tenth of the penalty"].tolerance < 1
    assert failed(judged(monkeypatch, fake(560, 14_500), size="full")) == [
        "largest distance of t2 from the printed 9150, in doublings"
    ]
    assert failed(judged(monkeypatch, fake(330, 8000), size="full")) == [
        "largest distance of t1 from the printed 540, in doublings"
    ]


def test_no_run_ends_where_the_largest_t2_that_passes_lies():
    quick, full = addition.SETTINGS["quick"], addition.SETTINGS["full"]
    assert quick.steps > 2 * addition.LATE * 180  # t1 is 140 to 180 on every seed tried
    assert full.steps > 1.5 * 1.5 * addition.PRINTED["t2"]


def test_a_run_too_short_for_its_t1_decides_nothing(monkeypatch):
    evidence = judged(monkeypatch, fake(t1=300, t2=5100))
    assert not evidence.premises["the runs are longer than the largest t2 allowed"].holds


def test_controls_that_behave_like_the_run_do_not_miss(monkeypatch):
    evidence = judged(monkeypatch, fake(), bare=fake(), ordered=fake(t2=10**6), weak=fake())
    passing = {name for name, control in evidence.controls.items() if not control.misses}
    assert passing == {
        "no penalty",
        "a tenth of the penalty",
        "no penalty as a grok",
        "a net that is not symmetric",
    }


def test_landmarks_are_the_first_records_that_reach_the_levels():
    found = addition.landmarks(fake())
    assert 150 <= found["t1"] < 160
    assert 4000 <= found["t2"] < 4150
    assert found["plateau"] == TWINS


def test_a_run_that_never_generalizes_has_no_plateau():
    found = addition.landmarks(fake(last=0.5))
    assert np.isnan(found["t2"])
    assert np.isnan(found["plateau"])
