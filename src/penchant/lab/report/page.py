"""The report page in one file: the number of claims per status, then the claims by source."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime

from penchant.lab.evidence.verdict import Verdict, Verdicts
from penchant.lab.paper import Paper, paper_of
from penchant.lab.record import recorded
from penchant.lab.report.rendering import render

FEW = 3  # claims that are shown open


@dataclasses.dataclass(frozen=True)
class Source:
    """The claims of one source; `paper` is None where no paper has its letter."""

    letter: str
    paper: Paper | None
    verdicts: Verdicts


def page(verdicts: Verdicts, when: datetime | None = None) -> str:
    """The report as one HTML document that loads nothing."""
    return render(
        "claims.html",
        title=_summary(verdicts),
        verdicts=verdicts,
        sources=_sources(verdicts),
        records=recorded(verdict.id for verdict in verdicts),
        open=len(verdicts) <= FEW,
        when=when or datetime.now(UTC),
        versions=", ".join(f"{name} {number}" for name, number in verdicts.versions.items()),
    )


def _sources(verdicts: Verdicts) -> list[Source]:
    groups: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        groups.setdefault(verdict.id.split("-")[0], []).append(verdict)
    return [Source(key, paper_of(key), Verdicts(tuple(own))) for key, own in groups.items()]


def _summary(verdicts: Verdicts) -> str:
    words = {
        "holds": "hold as printed",
        "holds, proof corrected": "hold with a corrected proof",
        "holds as corrected": "hold as corrected",
        "fails": "fail",
        "inconclusive": "inconclusive",
    }
    return ", ".join(f"{n} {words[status]}" for status, n in verdicts.counts.items() if n)
