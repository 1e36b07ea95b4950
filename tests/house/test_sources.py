"""The sources: who wrote what, and one order for everything that is listed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tacit.arguments import nearest, one_of
from tacit.papers.reading import presets
from tacit.papers.registry import library
from tacit.sources import SOURCES, source_of


def letters(ids):
    """The letters of ids in the order of their first appearance, without repetitions."""
    return list(dict.fromkeys(id.split("-")[0] for id in ids))


def test_claims_figures_and_studies_come_in_the_order_of_the_sources():
    order = ["W", "M", "L", "N"]
    assert [source.letter for source in SOURCES] == order
    assert letters(library().ids) == order
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
        assert source_of(id).letter == id[0]
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
