"""What the page shows of one claim: names, rows of tables, places on the bars of tolerances."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from penchant.lab.evidence.evidence import Check, Evidence, Premise, Status
from penchant.lab.evidence.verdict import Verdict
from penchant.lab.paper import paper_of
from penchant.lab.report.markup import in_html
from penchant.records import brief

if TYPE_CHECKING:
    from penchant.lab.record import Recorded


def anchor(verdict: Verdict) -> str:
    """The id of the section."""
    return f"claim-{simple(verdict.id)}"


def simple(name: str) -> str:
    """The name with letters, digits and dashes only."""
    return re.sub(r"[^A-Za-z0-9-]", "_", name)


def image_type(picture: str) -> str:
    """The format of a picture in base64: older files of verdicts have PNG."""
    return "png" if picture.startswith("iVBOR") else "webp"


def module_of(verdict: Verdict) -> str:
    """The module with the experiment, if the paper of the claim is installed."""
    source = paper_of(verdict.id)
    module = source.statements.get(verdict.id) if source else None
    return f"{source.package}.{module}" if source and module else ""


def address(verdict: Verdict) -> str:
    """Where the paper of the claim is to be read; nothing where that is not known."""
    source = paper_of(verdict.id)
    return source.url if source else ""


def kind(status: Status) -> str:
    """The CSS class of a status: holds, proof, corrected, fails or inconclusive."""
    return "proof" if "proof" in status else status.split()[-1]


def source_text(verdict: Verdict) -> str:
    """The place of a claim, with its authors if they are not we."""
    source = paper_of(verdict.id)
    if source is None or not source.authors or verdict.place.startswith("ours"):
        return verdict.place
    return f"{source.short}, {verdict.place}"


def on_record(record: Recorded) -> str:
    """The status on record, at which size and when, and how many other seeds keep it."""
    verdict = record.verdict()
    when = record.verdicts[verdict.size]["date"]
    seeds = f"; {record.survival} other sets of seeds keep the status" if record.shifts else ""
    return f"{verdict.status} at the size {verdict.size} on {when}, {verdict.scope}{seeds}."


RULES = {"error": "within", "at most": "at most", "at least": "at least"}


def compared(checks: Mapping[str, Check], passes: str, misses: str) -> list[list[str]]:
    """The rows of checks, with these words for those that pass and for those that miss."""
    rows = []
    for check in checks.values():
        numbers = (check.measured, check.predicted, check.tolerance)
        shown = [in_html(check.name), *(f"{number:.6g}" for number in numbers)]
        word = passes if check.passes else misses if check.misses else "? undecided"
        rows.append([*shown, RULES[check.kind], f"{word}: {check.sentence}"])
    return rows


def premise_rows(premises: Mapping[str, Premise]) -> list[tuple[str, str, str]]:
    """The rows of premises."""
    return [
        (in_html(name), "✓ met" if premise.holds else "✗ not met", brief(premise.value))
        for name, premise in premises.items()
    ]


SPAN = 9.0  # powers of ten shown on either side of the tolerance


def strain(check: Check) -> float:
    """The share of the tolerance that is used: below 1 inside, above 1 outside; NaN if none."""
    if check.kind == "error" and check.tolerance > 0:
        return abs(check.measured - check.predicted) / check.tolerance
    limit = check.predicted + check.tolerance * (1 if check.kind == "at most" else -1)
    if check.kind == "error" or limit <= 0 or check.measured <= 0:
        return math.nan
    return check.measured / limit if check.kind == "at most" else limit / check.measured


def track_position(check: Check) -> float:
    """The position of the check, 0 to 1 from left to right with the tolerance at one half."""
    used = strain(check)
    power = -SPAN if used == 0 else math.log10(used)
    return 0.5 + 0.5 * max(-1.0, min(1.0, power / SPAN))


@dataclasses.dataclass(frozen=True)
class Track:
    """One check or control on its bar, `position` being 0 to 1 from left to right."""

    name: str
    kind: Literal["check", "control"]
    position: float

    @property
    def symbol(self) -> str:
        return "●" if self.kind == "check" else "×"


def tracks(evidence: Evidence) -> list[Track]:
    """The checks that decide and the controls, as far as they can be placed on a bar."""
    checks = [Track(c.name, "check", track_position(c)) for c in evidence.deciding if _placed(c)]
    wrong = (check for check in evidence.controls.values() if _placed(check))
    return checks + [Track(check.name, "control", track_position(check)) for check in wrong]


def _placed(check: Check) -> bool:
    return not math.isnan(strain(check))
