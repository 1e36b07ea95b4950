"""Generate the table of docs/papers.md: `python docs/coverage.py [REPORT ...]`.

A REPORT is a folder that `tacit verify` wrote, or its verdicts.json; its rows replace those of
docs/coverage.json, from which the table is made. Without a report the table is made again. The
rows are kept as JSON, so that a table that was edited by hand is noticed.
"""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tacit.arguments import one_of
from tacit.evidence.evidence import HOLDING, STATUSES, Check, Status
from tacit.evidence.saved import packed, unpacked
from tacit.evidence.verdict import MEANINGS, Size, Verdict, shown
from tacit.papers.registry import library
from tacit.records import Record
from tacit.report.write import read_verdicts, write_whole

ROOT = Path(__file__).resolve().parent.parent
TABLE, ROWS = ROOT / "docs" / "papers.md", ROOT / "docs" / "coverage.json"
BEGIN, END = "<!-- coverage: begin -->", "<!-- coverage: end -->"
HEAD = ("id", "statement", "status", "decisive check", "size and run")
FORMAT = "tacit coverage 1"


@dataclass(frozen=True, repr=False)
class Row(Record):
    """What the table says of one claim."""

    id: str
    statement: str
    status: Status
    check: Check | None
    size: Size
    ran: str

    def __post_init__(self) -> None:
        one_of(f"coverage: {self.id}", "status", self.status, STATUSES)
        if self.status in HOLDING and not (self.check and self.check.passes):
            seen = shown(self.check)
            raise ValueError(f"coverage: {self.id} cannot hold with the check {seen}; verify again")


def row_of(verdict: Verdict) -> Row:
    """The row of a verdict."""
    named = (verdict.id, verdict.statement, verdict.status)
    return Row(*named, verdict.decisive, verdict.size, verdict.ran)


def dumps(rows: Iterable[Row]) -> str:
    """The rows as JSON text, a line each."""
    lines = (json.dumps(packed(asdict(row)), ensure_ascii=False) for row in rows)
    joined = ",\n  ".join(lines)
    return f'{{"format": {json.dumps(FORMAT)}, "rows": [\n  {joined}\n]}}\n'


def loads(text: str) -> list[Row]:
    """The rows in `text`; a status that its own number contradicts is refused."""
    content = unpacked(json.loads(text))
    if content.get("format") != FORMAT:
        raise ValueError(f"coverage: not a file of rows (format {FORMAT!r} is missing)")
    return [
        Row(**{**row, "check": row["check"] and Check(**row["check"])}) for row in content["rows"]
    ]


def coverage(rows: Sequence[Row]) -> str:
    """The text that explains the statuses, and the table below it."""
    cells = [HEAD, ("---",) * len(HEAD), *map(_cells, rows)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in cells)
    return f"{_words(rows)}\n\n{table}"


def _words(rows: Sequence[Row]) -> str:
    counts = Counter(row.status for row in rows)
    meanings = "; ".join(
        f"*{status}* ({counts[status]}): {MEANINGS[status]}"
        for status in STATUSES
        if counts[status]
    )
    return (
        f"{len(rows)} claims; `tacit verify ID` runs one. The last column says the size at which"
        " the number beside it was measured: `quick` is the default, `full` is"
        f" `tacit verify ID --full`. {meanings}. The report shows every other check, the controls,"
        " counterexamples and corrections. This part is generated:"
        " `tacit verify && python docs/coverage.py tacit-report`."
    )


def _cells(row: Row) -> tuple[str, ...]:
    measured = f"{row.check.name}: {shown(row.check)}" if row.check else shown(None)
    texts = (row.statement, row.status, measured, f"{row.size}: {row.ran}")
    return (row.id, *map(escaped, texts))


def escaped(text: str) -> str:
    """The text as Markdown that shows it letter by letter, on one line."""
    return re.sub(r"([\\`*_<>|~\[\]])", r"\\\1", " ".join(text.split()))


def replaced(document: str, rows: Sequence[Row]) -> str:
    """`document` with what stands between the two markers made from `rows`."""
    parts = re.split(f"({re.escape(BEGIN)}|{re.escape(END)})", document)
    if parts[1::2] != [BEGIN, END]:
        raise ValueError(f"coverage: the document must hold {BEGIN} and {END} once, in this order")
    return f"{parts[0]}{BEGIN}\n{coverage(rows)}\n{END}{parts[4]}"


def update(reports: list[str]) -> None:
    """Write the rows of the reports into docs/coverage.json and the table into docs/papers.md."""
    known = loads(ROWS.read_text(encoding="utf-8")) if ROWS.exists() else []
    rows = {row.id: row for row in known}
    for report in map(Path, reports):
        file = report / "verdicts.json" if report.is_dir() else report
        rows |= {verdict.id: row_of(verdict) for verdict in read_verdicts(file)}
    claims = library().experiments()
    old = [c.id for c in claims if c.id not in rows or rows[c.id].statement != c.statement]
    if old:
        raise SystemExit(f"run `tacit verify {' '.join(old)}` first: their statements are new")
    present = [rows[claim.id] for claim in claims]
    write_whole(ROWS, dumps(present))
    write_whole(TABLE, replaced(TABLE.read_text(encoding="utf-8"), present))


if __name__ == "__main__":
    update(sys.argv[1:])
