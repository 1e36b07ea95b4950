"""Every statement and figure of every paper: its status, under other seeds too, and its picture.

The status that is expected is the one on record. Whether a wrong theory would be caught is tested
paper by paper, in the folders beside this file.
"""

import re
import secrets

import pytest

import penchant
from figure_checks import (
    assert_axes_named,
    assert_legends_aside,
    assert_readable,
    assert_tells_its_claim,
)
from penchant.lab import Setting, all_claims
from penchant.lab.record import recorded
from slow_experiments import SLOW

SHIFTS = (1000, 2000)  # for every other claim; the record counts survivals under ten more
SHORT = 2.0  # seconds on record at the quick size, up to which shifted seeds are a default test
RECORDS = recorded(all_claims().ids)
STATUSES = {id: record.quick_status for id, record in RECORDS.items()}
LONG = {id for id, record in RECORDS.items() if record.verdicts["quick"]["seconds"] > SHORT}


def cases(slow):
    for id in STATUSES:
        yield pytest.param(id, id=id, marks=[pytest.mark.slow] if id in slow else [])


@pytest.mark.parametrize("id", list(cases(SLOW)))
def test_status_and_picture(id, data_of, picture_of):
    experiment, data = all_claims()[id], data_of(id)
    verdict = experiment.verdict(experiment.evidence(data), "tiny")
    assert verdict.status == STATUSES[id], str(verdict)
    assert verdict.controls
    assert all(control.misses for control in verdict.evidence.controls.values())
    assert not verdict.evidence.arithmetic
    assert not any("Warning" in line for line in verdict.evidence.findings)
    picture = picture_of(id)
    assert_axes_named(picture)
    assert_readable(picture)
    if experiment.source in {"M", "L"} and experiment.draw is not None:
        assert_tells_its_claim(picture, experiment)
        assert_legends_aside(picture)


@pytest.mark.parametrize("id", list(cases(LONG)))
def test_other_seeds_give_the_same_status(id):
    shift = SHIFTS[list(STATUSES).index(id) % 2]
    verdict = all_claims()[id].run(Setting("tiny", shift=shift))
    assert verdict.status == STATUSES[id], str(verdict)


@pytest.mark.slow
@pytest.mark.parametrize("id", STATUSES)
def test_a_shift_that_nobody_has_seen_gives_the_same_status(id):
    shift = secrets.randbelow(10**6)
    print(f"penchant verify {id} --shift {shift}")
    verdict = penchant.verify(id, shift=shift)
    assert verdict.status == STATUSES[id], f"{verdict.command}\n{verdict}"


DATA = {"W-F6c": "mnist", "W-F6d": "cifar10", "W-F8": "cifar10"}  # what the printed sizes are about


@pytest.mark.slow
@pytest.mark.parametrize("id", STATUSES)
def test_status_at_the_printed_size(id):
    if id in DATA:
        try:
            penchant.problems.load_images(DATA[id], train=10, test=10)
        except FileNotFoundError as absent:
            pytest.skip(str(absent))
    verdict = penchant.verify(id, size="printed")
    assert verdict.status == recorded([id])[id].status, str(verdict)


def test_every_experiment_is_on_record_and_listed_in_the_order_of_its_paper():
    assert set(all_claims().ids) == set(STATUSES)
    letters = list(dict.fromkeys(id.split("-")[0] for id in all_claims().ids))
    assert letters == ["W", "M", "L", "N", "beyond", "watch"]


def test_statements_are_sentences():
    for experiment in all_claims().experiments():
        assert re.match(r"\(?(?:[A-Z]|\$)", experiment.statement), experiment.id
        assert experiment.statement.endswith("."), experiment.id
