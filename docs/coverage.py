"""Generate docs/papers.md and docs/coverage.md from the record: `python docs/coverage.py`.

The record (src/penchant_papers/*/record) is written by `penchant verify --record`; of every claim
the largest size on record is shown. papers.md goes from claim to claim; coverage.md goes through
what the sources print, as the file statements.toml of each paper lists it.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from penchant.lab import Recorded, all_claims, paper_of, papers
from penchant.lab.evidence.evidence import STATUSES
from penchant.lab.evidence.verdict import MEANINGS, shown
from penchant.lab.record import recorded
from penchant.lab.writing import write_text
from penchant.mathematics import FORMULA

TABLE = Path(__file__).resolve().parent / "papers.md"
PRINTED = TABLE.with_name("coverage.md")
BEGIN, END = "<!-- coverage: begin -->", "<!-- coverage: end -->"
HEAD = ("id", "statement", "status", "scope", "other seeds", "decisive check", "size and run")
PRINTED_HEAD = ("place", "what is printed", "verdict", "experiments", "scope")
COVERS = {"full": "full", "part": "in part", "none": "none"}  # as in the files, and on the page


class Statement(NamedTuple):
    """A row of statements.toml: what is printed at a place of a source, and the claims on it."""

    place: str
    printed: str
    claims: list[str]
    covers: str  # a key of COVERS
    why: str = ""  # what is missing, if it is not covered in full


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
    return f"{_words(records)}\n\n{_table(HEAD, map(_cells, records))}"


def _table(head: tuple[str, ...], cells: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


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


# --- what is printed ------------------------------------------------------------------------


def statements() -> dict[str, list[Statement]]:
    """What every source prints, in its order, by the short name of the source."""
    return {paper.short: _listed(paper.printed) for paper in papers() if paper.printed.is_file()}


def _listed(file: Path) -> list[Statement]:
    return [Statement(**row) for row in tomllib.loads(file.read_text(encoding="utf-8"))["row"]]


def page(printed: Mapping[str, Sequence[Statement]], records: Sequence[Recorded]) -> str:
    """The page of all printed statements, each with what is on record of its claims."""
    known = {record.id: record for record in records}
    tables = (
        f"## {source}\n\n{_table(PRINTED_HEAD, (_row(row, known) for row in own))}"
        for source, own in printed.items()
    )
    return "\n\n".join([_opening(printed, known), *tables]) + "\n"


def _opening(printed: Mapping[str, Sequence[Statement]], known: Mapping[str, Recorded]) -> str:
    every = [row for own in printed.values() for row in own]
    full = [row for row in every if row.covers == "full"]
    open_ = sum(any(known[id].status == "inconclusive" for id in row.claims) for row in full)
    judged = {id for row in every for id in row.claims}
    ours = [id for id in known if paper_of(id).short in printed and id not in judged]
    counts = [_counts(source, own) for source, own in (*printed.items(), ("all", every))]
    return f"""# What the sources print

Statements, equations, remarks, captions and settings of the four sources, in their order and in our
own short words, with the experiments that judge them. **{len(full)} of {len(every)} have a verdict
that says what is printed**, or that it is wrong as printed; of these {open_} rest on a claim that
the record calls inconclusive. The verdict of a row that is covered in part, or not at all, says
what is missing.

{_table(("source", "printed", *COVERS.values()), counts)}

Status and scope are those on record; the scope says what is smaller than in the source, and
[Papers](papers.md) shows every claim with its decisive check. The claims {" and ".join(ours)} are
ours and judge no printed line. This page is generated by `python docs/coverage.py` from the files
`src/penchant_papers/*/statements.toml` and the record."""


def _counts(source: str, own: Sequence[Statement]) -> tuple[str, ...]:
    counts = Counter(row.covers for row in own)
    return (source, str(len(own)), *(str(counts[covers]) for covers in COVERS))


def _row(row: Statement, known: Mapping[str, Recorded]) -> tuple[str, ...]:
    verdict = f"**{COVERS[row.covers]}**: {escaped(row.why)}" if row.why else COVERS[row.covers]
    statuses = _grouped({id: str(known[id].status) for id in row.claims})
    scopes = _grouped({id: known[id].verdict().scope for id in row.claims})
    status = _told(statuses)
    scope = _told(scopes) if len(scopes) > 1 else "".join(scopes)
    return (
        *(escaped(row.place), escaped(row.printed), verdict),
        *(escaped(status or "—"), escaped(scope or "—")),
    )


def _grouped(texts: Mapping[str, str]) -> dict[str, list[str]]:
    """The ids by what is said of them, so that what several share is said once."""
    return {text: [id for id in texts if texts[id] == text] for text in texts.values()}


def _told(groups: Mapping[str, Sequence[str]]) -> str:
    return "; ".join(f"{', '.join(ids)}: {text}" for text, ids in groups.items())


if __name__ == "__main__":
    records = rows()
    write_text(TABLE, replaced(TABLE.read_text(encoding="utf-8"), records))
    write_text(PRINTED, page(statements(), records))
