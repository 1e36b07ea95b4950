"""The record: what it keeps, what it drops, and that it speaks of the code as it is."""

import dataclasses
import json

import pytest

import little_papers
from penchant.lab import (
    Evidence,
    Recorded,
    Verdict,
    all_claims,
    papers,
    read_record,
    record,
    within,
)
from penchant.lab.record import kept, recorded, write_record

GOOD = Evidence("a run", {"c": within(0.5, tolerance=1)}, controls={"wrong": 2.0})
BAD = Evidence("a run", {"c": within(1.5, tolerance=1)}, controls={"wrong": 2.0})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "file_of", lambda id: tmp_path / "record" / f"{id}.json")
    return tmp_path / "record"


def verdict(evidence=GOOD, statement="S.", **own):
    return Verdict("T-1", statement, "p", evidence, **own)


def test_the_largest_size_counts(folder):
    assert read_record("T-1") is None
    write_record(verdict())
    assert (read_record("T-1").largest, read_record("T-1").status) == ("quick", "holds")
    write_record(verdict(BAD, size="printed", scope="half of the samples"))
    known = read_record("T-1")
    assert (known.largest, known.status, known.quick_status) == ("printed", "fails", "holds")
    assert known.verdict().scope == "half of the samples"
    assert known.verdict("quick").evidence.checks["c"].measured == 0.5
    told = known.verdicts["printed"]
    assert told["date"]
    assert told["with"]["numpy"]


def test_shifts_add_their_status_and_count_as_kept_or_not(folder):
    write_record(verdict())
    for shift, evidence in ((2000, GOOD), (1000, GOOD), (3000, BAD)):
        write_record(verdict(evidence, shift=shift))
    known = read_record("T-1")
    assert known.shifts == {1000: "holds", 2000: "holds", 3000: "fails"}
    assert known.survival == "2 of 3"
    assert Recorded("T-2", "S.").survival == "—"


def test_another_statement_drops_what_was_measured_before(folder):
    write_record(verdict())
    write_record(verdict(shift=1000))
    write_record(verdict(statement="Something else."))
    known = read_record("T-1")
    assert known.statement == "Something else."
    assert known.shifts == {}


def test_the_line_that_counts_the_statuses_that_stay(folder):
    write_record(verdict())
    write_record(dataclasses.replace(verdict(), id="T-2"))
    ids = ("T-1", "T-2", "T-3")
    today = [Verdict(id, "S.", "p", BAD if id == "T-2" else GOOD, shift=7) for id in ids]
    assert kept(today, recorded(ids)) == "1 of 2 keep their status; not: T-2"
    assert kept(today[:1], recorded(ids)) == "1 of 1 keep their status"


def test_a_record_with_an_edited_number_is_refused(folder):
    write_record(verdict())
    file = folder / "T-1.json"
    told = json.loads(file.read_text())
    told["verdicts"]["quick"]["evidence"]["checks"][0]["measured"] = 3.0
    file.write_text(json.dumps(told))
    with pytest.raises(ValueError, match="its own numbers give 'fails'"):
        read_record("T-1").verdict()
    file.write_text("{}")
    with pytest.raises(ValueError, match=r"T-1\.json is no record"):
        read_record("T-1")


def test_every_claim_is_on_record_in_its_own_words():
    records = recorded(all_claims().ids)
    for experiment in all_claims().experiments():
        known = records[experiment.id]
        assert known.statement == experiment.statement, f"penchant verify {experiment.id} --record"
        assert known.quick_status is not None, experiment.id
        for size in known.verdicts:
            assert known.verdict(size).id == experiment.id
    names = {file.stem for paper in papers() for file in paper.record.glob("*.json")}
    assert names == set(all_claims().ids)


@pytest.mark.filterwarnings("default")
def test_a_run_leaves_what_the_verdict_says(folder):
    experiment = little_papers.library["A-SUM"]
    write_record(experiment.run())
    assert read_record("A-SUM").verdict().ran == experiment.run().ran
