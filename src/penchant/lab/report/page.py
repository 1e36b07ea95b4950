"""The report page in one file: the number of claims per status, then the claims by source."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from penchant.lab.evidence.evidence import STATUSES, Status
from penchant.lab.evidence.verdict import MEANINGS, SYMBOLS, Verdict, Verdicts, shown
from penchant.lab.paper import Paper, paper_of
from penchant.lab.record import Recorded, recorded
from penchant.lab.report.markup import Markup, document, joined, tag, tile
from penchant.lab.report.mathml import mathematics
from penchant.lab.report.section import anchor, badge, evidence, kind, simple

FEW = 3  # claims that are shown open


def page(verdicts: Verdicts, when: datetime | None = None) -> str:
    """The report as one HTML document that loads nothing.

    Tiles filter and claims open without a script. The script adds the search, and keeps the filter
    when the reader moves between claims.
    """
    when = when or datetime.now(UTC)
    groups, records = _groups(verdicts), recorded(verdict.id for verdict in verdicts)
    open_ = len(verdicts) <= FEW
    parts = [source_part(letter, own, open_, records) for letter, own in groups.items()]
    nothing = tag("p", "No claim matches.", id="nothing", hidden="hidden")
    main = tag("main", _bar(groups), *parts, nothing)
    script = Path(__file__).with_name("page.js").read_text(encoding="utf-8")
    title = f"penchant: {_summary(verdicts)}"
    body = (_header(verdicts), main, _footer(verdicts, when), tag("script", Markup(script)))
    return document(title, *body)


def _groups(verdicts: Verdicts) -> dict[str, list[Verdict]]:
    """Letter of the source -> its verdicts."""
    found: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        found.setdefault(verdict.id.split("-")[0], []).append(verdict)
    return found


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
    count = f"{len(verdicts)} claim{'s' * (len(verdicts) != 1)}"
    facts = f"{count}, {sizes} instances, {seconds:.0f} s of computation. "
    rule = (
        "A claim holds only if every check passes, every premise is met, "
        "and the same measurement rejects a wrong theorem. "
    )
    corrected: tuple[Status, ...] = ("holds, proof corrected", "holds as corrected")
    statuses = ". ".join(f"“{status.capitalize()}”: {MEANINGS[status]}" for status in corrected)
    every = tile("∗", len(verdicts), "all claims", "every", "only-every")
    tiles = [_tile(status, verdicts) for status in STATUSES]
    return tag(
        "header",
        tag("p", "penchant verify", class_="kicker"),
        tag("h1", "What the theory says, and what was measured"),
        tag("p", facts, rule, f"{statuses}.", class_="lead"),
        tag("ul", every, *tiles, class_="tiles"),
        id="top",
    )


def _tile(status: Status, verdicts: Verdicts) -> Markup:
    name = kind(status)
    return tile(SYMBOLS[status], verdicts.counts[status], status, name, f"only-{name}")


def _bar(groups: dict[str, list[Verdict]]) -> Markup:
    """Links to the sources, and the tools that need a script: search, open all, close all."""
    links = [
        tag(
            "a",
            tag("b", letter),
            f" {_short(letter)} ",
            tag("small", str(len(own))),
            href=f"#source-{simple(letter)}",
        )
        for letter, own in groups.items()
    ]
    search = tag(
        "input",
        type="search",
        id="search",
        placeholder="filter by text",
        aria_label="filter by text",
    )
    buttons = (
        tag("button", "open all", type="button", id="open"),
        tag("button", "close all", type="button", id="close"),
    )
    tools = tag("span", search, *buttons, id="tools", hidden="hidden")
    return tag("nav", *links, tools, class_="bar", aria_label="sources and search")


def _footer(verdicts: Verdicts, when: datetime) -> Markup:
    versions = ", ".join(f"{name} {number}" for name, number in verdicts.versions.items())
    stamp = when.strftime("%Y-%m-%d %H:%M UTC")
    return tag("footer", tag("p", f"Written {stamp} with {versions or 'unknown versions'}."))


def source_part(
    letter: str,
    verdicts: list[Verdict],
    open_: bool,
    records: Mapping[str, Recorded] | None = None,
) -> Markup:
    """Title, authors and claims of a source, each with what is on record of it."""
    known = records or {}
    source = paper_of(letter)
    counts = Verdicts(tuple(verdicts)).summary
    columns = ("status", "claim and its place in the source", "decisive check", "run")
    head = tag(
        "div", *(tag("span", name) for name in columns), class_="columns", aria_hidden="true"
    )
    claims = [_claim(verdict, open_, known.get(verdict.id)) for verdict in verdicts]
    return tag(
        "section",
        _source_title(letter, source),
        tag("p", counts, class_="counts"),
        head,
        *claims,
        class_="source",
        id=f"source-{simple(letter)}",
    )


def _short(letter: str) -> str:
    paper = paper_of(letter)
    return "other" if paper is None else paper.short


def _source_title(letter: str, source: Paper | None) -> Markup:
    if source is None:
        return tag("h2", tag("b", letter))
    if not source.authors:
        return tag("h2", tag("b", letter), " ", source.title)
    about = f"{', '.join(source.authors)}. {source.year}, {source.form}."
    return joined(tag("h2", tag("b", letter), " ", source.title), tag("p", about, class_="authors"))


def _claim(verdict: Verdict, open_: bool, record: Recorded | None) -> Markup:
    name = joined(
        tag("b", verdict.id),
        tag("span", mathematics(verdict.statement), class_="statement"),
        tag("span", _source_text(verdict), class_="place"),
    )
    run = (
        tag("span", f"{verdict.size}, {verdict.seconds:.1f} s"),
        tag("span", f"on record: {record.status}") if record and record.status else None,
        tag("span", f"controls: {verdict.controls_in_brief}"),
    )
    line = tag(
        "summary",
        tag("span", badge(verdict.status), class_="status"),
        tag("span", name, class_="name"),
        tag("span", *_decisive(verdict), class_="check"),
        tag("span", *run, class_="run"),
    )
    inside = tag("div", *evidence(verdict, record), class_="evidence", id=anchor(verdict))
    return tag(
        "details",
        line,
        inside,
        class_="claim",
        data_status=kind(verdict.status),
        data_text=verdict.statement,
        open="open" if open_ else None,
    )


def _decisive(verdict: Verdict) -> tuple[Markup | None, ...]:
    check = verdict.decisive
    named = tag("span", mathematics(check.name), class_="place") if check else None
    return tag("span", shown(check), class_="number"), named


def _source_text(verdict: Verdict) -> str:
    source = paper_of(verdict.id)
    if source is None or not source.authors or verdict.place.startswith("ours"):
        return verdict.place
    return f"{source.short}, {verdict.place}"
