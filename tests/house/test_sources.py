"""The sources: who wrote what, and one order for everything that is listed."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tacit.arguments import nearest, one_of
from tacit.claims.registry import Registry, ledger
from tacit.figures import registry as figures
from tacit.sources import SOURCES, in_order, source_of
from tacit.studies.reading import presets


def letters(ids):
    """The letters of ids in the order of their first appearance, without repetitions."""
    return list(dict.fromkeys(id.split("-")[0] for id in ids))


def test_claims_figures_and_studies_come_in_the_order_of_the_sources():
    order = ["W", "M", "L", "N"]
    assert [source.letter for source in SOURCES] == order
    assert letters(claim.id for claim in ledger.claims()) == order
    assert letters(figures.figures()) == order
    assert letters(presets()) == [*order, "phase"]


def test_the_order_does_not_depend_on_what_was_imported_first():
    probe = (
        "import tacit.claims.notsawo.teacher, tacit.claims.moroshko.depth;"
        "from tacit.claims.registry import ledger; print(*(c.id for c in ledger.claims()))"
    )
    found = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True)
    assert found.stdout.split() == [claim.id for claim in ledger.claims()], found.stderr
    ids = ["W-L7", "W-L13", "M-T1", "L-T1", "L-table", "N-F1", "N-F-alg", "X-1", "X-2"]
    for seed in range(5):
        mixed = random.Random(seed).sample(ids, len(ids))
        book = Registry()
        for id in mixed:
            book.claim(id, statement="s", place="p")(print)
        assert [claim.id for claim in book.claims()] == in_order(mixed) == ids


def test_every_claim_and_figure_has_a_source_that_names_its_authors():
    for id in [*(claim.id for claim in ledger.claims()), *figures.figures()]:
        assert source_of(id).letter == id[0]
    for entry in figures.figures().values():  # what figures print and the table say the same
        assert entry.source.startswith(source_of(entry.id).short), entry.id
    assert source_of("phase-scale-width") is None


def test_the_readme_names_the_sources_alike():
    text = (Path(__file__).parents[2] / "README.md").read_text()
    for source in SOURCES:
        title = source.title.split(":")[0]
        assert re.search(rf"\*\*{source.letter}\*\* {source.short}, \*{title}", text), source.letter


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
