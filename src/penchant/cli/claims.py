"""Verdicts in a terminal: one line a claim, under the titles of the papers; details if asked for.

A line has the status, the id, the place in the source, the decisive check, the scope of today's
run, and the status and size on record. On a terminal it is cut at the right end of its place and
of its scope, so that it stays one line; in a pipe or a file it is whole. Of many claims
those that hold as printed and as on record show only status, id and check, and share lines.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from penchant.lab.evidence.evidence import HOLDING, Status
from penchant.lab.evidence.verdict import AS_PRINTED, SYMBOLS, Verdict, Verdicts
from penchant.lab.paper import letters_of, paper_of
from penchant.lab.record import Recorded
from penchant.mathematics import in_terminal

STYLES: dict[Status, str] = {
    "holds": "green",
    "holds, proof corrected": "cyan",
    "holds as corrected": "blue",
    "fails": "bold red",
    "inconclusive": "yellow",
}
PLAIN: dict[Status, str] = {  # for a terminal without the symbols
    "holds": "holds",
    "holds, proof corrected": "proof",
    "holds as corrected": "wording",
    "fails": "fails",
    "inconclusive": "open",
}
LEAST_SCOPE = len(AS_PRINTED)
MANY = 100  # verdicts above which those that hold as printed share lines
INDENT = 4


PLACE, SCOPE = 2, 4  # the columns that are cut


def marked(status: Status) -> Text:
    """The status as a symbol and a word; the colour adds no information."""
    return Text(f"{SYMBOLS[status]} {status}", style=STYLES[status])


def print_verdicts(
    console: Console,
    verdicts: Verdicts,
    records: Mapping[str, Recorded] | None = None,
    detailed: Collection[str] = (),
) -> None:
    """Print a line for every verdict, details of those in `detailed`, and why one does not hold."""
    known = records or {}
    signs = SYMBOLS if _has_symbols(console) else PLAIN
    for letters, group in groupby(verdicts, lambda verdict: letters_of(verdict.id)):
        claims = list(group)
        _print_line(console, heading(letters, len(claims)))
        plain = [v for v in claims if len(verdicts) > MANY and _says_all(v, known.get(v.id))]
        plain = [v for v in plain if v.id not in detailed]
        claims = [v for v in claims if v not in plain]
        for verdict, line in zip(claims, _lines(claims, known, signs, console), strict=True):
            _print_line(console, line)
            if verdict.id in detailed or verdict.status not in HOLDING:
                for text in _details(verdict, known.get(verdict.id), verdict.id in detailed):
                    _print_below(console, text)
        for line in _shared_lines(plain, signs, console):
            _print_line(console, line)
    console.print(Text(verdicts.summary, style="bold"), soft_wrap=True)


def print_legend(console: Console, number: int) -> None:
    """Two lines that say what the lines above them show, and where the rest is."""
    signs = SYMBOLS if _has_symbols(console) else PLAIN
    short = {"holds, proof corrected": "proof corrected", "holds as corrected": "as corrected"}
    meanings = "  ".join(f"{sign} {short.get(status, status)}" for status, sign in signs.items())
    columns = "columns: claim, place, check, scope, record; statements and corrections with -v"
    if number > MANY:
        columns = (
            "claim, place, check, scope, record; those that hold as printed share lines; more: -v"
        )
    for text in (meanings, columns):
        console.print(Text(text, style="dim"), soft_wrap=True)


def heading(letters: str, note: object) -> Text:
    """The title of the paper with these letters, and a note such as the number of its claims."""
    paper = paper_of(f"{letters}-")
    title = letters if paper is None else paper.title
    if paper is not None and paper.authors:
        title = f"{paper.letters}  {paper.short}, {title}"
    return Text.assemble((title, "bold"), (f"  ({note})", "dim"))


def _has_symbols(console: Console) -> bool:
    try:
        "".join(SYMBOLS.values()).encode(console.encoding)
    except (LookupError, UnicodeEncodeError):
        return False
    return True


def _lines(
    claims: Sequence[Verdict],
    known: Mapping[str, Recorded],
    signs: Mapping[Status, str],
    console: Console,
) -> Iterator[Text]:
    """The lines of one paper, in columns; on a terminal each fits into its width."""
    rows = [
        (
            Text(signs[v.status], style=STYLES[v.status]),
            Text(v.id, style="bold"),
            Text(in_terminal(v.place)),
            Text(v.decisive.brief if v.decisive else "—"),
            Text(in_terminal(v.scope), style="dim"),
            _on_record(v, known.get(v.id), signs),
        )
        for v in claims
    ]
    widths = [max(text.cell_len for text in column) for column in zip(*rows, strict=True)]
    if console.is_terminal:
        spaces = len(widths)  # one before each text
        room = console.width - spaces - sum(widths) + widths[PLACE] + widths[SCOPE]
        room = max(room, 2 * LEAST_SCOPE)
        least = min(widths[SCOPE], LEAST_SCOPE)
        widths[PLACE] = min(widths[PLACE], max(room - least, room // 2))
        widths[SCOPE] = min(widths[SCOPE], room - widths[PLACE])
    for row in rows:
        line = Text()
        for text, width in zip(row, widths, strict=True):
            text.truncate(width, overflow="ellipsis", pad=True)
            line.append(" ").append_text(text)
        line.rstrip()
        yield line


def _says_all(verdict: Verdict, record: Recorded | None) -> bool:
    """Whether a mark says all: it holds as printed, at its full scope, and so it does on record."""
    same = record is None or record.status in (None, verdict.status)
    return verdict.status == "holds" and verdict.scope == AS_PRINTED and same


def _shared_lines(
    claims: Sequence[Verdict], signs: Mapping[Status, str], console: Console
) -> Iterator[Text]:
    """Status, id and check of each claim, as many to a line as fit."""
    if not claims:
        return
    cells = [
        (Text(f" {v.id}", style="bold"), Text(f" {v.decisive.brief}" if v.decisive else " —"))
        for v in claims
    ]
    first, second = (max(text.cell_len for text in column) for column in zip(*cells, strict=True))
    sign = Text(f" {signs['holds']}", style=STYLES["holds"])
    each = max(1, console.width // (sign.cell_len + first + second))
    for start in range(0, len(cells), each):
        line = Text()
        for id, check in cells[start : start + each]:
            id.pad_right(first - id.cell_len)
            check.pad_right(second - check.cell_len)
            line.append_text(sign).append_text(id).append_text(check)
        line.rstrip()
        yield line


def _on_record(verdict: Verdict, record: Recorded | None, signs: Mapping[Status, str]) -> Text:
    """Status and largest size on record; what differs from today's status is red."""
    if record is None or record.status is None:
        return Text("none", style="dim")
    style = "dim" if record.status == verdict.status else "bold red"
    return Text(f"{signs[record.status]} {record.largest}", style=style)


def _details(verdict: Verdict, record: Recorded | None, whole: bool) -> Iterator[Text]:
    """The paragraphs below a line: the statement, why the status is what it is, and the rest."""
    if whole:
        yield Text(in_terminal(verdict.statement))
    if verdict.status != "holds":
        reason = verdict.correction if "corrected" in verdict.status else verdict.reason
        text = f": {in_terminal(reason or '')}"
        yield Text.assemble((verdict.status, STYLES[verdict.status]), text)
    if whole:
        check = (
            f"{verdict.decisive.name}: {verdict.decisive.sentence}; " if verdict.decisive else ""
        )
        took = f"controls: {verdict.controls_in_brief}; {verdict.seconds:.1f} s"
        yield Text(in_terminal(check) + took, style="dim")
        if verdict.scope != "as printed":
            yield Text(f"scope: {in_terminal(verdict.scope)}", style="dim")
        if record is not None and record.status is not None:
            yield Text(f"record: {told(record)}", style="dim")


def told(record: Recorded) -> str:
    """Status, size, scope and survival on record, in a few words."""
    seeds = f"; {record.survival} other seeds agree" if record.shifts else ""
    return f"{record.status}, {record.largest}: {in_terminal(record.verdict().scope)}{seeds}"


def _print_line(console: Console, line: Text) -> None:
    if console.is_terminal:
        line.truncate(console.width, overflow="ellipsis")
    console.print(line, soft_wrap=True)


def _print_below(console: Console, text: Text) -> None:
    if console.is_terminal:
        console.print(Padding(text, (0, 0, 0, INDENT)))
    else:
        console.print(Text(" " * INDENT).append_text(text), soft_wrap=True)
