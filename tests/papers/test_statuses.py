"""Every statement and figure of every paper: its status, small and large, and its picture.

Whether a wrong theory would be caught is tested paper by paper, in the folders beside this file.
"""

import pytest

import tacit
from expected_statuses import EXPECTED, SLOW
from figure_checks import assert_axes_named, assert_readable
from tacit.papers.registry import library


def cases():
    for id, status in EXPECTED.items():
        marks = [pytest.mark.slow] if id in SLOW else []
        yield pytest.param(id, status, id=id, marks=marks)


@pytest.mark.parametrize(("id", "status"), list(cases()))
def test_status_and_picture(id, status, data_of):
    experiment, data = library()[id], data_of(id)
    verdict = experiment.verdict(experiment.evidence(data), "tiny")
    assert verdict.status == status, str(verdict)
    assert verdict.controls
    assert all(control.misses for control in verdict.evidence.controls.values())
    assert not verdict.evidence.arithmetic
    assert not any("Warning" in line for line in verdict.evidence.findings)
    picture = experiment.picture(data)
    assert_axes_named(picture)
    assert_readable(picture)


DATA = {"W-F6c": "mnist", "W-F6d": "cifar10", "W-F8": "cifar10"}  # what the printed sizes are about


@pytest.mark.slow
@pytest.mark.parametrize(("id", "status"), EXPECTED.items(), ids=EXPECTED.keys())
def test_status_at_the_printed_size(id, status):
    if id in DATA:
        try:
            tacit.load_images(DATA[id], train=10, test=10)
        except FileNotFoundError as absent:
            pytest.skip(str(absent))
    verdict = tacit.verify(id, size="printed")
    assert verdict.status == status, str(verdict)


def test_every_experiment_is_expected_and_listed_in_the_order_of_its_paper():
    assert set(library().ids) == set(EXPECTED)
    letters = list(dict.fromkeys(id.split("-")[0] for id in library().ids))
    assert letters == ["W", "M", "L", "N", "beyond", "watch"]


def test_statements_are_sentences():
    for experiment in library().experiments():
        assert experiment.statement.lstrip("(")[0].isupper(), experiment.id
        assert experiment.statement.endswith("."), experiment.id
