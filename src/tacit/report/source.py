"""The claims of one source: who wrote it, and a line a claim that opens to its evidence."""

from __future__ import annotations

import re

from tacit.evidence.verdict import Verdict, Verdicts, shown
from tacit.report.markup import Markup, joined, tag
from tacit.report.mathml import mathematics
from tacit.report.section import anchor, badge, evidence, kind
from tacit.sources import LETTERS, Source


def source_part(letter: str, verdicts: list[Verdict], open_: bool) -> Markup:
    """Title, authors and claims of a source."""
    source = LETTERS.get(letter)
    counts = Verdicts(tuple(verdicts)).summary
    columns = ("status", "claim and its place in the source", "decisive check", "run")
    head = tag(
        "div", *(tag("span", name) for name in columns), class_="columns", aria_hidden="true"
    )
    claims = [_claim(verdict, open_) for verdict in verdicts]
    return tag(
        "section",
        _source_title(letter, source),
        tag("p", counts, class_="counts"),
        head,
        *claims,
        class_="source",
        id=place_of(letter),
    )


def place_of(letter: str) -> str:
    """The id of the part of a source: letters, digits and dashes only."""
    return "source-" + re.sub(r"[^A-Za-z0-9-]", "_", letter)


def _source_title(letter: str, source: Source | None) -> Markup:
    if source is None:
        return tag("h2", tag("b", letter))
    about = f"{', '.join(source.authors)}. {source.year}, {source.form}."
    return joined(tag("h2", tag("b", letter), " ", source.title), tag("p", about, class_="authors"))


def _claim(verdict: Verdict, open_: bool) -> Markup:
    name = joined(
        tag("b", verdict.id),
        tag("span", mathematics(verdict.statement), class_="statement"),
        tag("span", _place(verdict), class_="place"),
    )
    run = (
        tag("span", f"{verdict.size}, {verdict.seconds:.1f} s"),
        tag("span", f"controls: {verdict.controls_in_brief}"),
    )
    line = tag(
        "summary",
        tag("span", badge(verdict.status), class_="status"),
        tag("span", name, class_="name"),
        tag("span", *_decisive(verdict), class_="check"),
        tag("span", *run, class_="run"),
    )
    inside = tag("div", *evidence(verdict), class_="evidence", id=anchor(verdict))
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


def _place(verdict: Verdict) -> str:
    source = LETTERS.get(verdict.id.split("-")[0])
    if source is None or verdict.place.startswith("ours"):
        return verdict.place
    return f"{source.short}, {verdict.place}"
