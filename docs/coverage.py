"""Generate the table of docs/papers.md: `python docs/coverage.py [REPORT ...]`.

A REPORT is a folder that `tacit verify` wrote, or its verdicts.json; its rows replace those of
docs/coverage.json, from which the table is made. Without a report the table is made again.
"""

import sys
from pathlib import Path

from tacit.papers.registry import library
from tacit.report.coverage import dumps, loads, replaced, row_of
from tacit.report.write import read_verdicts, write_whole

ROOT = Path(__file__).resolve().parent.parent
TABLE, ROWS = ROOT / "docs" / "papers.md", ROOT / "docs" / "coverage.json"


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
