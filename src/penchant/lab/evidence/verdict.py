"""Verdicts: a claim, the evidence of one run, and the status that follows from it."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

from penchant.arguments import one_of
from penchant.door import door_as
from penchant.lab.evidence.evidence import (
    HOLDING,
    STATUSES,
    Check,
    Evidence,
    Premise,
    Status,
    judge,
)
from penchant.lab.evidence.plot import Plot
from penchant.lab.studies.sizes import Size
from penchant.mathematics import in_terminal
from penchant.records import Record, brief
from penchant.results import DrawnResult

SYMBOLS: dict[Status, str] = {
    "holds": "✓",
    "holds, proof corrected": "†",
    "holds as corrected": "✎",
    "fails": "✗",
    "inconclusive": "?",
}
MEANINGS: dict[Status, str] = {
    "holds": "every check passes and every control misses",
    "holds, proof corrected": "the statement holds, but a line of its proof or an equation "
    "beside it does not",
    "holds as corrected": "the statement fails as printed, and holds in our corrected wording",
    "fails": "the statement fails, and we have no correction",
    "inconclusive": "a premise is not met, or the measurement cannot decide",
}


AS_PRINTED = "as printed"

ROWS = (
    *("id", "statement", "place", "scope", "ran"),
    *("measured", "predicted", "tolerance", "premises", "controls"),
)


def _one_or_many(numbers: dict[str, float]) -> float | dict[str, float]:
    return next(iter(numbers.values())) if len(numbers) == 1 else numbers


@dataclass(frozen=True, repr=False)
class Verdict(DrawnResult):
    """The outcome of one claim; `status` is computed from the evidence and cannot be set.

    Attributes
    ----------
    id
        The claim.
    statement
        What it says.
    place
        Where its source says it.
    evidence
        What was run and measured.
    size
        "tiny", "quick" or "printed".
    scope
        "as printed", or what is smaller or other than in the source.
    shift
        The number that was added to every seed.
    seconds
        The time that it took.
    picture
        Its picture in base64, a WebP file, if one was drawn.

    Examples
    --------
    >>> import penchant
    >>> first = penchant.lab.all_claims().ids[0]
    >>> verdict = penchant.verify(first, size="tiny")
    >>> verdict.ok, verdict.command == f"penchant verify {first} --size tiny"
    (True, True)
    """

    id: str
    statement: str
    place: str
    evidence: Evidence
    size: Size = "quick"
    scope: str = AS_PRINTED
    shift: int = 0
    seconds: float = 0.0
    picture: str = field(default="", repr=False)

    @property
    def status(self) -> Status:
        return judge(self.evidence)[0]

    @property
    def reason(self) -> str:
        """The sentence that justifies the status."""
        return judge(self.evidence)[1]

    @property
    def ok(self) -> bool:
        return self.status in HOLDING

    @property
    def ran(self) -> str:
        return self.evidence.ran

    @property
    def measured(self) -> float | dict[str, float]:
        """The measured number, or name -> number where several checks decide."""
        return _one_or_many({check.name: check.measured for check in self.evidence.deciding})

    @property
    def predicted(self) -> float | dict[str, float]:
        return _one_or_many({check.name: check.predicted for check in self.evidence.deciding})

    @property
    def tolerance(self) -> float | dict[str, float]:
        return _one_or_many({check.name: check.tolerance for check in self.evidence.deciding})

    @property
    def premises(self) -> dict[str, Premise]:
        return dict(self.evidence.premises)

    @property
    def controls(self) -> dict[str, float]:
        """Wrong theorem -> the number it gives; each must miss the tolerance."""
        return {name: control.measured for name, control in self.evidence.controls.items()}

    @property
    def counterexample(self) -> str | dict[str, Any] | None:
        """The counterexample to the printed statement: as stored, else the numbers that miss."""
        if self.evidence.counterexample is not None:
            return self.evidence.counterexample  # type: ignore[return-value]
        printed = (*self.evidence.checks.values(), *self.evidence.proof.values())
        missing = {check.name: check.sentence for check in printed if check.misses}
        return missing or None

    @property
    def correction(self) -> str | None:
        return self.evidence.correction

    @property
    def findings(self) -> list[str]:
        return list(self.evidence.findings)

    @property
    def figures(self) -> list[Plot]:
        return list(self.evidence.plots)

    @property
    def decisive(self) -> Check | None:
        """The first check that does not pass, else the first check, which is the main one."""
        deciding = self.evidence.deciding
        open_ = [check for check in deciding if not check.passes]
        return next(iter([*open_, *deciding]), None)

    @property
    def controls_in_brief(self) -> str:
        """How many controls miss the tolerance, as all of them must."""
        controls = self.evidence.controls.values()
        missing = sum(control.misses for control in controls)
        return f"{missing} of {len(controls)} miss" if controls else "none"

    @property
    def command(self) -> str:
        """The shell command that repeats this verdict."""
        size = "" if self.size == "quick" else f" --size {self.size}"
        return f"penchant verify {self.id}{size}" + (f" --shift {self.shift}" if self.shift else "")

    def __repr__(self) -> str:
        check = f" ({shown(self.decisive)})" if self.decisive else ""
        return f"<Verdict {self.id}, {self.size}: {self.status}{check}>"

    def rows(self) -> list[tuple[str, str]]:
        rows = [(name, in_terminal(brief(getattr(self, name)) or "none")) for name in ROWS]
        rows.append(("status", f"{SYMBOLS[self.status]} {self.status}: {in_terminal(self.reason)}"))
        for name in ("counterexample", "correction", "findings"):
            if getattr(self, name):
                rows.append((name, in_terminal(brief(getattr(self, name)))))
        return [*rows, ("seconds", f"{self.seconds:.1f}")]


@dataclass(frozen=True, repr=False)
class Verdicts(Record, Sequence[Verdict]):
    """Verdicts in the order of the claims; index by position or by id.

    Attributes
    ----------
    items
        The verdicts.
    versions
        The versions of the packages that made them.

    Examples
    --------
    >>> import penchant
    >>> first = penchant.lab.all_claims().ids[0]
    >>> verdicts = penchant.verify([first], size="tiny")
    >>> len(verdicts), verdicts[first].ok, verdicts.summary.startswith("1 holds")
    (1, True, True)
    """

    items: tuple[Verdict, ...]
    versions: dict[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Verdict]:
        return iter(self.items)

    @overload
    def __getitem__(self, key: int | str) -> Verdict: ...
    @overload
    def __getitem__(self, key: slice) -> Verdicts: ...
    @door_as("Verdicts")
    def __getitem__(self, key: int | str | slice) -> Verdict | Verdicts:
        if isinstance(key, slice):
            return Verdicts(self.items[key], self.versions)
        if isinstance(key, str):
            known = {verdict.id.upper(): verdict for verdict in self.items}
            return known[one_of("claim id", key.upper(), known)]
        return self.items[key]

    @property
    def counts(self) -> dict[Status, int]:
        """Status -> how many, for every status."""
        seen = Counter(verdict.status for verdict in self.items)
        return {status: seen[status] for status in STATUSES}

    @property
    def summary(self) -> str:
        """How many claims have which status, in words; a status may hold a comma."""
        return "; ".join(f"{n} {status}" for status, n in self.counts.items() if n)

    @property
    def status(self) -> Status:
        """The worst status of all: fails, then inconclusive, then the corrected ones."""
        order: tuple[Status, ...] = ("fails", "inconclusive", *reversed(HOLDING))
        return next((status for status in order if self.counts[status]), "inconclusive")

    @property
    def ok(self) -> bool:
        return self.status in HOLDING

    def __repr__(self) -> str:
        return f"<Verdicts: {self.summary or 'none'}>"

    def rows(self) -> list[tuple[str, str]]:
        return [(verdict.id, verdict.status) for verdict in self.items]

    def _table(self) -> list[tuple[str, ...]]:
        head = ("", "id", "status", "decisive check", "seconds", "statement")
        rows = [
            (
                *(SYMBOLS[v.status], v.id, v.status, shown(v.decisive), f"{v.seconds:.1f}"),
                in_terminal(v.statement),
            )
            for v in self.items
        ]
        return [head, *rows]

    def __str__(self) -> str:
        table = self._table()
        widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
        pad = ("  ".join(f"{c:<{w}}" for c, w in zip(row, widths, strict=True)) for row in table)
        return "\n".join(line.rstrip() for line in pad)

    def _repr_html_(self) -> str:
        head, *body = self._table()
        cells = ["".join(f"<th>{html.escape(cell)}</th>" for cell in head)]
        cells += ["".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in body]
        return f"<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"


def shown(check: Check | None) -> str:
    """The check's comparison, or a dash."""
    return check.sentence if check else "—"
