"""Every row of every source: its status, quick and at full size, and that its controls miss.

Whether a wrong theory would be caught is tested source by source, in the files beside this one.
"""

import pytest

import tacit
from expected_statuses import EXPECTED
from tacit.claims.registry import ledger

every_claim = pytest.mark.parametrize(("id", "status"), EXPECTED.items(), ids=EXPECTED.keys())


def marks(id):
    """Claims of 15 s or more are for the slow tests; those beside this file test their checks."""
    (claim,) = ledger.select(id)
    return [pytest.mark.slow] if claim.seconds >= 15 else []


@pytest.mark.parametrize(
    ("id", "status"),
    [pytest.param(id, status, id=id, marks=marks(id)) for id, status in EXPECTED.items()],
)
def test_status(id, status):
    verdict = tacit.verify(id)
    assert verdict.status == status, str(verdict)
    assert verdict.controls
    assert all(control.misses for control in verdict.evidence.controls.values())
    assert not verdict.evidence.arithmetic
    assert not any("Warning" in line for line in verdict.evidence.findings)


DATA = {"W-F6c": "mnist", "W-F6d": "cifar10", "W-F8": "cifar10"}  # what full sizes are about


@pytest.mark.slow
@every_claim
def test_status_at_full_size(id, status):
    if id in DATA:
        try:
            tacit.load_images(DATA[id], train=10, test=10)
        except FileNotFoundError as absent:
            pytest.skip(str(absent))
    verdict = tacit.verify(id, full=True)
    assert verdict.status == status, str(verdict)


def test_the_ledger_lists_every_row():
    assert {claim.id for claim in ledger.claims()} == set(EXPECTED)
