"""The page: a summary, the table of verdicts and one section a claim, all in one file."""

from __future__ import annotations

from datetime import UTC, datetime

from tacit.claims.evidence import STATUSES, Status
from tacit.claims.verdict import SYMBOLS, Verdict, Verdicts, shown
from tacit.report.document import document
from tacit.report.markup import Markup, joined, tag
from tacit.report.parts import tile
from tacit.report.section import anchor, badge, kind, section


def page(verdicts: Verdicts, when: datetime | None = None) -> str:
    """The report as one HTML document that loads nothing."""
    when = when or datetime.now(UTC)
    sections = [section(verdict, number) for number, verdict in enumerate(verdicts)]
    main = tag("main", _table(verdicts), *sections)
    title = f"tacit: {_summary(verdicts)}"
    return document(title, _header(verdicts), main, _footer(verdicts, when))


def _summary(verdicts: Verdicts) -> str:
    words = {
        "holds": "hold as printed",
        "holds, proof corrected": "hold with a corrected proof",
        "holds as corrected": "hold as corrected",
        "fails": "fail",
        "inconclusive": "inconclusive",
    }
    return ", ".join(f"{n} {words[status]}" for status, n in verdicts.counts.items() if n)


def _header(verdicts: Verdicts) -> Markup:
    sizes = " and ".join(sorted({verdict.size for verdict in verdicts}))
    seconds = sum(verdict.seconds for verdict in verdicts)
    claims = f"{len(verdicts)} claim{'s' * (len(verdicts) != 1)}"
    facts = f"{claims}, {sizes} instances, {seconds:.0f} s of computation. "
    rule = (
        "A claim holds only if every check passes, every premise is met, "
        "and the same measurement rejects a wrong theorem."
    )
    return tag(
        "header",
        tag("p", "tacit verify", class_="kicker"),
        tag("h1", "What the theory says, and what was measured"),
        tag("p", facts, rule, class_="lead"),
        tag("ul", *(_tile(status, verdicts) for status in STATUSES), class_="tiles"),
        id="top",
    )


def _tile(status: Status, verdicts: Verdicts) -> Markup:
    return tile(SYMBOLS[status], verdicts.counts[status], status, kind(status))


def _table(verdicts: Verdicts) -> Markup:
    names = ("status", "claim", "decisive check", "controls", "time")
    head = tag("tr", *(tag("th", name, scope="col") for name in names))
    rows = [_row(verdict) for verdict in verdicts]
    return tag("table", tag("thead", head), tag("tbody", *rows), class_="ledger")


def _row(verdict: Verdict) -> Markup:
    link = tag("a", verdict.id, href=f"#{anchor(verdict)}")
    claim = joined(link, tag("span", verdict.statement, class_="statement"))
    return tag(
        "tr",
        tag("td", badge(verdict.status), data_label="status"),
        tag("td", claim, class_="claim", data_label="claim"),
        tag("td", shown(verdict.decisive), class_="number", data_label="decisive check"),
        tag("td", verdict.controls_in_brief, class_="number", data_label="controls"),
        tag("td", f"{verdict.seconds:.1f} s", class_="number", data_label="time"),
    )


def _footer(verdicts: Verdicts, when: datetime) -> Markup:
    versions = ", ".join(f"{name} {number}" for name, number in verdicts.versions.items())
    stamp = when.strftime("%Y-%m-%d %H:%M UTC")
    return tag("footer", tag("p", f"Written {stamp} with {versions or 'unknown versions'}."))
