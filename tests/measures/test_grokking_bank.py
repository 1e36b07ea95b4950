"""measures.grokking on the bank of labelled curves: its score, and what every rule is for."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import grokking_bank
from grokking_bank import BANK
from penchant.measures import grokking, late_change
from penchant.measures import transition as module
from penchant.measures.curves import ScoreCurve

CURVES = grokking_bank.read(Path(__file__).with_name("grokking_bank.npz"))
LABELS = {name: label for name, (_, _, label) in BANK.items()}
# what the detector says of the curves that it gets wrong
MISSED = {
    "addition mod 23, quadratic": "grok",
    "digits, start x 8": "grok",
    "features as 1/i^1.5": "grok",
    "features as 1/i^1.2": "none",
    "features as 1/i^1.2, 80 samples": "none",
    "majority, norm 8": "slow",
    "noisy sparse truth, smaller start": "none",
}


def kinds(names=BANK):
    return {name: grokking(**CURVES[name]).kind for name in names}


def labelled(kind):
    return [name for name, label in LABELS.items() if label == kind and name not in MISSED]


def below_the_level():
    """The groks to a ceiling of their own."""
    return [name for name in labelled("grok") if "ceiling" in grokking(**CURVES[name]).reason]


def test_the_bank_is_as_large_as_it_says_and_most_of_it_is_real():
    assert CURVES.keys() == BANK.keys()
    assert len(BANK) >= 40
    real = [name for name, (make, _, _) in BANK.items() if make is not grokking_bank.invented]
    assert len(real) > len(BANK) / 2
    assert set(LABELS.values()) == set(late_change.LATE_CHANGES)
    assert min(Counter(LABELS.values()).values()) >= 4


def test_every_curve_is_called_what_it_looks_like_but_for_those_that_are_listed():
    assert kinds() == LABELS | MISSED


def test_a_ceiling_is_where_the_curve_ends():
    names = below_the_level()
    assert len(names) >= 8
    for name in names:
        given = CURVES[name]
        found = grokking(**given)
        assert found.ceiling == pytest.approx(np.median(given["test"][-5:]), abs=0.05)
        assert found.t1 < found.t2 < given["t"][-1]
        # control: half way there is no ceiling yet
        part = given["t"] < found.jump
        before = {k: v[part] if np.ndim(v) else v for k, v in given.items()}
        assert grokking(**before).ceiling == float(not given["error"])


def without(monkeypatch, rule):
    """The detector without one of its rules."""
    nothing = {
        "misgrok": (late_change, "_fall", lambda *_: None),
        "double descent": (late_change, "_second_rise", lambda *_: None),
        "slow": (late_change, "SLOW", math.inf),
        "in progress": (ScoreCurve, "gained", lambda *_: 0.0),
        "ceiling": (ScoreCurve, "gained", lambda *_: math.inf),
        "mirage": (module, "doubted", lambda change, *_: change),
        "grok": (late_change, "LATE", 1e9),
        "none": (late_change, "LATE", 0.01),
    }
    monkeypatch.setattr(*nothing[rule])


@pytest.mark.parametrize("rule", late_change.LATE_CHANGES)
def test_without_its_rule_a_kind_is_lost(monkeypatch, rule):
    """Controls: of the curves of a kind more than half are called otherwise, `none` a few."""
    names = labelled(rule)
    assert set(kinds(names).values()) == {rule}
    without(monkeypatch, rule)
    lost = sum(kind != rule for kind in kinds(names).values())
    assert lost >= (2 if rule == "none" else math.ceil(0.75 * len(names)))


def test_without_ceilings_of_their_own_delayed_rises_are_not_seen_to_end(monkeypatch):
    names = below_the_level()
    without(monkeypatch, "ceiling")
    assert set(kinds(names).values()) == {"in progress"}
