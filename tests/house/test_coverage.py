"""The table of what is covered: generated, complete, in the order of the sources."""

from __future__ import annotations

import math
import re
import runpy
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import little_papers
from expected_statuses import EXPECTED
from tacit.arguments import nearest, one_of
from tacit.evidence.evidence import STATUSES, Check, Evidence, within
from tacit.evidence.verdict import MEANINGS, Verdict
from tacit.papers.reading import presets
from tacit.papers.registry import Registry, library
from tacit.papers.verify import gather
from tacit.sources import SOURCES, source_of

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "docs" / "coverage.py"))
coverage, dumps, escaped = (SCRIPT[name] for name in ("coverage", "dumps", "escaped"))
loads, replaced, row_of = (SCRIPT[name] for name in ("loads", "replaced", "row_of"))
TABLE = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
ROWS = loads((ROOT / "docs" / "coverage.json").read_text(encoding="utf-8"))


def cells(line):
    """The cells of a line of a Markdown table, unescaped."""
    parts = re.split(r"(?<!\\)\|", line.strip())[1:-1]
    return [re.sub(r"\\(.)", r"\1", part.strip()) for part in parts]


def lines():
    part = TABLE.split("<!-- coverage: begin -->")[1].split("<!-- coverage: end -->")[0]
    return [line for line in part.splitlines() if line.startswith("|")]


def table():
    rows = [cells(line) for line in lines()]
    assert rows[0] == ["id", "statement", "status", "decisive check", "size and run"]
    return rows[2:]


def test_the_table_is_what_the_last_run_gives():
    assert replaced(TABLE, ROWS) == TABLE, "run python docs/coverage.py, do not edit the table"


def test_the_rows_are_the_claims_with_their_statements_in_the_order_of_the_sources():
    claims = library().experiments()
    assert [row[:2] for row in table()] == [
        [claim.id, " ".join(claim.statement.split())] for claim in claims
    ]
    order = dict.fromkeys(row[0].split("-")[0] for row in table())
    assert list(order) == ["W", "M", "L", "N", "beyond", "watch"]


def test_the_statuses_are_those_that_the_tests_of_the_claims_expect():
    assert {row[0]: row[2] for row in table()} == EXPECTED


def test_every_number_has_the_size_of_its_run():
    for row in table():
        assert re.match(r"(quick|printed): .", row[4]), row
        assert re.search(r": .*\d.* [≤≥] ", row[3]), row


def test_the_words_above_the_table_explain_every_status_in_it():
    words = TABLE.split("<!-- coverage: begin -->")[1].split("\n\n| id")[0]
    seen = [row[2] for row in table()]
    for status in STATUSES:
        line = f"*{status}* ({seen.count(status)}): {MEANINGS[status]}"
        assert (line in words) == (status in seen), status


# --- a table that was edited ---------------------------------------------------------------


def test_a_number_or_a_status_edited_by_hand_is_noticed():
    for line in lines()[2:]:
        status, check = (escaped(cells(line)[n]) for n in (2, 3))
        digit = re.search(r"\d", check)
        other = check[: digit.start()] + str(9 - int(digit[0])) + check[digit.end() :]
        better = "fails" if status == "holds" else "holds"
        for edited in (line.replace(check, other), line.replace(f"| {status} |", f"| {better} |")):
            document = TABLE.replace(line, edited)
            assert document != TABLE
            assert replaced(document, ROWS) != document


def test_a_row_cannot_hold_against_its_own_number():
    row = ROWS[0]
    with pytest.raises(ValueError, match="cannot hold with the check 2 > 1"):
        replace(row, check=Check("c", 2.0, tolerance=1.0))
    with pytest.raises(ValueError, match="unknown status 'hold'"):
        replace(row, status="hold")
    with pytest.raises(ValueError, match="format 'tacit coverage 1' is missing"):
        loads("{}")
    with pytest.raises(ValueError, match="must hold <!-- coverage: begin -->"):
        replaced("no markers", ROWS)


# --- the generator -------------------------------------------------------------------------


@pytest.mark.filterwarnings("default")
def test_rows_survive_json_and_say_what_the_verdicts_say():
    verdicts = gather(little_papers.library.experiments(), jobs=1)
    rows = [row_of(verdict) for verdict in verdicts]
    unknown = Evidence("a run", {"c": within(math.nan, tolerance=1)}, controls={"w": 3.0})
    rows.append(row_of(Verdict("C-1", "s", "p", unknown)))
    assert str(loads(dumps(rows))) == str(rows)
    text = coverage(rows)
    assert "6 claims" in text
    assert "*inconclusive* (3)" in text
    rows = {line[2:].split(" ")[0]: cells(line) for line in text.splitlines() if line[:2] == "| "}
    assert rows["A-SUM"][2:] == [
        "holds", "distance to pi^2/6: 5e-05 ≤ 0.0001",
        "quick: partial sums of 20000 terms in float64",
    ]  # fmt: skip
    assert rows["B-FALSE"][1] == "every <odd> number & its square are prime"
    assert rows["B-STOP"][3] == "—"


def test_the_script_takes_a_report_and_refuses_what_is_missing(tmp_path, monkeypatch):
    from tacit.report import write_report

    space = SCRIPT["update"].__globals__
    readme, rows_file = tmp_path / "papers.md", tmp_path / "coverage.json"
    readme.write_text("above\n<!-- coverage: begin -->\nold\n<!-- coverage: end -->\nbelow\n")
    rows_file.write_text(dumps([]))
    for name, value in {
        "TABLE": readme,
        "ROWS": rows_file,
        "library": lambda: little_papers.library,
    }.items():
        monkeypatch.setitem(space, name, value)
    good = little_papers.library.select("A")
    write_report(gather(good, jobs=1), tmp_path / "report")
    with pytest.raises(SystemExit, match="run `tacit verify B-FALSE B-STOP B-VAGUE` first"):
        SCRIPT["update"]([str(tmp_path / "report")])
    monkeypatch.setitem(space, "library", lambda: Registry(experiments=good))
    SCRIPT["update"]([str(tmp_path / "report")])
    text = readme.read_text(encoding="utf-8")
    assert text.startswith("above\n<!-- coverage: begin -->\n2 claims;")
    assert text.endswith("<!-- coverage: end -->\nbelow\n")
    assert [row.id for row in loads(rows_file.read_text(encoding="utf-8"))] == ["A-MEAN", "A-SUM"]
    readme.write_text(text.replace("5e-05", "5e-06"), encoding="utf-8")
    SCRIPT["update"]([])
    assert readme.read_text(encoding="utf-8") == text


# --- the sources: one order for everything that is listed ----------------------------------


def letters(ids):
    """The letters of ids in the order of their first appearance, without repetitions."""
    return list(dict.fromkeys(id.split("-")[0] for id in ids))


def test_claims_figures_and_studies_come_in_the_order_of_the_sources():
    order = ["W", "M", "L", "N"]
    assert [source.letter for source in SOURCES] == order
    # what goes beyond the papers comes last, and the watch after it
    assert letters(library().ids) == [*order, "beyond", "watch"]
    assert letters(presets()) == ["phase"]


def test_the_order_does_not_depend_on_what_was_imported_first():
    probe = (
        "import tacit.papers.notsawo2025, tacit.papers.woodworth2020.theorem_1;"
        "from tacit.papers.registry import library; print(*library().ids)"
    )
    found = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True)
    assert tuple(found.stdout.split()) == library().ids, found.stderr


def test_every_claim_and_figure_has_a_source_that_names_its_authors():
    for id in library().ids:
        if id.startswith(("beyond-", "watch-")):
            assert source_of(id) is None
        else:
            assert source_of(id).letter == id[0]
    assert source_of("phase-scale-width") is None


def test_the_page_names_the_sources_alike():
    for source in SOURCES:
        assert f"**{source.letter}** {source.short}, *{source.title}*" in TABLE, source.letter


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
    with pytest.raises(ValueError, match=re.escape(f"who: unknown key '{value}'; {hint}")):
        one_of("who", "key", value, known)
