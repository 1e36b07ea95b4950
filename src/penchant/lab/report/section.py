"""One claim on the page: statement, run, numbers, premises, controls, correction, picture."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penchant.lab.evidence.evidence import Check, Evidence, Status
from penchant.lab.evidence.verdict import SYMBOLS, Verdict
from penchant.lab.report.markup import Markup, definitions, in_html, joined, part, table, tag
from penchant.mathematics import in_terminal
from penchant.records import brief

if TYPE_CHECKING:
    from penchant.lab.record import Recorded


def section(verdict: Verdict) -> Markup:
    """The section of one verdict."""
    return tag("section", _title(verdict), *evidence(verdict), id=anchor(verdict))


def evidence(verdict: Verdict, record: Recorded | None = None) -> tuple[Markup | None, ...]:
    """The evidence for a verdict, part by part, and what is on record of its claim."""
    return (
        tag("p", in_html(verdict.reason), class_=f"reason {kind(verdict.status)}"),
        _on_record(record),
        part("What was run", tag("p", in_html(verdict.ran)), _scope(verdict)),
        _correction(verdict),
        _checks("Checks of the statement as printed", verdict.evidence.checks),
        _checks(
            "Checks of the printed proof, or of printed equations beside it", verdict.evidence.proof
        ),
        _checks("Checks of the corrected statement", verdict.evidence.corrected),
        _controls(verdict.evidence.controls),
        tolerance_bars(verdict.evidence),
        _premises(verdict),
        _findings(verdict.findings),
        _picture(verdict),
        _repeat(verdict),
    )


def anchor(verdict: Verdict) -> str:
    """The id of the section."""
    return f"claim-{simple(verdict.id)}"


def simple(name: str) -> str:
    """The name with letters, digits and dashes only."""
    return re.sub(r"[^A-Za-z0-9-]", "_", name)


def kind(status: Status) -> str:
    """The CSS class of a status: holds, proof, corrected, fails or inconclusive."""
    return "proof" if "proof" in status else status.split()[-1]


def badge(status: Status) -> Markup:
    """The status as a symbol and a word, so that colour is not the only cue."""
    symbol = tag("span", SYMBOLS[status], class_="symbol", aria_hidden="true")
    return tag("span", symbol, status, class_=f"badge {kind(status)}")


def _title(verdict: Verdict) -> Markup:
    line = tag("p", tag("b", verdict.id), badge(verdict.status), class_="line")
    place = tag("p", in_html(verdict.place), class_="place")
    return joined(line, tag("h2", in_html(verdict.statement)), place)


def _on_record(record: Recorded | None) -> Markup | None:
    if record is None or record.largest is None:
        return None
    verdict = record.verdict()
    when = record.verdicts[verdict.size]["date"]
    run = f"at the size {verdict.size} on {when}, {verdict.scope}"
    shown = f"; {record.survival} other sets of seeds keep the status" if record.shifts else ""
    told = in_html(f"{verdict.status} {run}{shown}.")
    return tag("p", tag("b", "On record: "), told, class_="record")


def _scope(verdict: Verdict) -> Markup:
    shift = f"; every seed shifted by {verdict.shift}" if verdict.shift else ""
    told = f"Scope of this run, {verdict.size}: {verdict.scope}{shift}."
    return tag("p", in_html(told), class_="scope")


RULES = {"error": "within", "at most": "at most", "at least": "at least"}


def _compared(first: str, checks: Mapping[str, Check], passes: str, misses: str) -> Markup:
    """The table of checks, with these words for those that pass and for those that miss."""
    head = (first, "measured", "predicted", "tolerance", "rule", "result")
    rows = []
    for check in checks.values():
        numbers = (check.measured, check.predicted, check.tolerance)
        shown = [in_html(check.name), *(f"{number:.6g}" for number in numbers)]
        word = passes if check.passes else misses if check.misses else "? undecided"
        rows.append([*shown, RULES[check.kind], f"{word}: {check.sentence}"])
    return table(head, rows)


def _checks(title: str, checks: Mapping[str, Check]) -> Markup | None:
    return part(title, _compared("check", checks, "✓ passes", "✗ misses")) if checks else None


def _controls(controls: Mapping[str, Check]) -> Markup:
    title = "Controls: a wrong theorem must miss the tolerance"
    if not controls:
        return part(title, tag("p", "There is no control, so the status cannot be “holds”."))
    return part(title, _compared("wrong theorem", controls, "✗ passes too", "✓ rejected"))


def _premises(verdict: Verdict) -> Markup | None:
    if not verdict.premises:
        return None
    rows = (
        (in_html(name), "✓ met" if premise.holds else "✗ not met", brief(premise.value))
        for name, premise in verdict.premises.items()
    )
    return part("Premises", table(("premise", "met", "value"), rows))


def _correction(verdict: Verdict) -> Markup | None:
    parts = []
    if verdict.correction:
        parts.append(part("Correction", tag("p", in_html(verdict.correction))))
    if counterexample := _counterexample(verdict.counterexample):
        parts.append(part("Counterexample to the printed statement", counterexample))
    return tag("aside", *parts) if parts else None


def _counterexample(value: Any) -> Markup | None:
    """A stored counterexample as text, a list of named values or nothing."""
    if value is None:
        return None
    if not isinstance(value, Mapping):
        return tag("p", in_html(brief(value)))
    return definitions((in_html(name), in_html(brief(entry))) for name, entry in value.items())


def _findings(findings: Sequence[str]) -> Markup | None:
    if not findings:
        return None
    return part("Findings", tag("ul", *(tag("li", in_html(line)) for line in findings)))


def _picture(verdict: Verdict) -> Markup | None:
    if not verdict.picture:
        return None
    source = f"data:image/png;base64,{verdict.picture}"
    titles = in_terminal("; ".join(plot.title for plot in verdict.figures))
    alt = titles or f"the picture of {verdict.id}"
    return tag("figure", tag("img", src=source, alt=alt, class_="picture"))


def _repeat(verdict: Verdict) -> Markup:
    took = tag("span", f"{verdict.seconds:.1f} s")
    here = tag("a", "link to this claim", href=f"#{anchor(verdict)}")
    top = tag("a", "back to the top", href="#top")
    return tag("p", tag("code", verdict.command), took, here, top, class_="repeat")


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


def tolerance_bars(evidence: Evidence) -> Markup | None:
    """One track per check and control; None if there is nothing to place on it."""
    rows = [_track(check, "check") for check in evidence.deciding if _placeable(check)]
    rows += [_track(c, "control") for c in evidence.controls.values() if _placeable(c)]
    if not rows:
        return None
    scale = tag(
        "div",
        tag("span", "← inside"),
        tag("span", "tolerance"),
        tag("span", "outside →"),
        class_="scale",
    )
    note = "Distance in units of the tolerance; each tick is a power of ten, up to "
    most = in_html(rf"$10^{{\pm {SPAN:.0f}}}$")
    return tag("figure", *rows, scale, tag("figcaption", note, most, "."), class_="tolerance_bars")


def _placeable(check: Check) -> bool:
    return not math.isnan(strain(check))


def _track(check: Check, kind: str) -> Markup:
    dot = tag(
        "i", "●" if kind == "check" else "×", style=f"left:{100 * track_position(check):.2f}%"
    )
    name = tag("span", in_html(check.name), class_="name")
    return tag("div", name, tag("div", dot, class_="track"), class_=f"row {kind}")
