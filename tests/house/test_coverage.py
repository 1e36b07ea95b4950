"""The table of what is covered: generated, complete, in the order of the sources."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import little_papers
from penchant.arguments import nearest
from penchant.lab import Recorded, all_claims, one_of, paper_of, papers
from penchant.lab.evidence.evidence import STATUSES
from penchant.lab.evidence.verdict import MEANINGS
from penchant.lab.reading import presets
from penchant.lab.verification import gather_verdicts

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "docs" / "coverage.py"))
coverage, escaped, replaced = (SCRIPT[name] for name in ("coverage", "escaped", "replaced"))
statements, page = SCRIPT["statements"], SCRIPT["page"]
PRINTED = {"W": 133, "M": 81, "L": 20, "N": 55}  # rows of each source, 289 in all
FULL = 284  # raise it when another row has a verdict that says what is printed; never lower it
TABLE = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def records():
    return SCRIPT["rows"]()


def cells(line):
    """The cells of a line of a Markdown table, as they are written."""
    return [part.strip() for part in re.split(r"(?<!\\)\|", line.strip())[1:-1]]


def lines():
    part = TABLE.split("<!-- coverage: begin -->")[1].split("<!-- coverage: end -->")[0]
    return [line for line in part.splitlines() if line.startswith("|")]


def table():
    rows = [cells(line) for line in lines()]
    assert tuple(rows[0]) == SCRIPT["HEAD"]
    return rows[2:]


def test_the_table_is_what_the_record_says(records):
    assert replaced(TABLE, records) == TABLE, "run python docs/coverage.py, do not edit the table"


def test_the_rows_are_the_claims_with_their_statements_in_the_order_of_the_sources():
    claims = all_claims().experiments()
    assert [row[:2] for row in table()] == [
        [claim.id, escaped(claim.statement)] for claim in claims
    ]
    order = dict.fromkeys(row[0].split("-")[0] for row in table())
    assert list(order) == ["W", "M", "L", "N", "beyond", "watch"]


def test_every_row_has_a_scope_a_survival_and_the_size_and_date_of_its_run():
    for row in table():
        assert row[3], row
        assert re.fullmatch(r"—|\d+ of \d+", row[4]), row
        failed = row[2] in ("fails", "inconclusive")
        assert re.search(r": .*\d.* [≤≥] ", row[5]) or failed, row
        assert re.match(r"(quick|printed), \d{4}-\d\d-\d\d: .", row[6]), row


def test_the_words_above_the_table_explain_every_status_in_it():
    words = TABLE.split("<!-- coverage: begin -->")[1].split("\n\n| id")[0]
    seen = [row[2] for row in table()]
    for status in STATUSES:
        line = f"*{status}* ({seen.count(status)}): {MEANINGS[status]}"
        assert (line in words) == (status in seen), status


def test_a_number_or_a_status_edited_by_hand_is_noticed(records):
    text = coverage(records)
    for line in lines()[2:]:
        status, check = (cells(line)[n] for n in (2, 5))
        digit = re.search(r"\d", check)
        other = check[: digit.start()] + str(9 - int(digit[0])) + check[digit.end() :]
        better = "fails" if status == "holds" else "holds"
        for edited in (line.replace(check, other), line.replace(f"| {status} |", f"| {better} |")):
            assert edited not in text


@pytest.mark.filterwarnings("default")
def test_rows_say_what_the_verdicts_say():
    verdicts = gather_verdicts(little_papers.library.experiments(), jobs=1)
    text = coverage([Recorded(v.id, v.statement).joined(v) for v in verdicts])
    assert "5 claims" in text
    rows = {line[2:].split(" ")[0]: cells(line) for line in text.splitlines() if line[:2] == "| "}
    assert rows["A-SUM"][2:6] == [
        "holds",
        "as printed",
        "—",
        "distance to pi^2/6: 5e-05 ≤ 0.0001",
    ]
    assert rows["A-SUM"][6].endswith(": partial sums of 20000 terms in float64")
    assert rows["B-FALSE"][1] == r"every \<odd\> number & its square are prime"
    assert rows["B-STOP"][5] == "—"


def test_a_claim_that_is_not_on_record_is_named(monkeypatch):
    monkeypatch.setitem(SCRIPT["rows"].__globals__, "all_claims", lambda: little_papers.library)
    with pytest.raises(SystemExit, match="run `penchant verify --record A-MEAN A-SUM B-FALSE"):
        SCRIPT["rows"]()
    with pytest.raises(ValueError, match="must hold <!-- coverage: begin -->"):
        replaced("no markers", [])


# --- what is printed -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def printed():
    """Every row of the four sources."""
    return [row for own in statements().values() for row in own]


def test_the_page_of_what_is_printed_is_what_the_files_and_the_record_say(records):
    text = (ROOT / "docs" / "coverage.md").read_text(encoding="utf-8")
    assert page(statements(), records) == text, "run python docs/coverage.py, do not edit the page"


def test_the_rows_of_every_source_are_counted():
    shorts = {paper.short: paper.letters for paper in papers()}
    assert {shorts[name]: len(own) for name, own in statements().items()} == PRINTED
    for name, own in statements().items():
        assert len({(row.place, row.printed) for row in own}) == len(own), name


def test_verdicts_that_say_what_is_printed_do_not_become_fewer(printed):
    assert sum(row.covers == "full" for row in printed) >= FULL


def test_a_row_has_claims_if_it_is_covered_and_a_reason_if_not_in_full(printed):
    for row in printed:
        assert row.covers in SCRIPT["COVERS"], row
        assert bool(row.claims) == (row.covers != "none"), row
        assert bool(row.why) == (row.covers != "full"), row
        assert row.place, row
        assert row.printed, row
        assert len({*row.claims}) == len(row.claims), row


def test_a_row_names_claims_that_exist_and_every_claim_but_ours_has_a_row(printed):
    named = {id for row in printed for id in row.claims}
    assert named <= {*all_claims().ids}
    own = [claim for claim in all_claims().experiments() if claim.id.split("-")[0] in PRINTED]
    without = {claim.id for claim in own if claim.id not in named}
    assert without == {claim.id for claim in own if claim.place.startswith("ours")}


def test_a_row_shows_what_is_on_record_of_its_claims(records):
    known = {record.id: record for record in records}
    Statement, row = SCRIPT["Statement"], SCRIPT["_row"]
    scopes = {id: escaped(record.verdict().scope) for id, record in known.items()}
    smaller, printed = (
        next(id for id, scope in scopes.items() if (scope == "as printed") is whole)
        for whole in (False, True)
    )
    (*texts, status, scope) = row(Statement("section 1", "$|x|$", [smaller], "full"), known)
    assert texts == ["section 1", r"$\vert x\vert $", "full"]
    assert status == f"{smaller}: {known[smaller].status}"
    assert scope == scopes[smaller]
    texts = row(Statement("a", "b", [smaller, printed], "part", "no *sweep*"), known)
    assert texts[2] == r"**in part**: no \*sweep\*"
    assert texts[4] == f"{smaller}: {scope}; {printed}: as printed"
    none = row(Statement("a", "b", [], "none", "no run"), known)
    assert none[2:] == ("**none**: no run", "—", "—")


def test_what_claims_share_is_said_once():
    grouped = SCRIPT["_grouped"]({"A-1": "holds", "A-2": "fails", "A-3": "holds"})
    assert SCRIPT["_told"](grouped) == "A-1, A-3: holds; A-2: fails"


def test_the_counts_above_the_tables_are_those_of_the_rows(records):
    open_ = {record.id for record in records if record.status == "inconclusive"}
    ids = [*open_, "W-L7", "W-T1"]
    rows = [SCRIPT["Statement"]("a", "b", [id], "full") for id in ids]
    none = rows[0]._replace(claims=[], covers="none", why="w")
    text = page({"A": rows, "B": [none]}, records)
    assert f"**{len(ids)} of {len(ids) + 1} have a verdict" in text
    assert f"of these {len(open_)} rest on" in text
    assert f"| A | {len(ids)} | {len(ids)} | 0 | 0 |" in text
    assert f"| all | {len(ids) + 1} | {len(ids)} | 0 | 1 |" in text


# --- the sources: one order for everything that is listed ----------------------------------


def letters(ids):
    """The letters of ids in the order of their first appearance, without repetitions."""
    return list(dict.fromkeys(id.split("-")[0] for id in ids))


def test_claims_figures_and_studies_come_in_the_order_of_the_sources():
    order = ["W", "M", "L", "N"]
    assert [paper.letters for paper in papers()] == [*order, "beyond", "watch"]
    # what goes beyond the papers comes last, and the watch after it
    assert letters(all_claims().ids) == [*order, "beyond", "watch"]
    assert letters(presets()) == ["phase"]


def test_the_order_does_not_depend_on_what_was_imported_first():
    probe = (
        "import penchant_papers.notsawo2025, penchant_papers.woodworth2020.theorem_1;"
        "from penchant.lab.registry import all_claims; print(*all_claims().ids)"
    )
    found = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True)
    assert tuple(found.stdout.split()) == all_claims().ids, found.stderr


def test_every_claim_and_figure_has_a_source_that_names_its_authors():
    for id in all_claims().ids:
        paper = paper_of(id)
        assert id.startswith(f"{paper.letters}-")
        assert bool(paper.authors) != (paper.letters in ("beyond", "watch"))
    assert paper_of("phase-scale-width") is None


def test_the_page_names_the_sources_alike():
    for paper in papers():
        if paper.authors:
            assert f"**{paper.letters}** {paper.short}, *{paper.title}*" in TABLE, paper.letters


# --- the nearest names ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "known", "near"),
    [
        ("seed", ["grid", "record", "refine", "seeds", "name"], ["seeds"]),
        ("W-T", ["W-T1", "W-T10", "W-T2", "M-T1"], ["W-T1", "W-T2", "W-T10"]),
        ("scael", ["alpha", "seed", "scale"], ["scale"]),
        ("xyz", ["alpha", "beta"], []),
    ],
)
def test_the_nearest_name_comes_first(value, known, near):
    assert nearest(value, known) == near
    hint = f"did you mean {', '.join(near)}?" if near else f"known: {', '.join(known)}"
    with pytest.raises(ValueError, match=re.escape(f"unknown key '{value}'; {hint}")):
        one_of("key", value, known)
