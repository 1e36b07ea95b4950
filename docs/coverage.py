"""Generate the table of docs/papers.md from the record: `python docs/coverage.py`.

The record (src/penchant_papers/record) is written by `penchant verify --record`; the table shows
for every claim the largest size that is on record.
"""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from penchant.lab import Recorded, all_claims
from penchant.lab.evidence.evidence import STATUSES
from penchant.lab.evidence.verdict import MEANINGS, shown
from penchant.lab.record import recorded
from penchant.lab.writing import write_text
from penchant.mathematics import FORMULA

TABLE = Path(__file__).resolve().parent / "papers.md"
BEGIN, END = "<!-- coverage: begin -->", "<!-- coverage: end -->"
HEAD = ("id", "statement", "status", "scope", "other seeds", "decisive check", "size and run")


def rows() -> list[Recorded]:
    """What is on record of every claim, in the order of the sources."""
    claims = all_claims().experiments()
    known = recorded(claim.id for claim in claims)
    missing = [claim.id for claim in claims if is_missing(known.get(claim.id), claim.statement)]
    if missing:
        raise SystemExit(f"run `penchant verify --record {' '.join(missing)}` first: not on record")
    return [known[claim.id] for claim in claims]


def is_missing(record: Recorded | None, statement: str) -> bool:
    """True if nothing is on record of a claim in these words."""
    return record is None or record.largest is None or record.statement != statement


def coverage(records: Sequence[Recorded]) -> str:
    """The text that explains the statuses, and the table below it."""
    cells = [HEAD, ("---",) * len(HEAD), *map(_cells, records)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in cells)
    return f"{_words(records)}\n\n{table}"


def _words(records: Sequence[Recorded]) -> str:
    counts = Counter(record.status for record in records)
    meanings = "; ".join(
        f"*{status}* ({counts[status]}): {MEANINGS[status]}"
        for status in STATUSES
        if counts[status]
    )
    sizes = Counter(record.largest for record in records)
    return (
        f"{len(records)} claims; `penchant verify ID` judges one here. The table shows the"
        f" record: {sizes['printed']} claims at the size that the source prints (or the nearest"
        f" that two cores can run; the scope says what is smaller), {sizes['quick']} at the quick"
        " size so far. *Other seeds* says how many shifted sets of seeds gave the same status at"
        f" the quick size. {meanings}. The report shows every other check, the controls,"
        " counterexamples and corrections. This part is generated: `penchant verify --size printed"
        " --record`, `penchant verify --shift 1000 --record`, `python docs/coverage.py`."
    )


def _cells(record: Recorded) -> tuple[str, ...]:
    verdict = record.verdict()
    check = verdict.decisive
    measured = f"{check.name}: {shown(check)}" if check else shown(None)
    when = record.verdicts[verdict.size]["date"]
    ran = f"{verdict.size}, {when}: {verdict.ran}"
    texts = (record.statement, verdict.status, verdict.scope, record.survival, measured, ran)
    return (record.id, *map(escaped, texts))


def escaped(text: str) -> str:
    """The text as Markdown on one line: words letter by letter, and formulas."""
    parts = FORMULA.split(" ".join(text.split()))
    return "".join(
        _formula(part) if k % 2 else re.sub(r"([\\`*_<>|~\[\]])", r"\\\1", part)
        for k, part in enumerate(parts)
    )


def _formula(latex: str) -> str:
    """A formula without what Markdown reads before it: the | of tables, a backslash and comma."""
    return f"${latex.replace('|', _BAR).replace(_SPACE, _TIMES)}$"


_BAR, _SPACE, _TIMES = r"\vert ", r"\,", r" \cdot "


def replaced(document: str, records: Sequence[Recorded]) -> str:
    """`document` with what stands between the two markers made from the record."""
    parts = re.split(f"({re.escape(BEGIN)}|{re.escape(END)})", document)
    if parts[1::2] != [BEGIN, END]:
        raise ValueError(f"coverage: the document must hold {BEGIN} and {END} once, in this order")
    return f"{parts[0]}{BEGIN}\n{coverage(records)}\n{END}{parts[4]}"


if __name__ == "__main__":
    write_text(TABLE, replaced(TABLE.read_text(encoding="utf-8"), rows()))
