"""The record: what was measured of every claim at its largest size, and how seeds change it.

One JSON file a claim, in the folder `record` of its paper:

- `verdicts`: the verdict at the sizes "quick" and "printed", without its picture, with the date,
  the commit and the versions that made it;
- `shifts`: the status at the quick size for every shift of the seeds that was tried.

A file belongs to one statement: if the statement changes, what was measured before is dropped.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from penchant.arguments import text
from penchant.door import Invalid, door, door_as
from penchant.lab.evidence.evidence import Status
from penchant.lab.evidence.verdict import Verdict
from penchant.lab.evidence.verdict_json import entry_of, json_text, packed, unpacked, verdict_of
from penchant.lab.paper import paper_of
from penchant.lab.writing import write_text
from penchant.records import Record
from penchant.versions import versions

FORMAT = "penchant record 1"
LARGEST = ("printed", "quick")  # the sizes that are recorded, the one that counts first


@dataclasses.dataclass(frozen=True, repr=False)
class Recorded(Record):
    """What is on record of one claim."""

    id: str
    statement: str
    verdicts: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    shifts: Mapping[int, Status] = dataclasses.field(default_factory=dict)

    @property
    def largest(self) -> str | None:
        """The largest size on record."""
        return next((size for size in LARGEST if size in self.verdicts), None)

    @property
    def status(self) -> Status | None:
        """The status at the largest size on record."""
        return None if self.largest is None else self.verdicts[self.largest]["status"]

    @property
    def quick_status(self) -> Status | None:
        """The status at the quick size, which shifted seeds must keep."""
        return self.verdicts["quick"]["status"] if "quick" in self.verdicts else None

    @property
    def survival(self) -> str:
        """How many shifts of the seeds keep the status, as in "20 of 20"; a dash for none tried."""
        if not self.shifts:
            return "—"
        kept = sum(status == self.quick_status for status in self.shifts.values())
        return f"{kept} of {len(self.shifts)}"

    def verdict(self, size: str | None = None) -> Verdict:
        """The verdict at a size, by default the largest; its numbers give its status again."""
        entry = self.verdicts[size or str(self.largest)]
        own = {key: value for key, value in entry.items() if key not in ("date", "commit", "with")}
        return verdict_of({**own, "picture": ""}, f"the record of {self.id}")

    def joined(self, verdict: Verdict) -> Recorded:
        """The record with one more verdict; a verdict of shifted seeds adds its status only."""
        known = self
        if known.statement != verdict.statement:
            known = Recorded(verdict.id, verdict.statement)
        if verdict.shift:
            shifts = {**known.shifts, verdict.shift: verdict.status}
            return dataclasses.replace(known, shifts=dict(sorted(shifts.items())))
        return dataclasses.replace(known, verdicts={**known.verdicts, verdict.size: _told(verdict)})


def file_of(id: str) -> Path | None:
    """The file of a claim, whether it is there or not; None for a claim of no installed paper."""
    paper = paper_of(id)
    return None if paper is None else paper.record / f"{id}.json"


@door
def read_record(id: str) -> Recorded | None:
    """What is on record of a claim, or None."""
    file = file_of(text("id", id))
    if file is None or not file.is_file():
        return None
    content = unpacked(json.loads(file.read_text(encoding="utf-8")))
    if content.pop("format", None) != FORMAT:
        raise ValueError(f"record: {id}.json is no record (format {FORMAT!r} is missing)")
    shifts = {int(shift): status for shift, status in content.pop("shifts").items()}
    return Recorded(**content, shifts=shifts)


@door_as("record")
def write_record(verdict: Verdict) -> None:
    """Add a verdict to the record of its claim, in one step."""
    known = read_record(verdict.id) or Recorded(verdict.id, verdict.statement)
    told = packed({"format": FORMAT, **dataclasses.asdict(known.joined(verdict))})
    file = file_of(verdict.id)
    if file is None:
        raise Invalid(f"{verdict.id} is a claim of no installed paper")
    file.parent.mkdir(exist_ok=True)
    write_text(file, json_text(told))


def recorded(ids: Iterable[str]) -> dict[str, Recorded]:
    """What is on record of these claims, by id."""
    read = {id: read_record(id) for id in ids}
    return {id: record for id, record in read.items() if record is not None}


def kept(verdicts: Iterable[Verdict], records: Mapping[str, Recorded]) -> str:
    """How many verdicts of shifted seeds have the status that is on record at the quick size."""
    pairs = [(v, records[v.id].quick_status) for v in verdicts if v.id in records]
    known = [(verdict, status) for verdict, status in pairs if status is not None]
    changed = [verdict.id for verdict, status in known if verdict.status != status]
    line = f"{len(known) - len(changed)} of {len(known)} keep their status"
    return f"{line}; not: {', '.join(changed)}" if changed else line


def _told(verdict: Verdict) -> dict[str, Any]:
    """A verdict as JSON values, with when, from which commit and with which versions."""
    told = entry_of(verdict)
    del told["picture"]
    told["evidence"]["plots"] = []
    commit = _commit(file_of(verdict.id))
    made = {"date": datetime.date.today().isoformat(), "commit": commit, "with": versions()}
    return {**told, **made}


def _commit(file: Path | None) -> str:
    """The commit of the code of a paper, marked where other files than records differ from it.

    It is empty outside a checkout.
    """
    if file is None:
        return ""
    folder = file.parents[1]
    commit = _git(folder, "rev-parse", "--short=10", "HEAD")
    others = (":/", ":(exclude,top,glob)**/record/*.json")
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no", "--", *others)
    return f"{commit}-dirty" if changed else commit


def _git(folder: Path, *words: str) -> str:
    """What git answers about the checkout around a folder, nothing if there is none."""
    command = ["git", *words]
    try:
        answer = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout.strip()
