"""Every row of every source: its status, quick and at full size, and that its controls miss.

Whether a wrong theory would be caught is tested source by source, in the files beside this one.
"""

import pytest

import tacit
from tacit.claims.registry import ledger

EXPECTED = {
    "W-K": "holds, proof corrected",
    "W-T1": "holds, proof corrected",
    "W-GA": "holds",
    "W-T2": "holds, proof corrected",
    "W-L5": "holds",
    "W-L6": "holds, proof corrected",
    "W-L7": "holds",
    "W-A": "holds as corrected",
    "W-R": "holds as corrected",
    "W-T3": "holds, proof corrected",
    "W-L8": "holds",
    "W-C": "holds, proof corrected",
    "M-T1": "holds",
    "M-T2": "holds",
    "M-T4": "holds",
    "M-C5": "holds",
    "M-T6": "holds",
    "M-T7": "holds",
    "M-depth": "holds as corrected",
    "M-num": "holds as corrected",
    "M-open": "holds",
    "W-T4": "holds as corrected",
    "W-T9": "holds",
    "W-C10": "holds, proof corrected",
    "W-L11": "holds, proof corrected",
    "W-L12": "holds, proof corrected",
    "W-L13": "holds",
    "W-F6ab": "holds",
    "W-F6c": "holds as corrected",
    "W-F6d": "holds as corrected",
    "W-F8": "holds",
    "W-F7": "holds as corrected",
    "L-T1": "holds",
    "L-T2": "holds",
    "L-sharp": "holds",
    "L-sweep": "holds",
    "L-table": "holds",
    "L-clock": "holds",
    "L-forecast": "holds",
    "N-F1": "holds",
    "N-LU": "holds as corrected",
    "N-F2": "holds",
    "N-F3": "holds",
    "N-GWU": "holds as corrected",
    "N-T21": "holds as corrected",
    "N-PL": "holds as corrected",
    "N-T31": "holds",
    "N-T33": "holds as corrected",
    "N-T34": "holds",
    "N-T35": "holds as corrected",
    "N-F-alg": "holds",
    "N-F-ts": "holds",
    "N-F-data": "holds",
    "N-F-depth": "holds",
}
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
