"""Every method on every problem with every model: it trains for a moment, or one sentence says why.

The page docs/combinations.md shows the table; `python docs/combinations.py` makes it again.
"""

import re
import runpy
from pathlib import Path

import pytest

PLACE = Path(__file__).parents[2] / "docs"
MADE = runpy.run_path(str(PLACE / "combinations.py"))
TRIPLES = list(MADE["walk"]())
METHODS, PROBLEMS = list(MADE["METHODS"]), list(MADE["PROBLEMS"])


def table() -> dict[tuple[str, str, str], str | None]:
    """What the page says of every triple: None where it trains, else the sentence."""
    text = (PLACE / "combinations.md").read_text(encoding="utf-8")
    notes = dict(re.findall(r"^(\d+)\. (.*)$", text, re.M))
    found: dict[tuple[str, str, str], str | None] = {}
    for part in re.split(r"^## ", text, flags=re.M)[1:]:
        problem, _, rest = part.partition("\n")
        for model, cells in re.findall(r"^\| (.*?) \| (.*) \|$", rest, re.M)[1:]:
            for method, cell in zip(METHODS, cells.split(" | "), strict=True):
                found[model, problem, method] = None if cell == "·" else notes[cell]
    return found


def spread(triples: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """All that are refused, and of those that train one method for every model and problem."""
    known, chosen, seen = table(), [], set()
    for k, (model, problem, method) in enumerate(triples):
        trains = known.get((model, problem, method)) is None
        if trains and ((model, problem) in seen or k % 3):
            continue
        if trains:
            seen.add((model, problem))
        chosen.append((model, problem, method))
    return chosen


def agrees(triple: tuple[str, str, str]) -> None:
    refusal = MADE["tried"](*triple)
    assert MADE["shown_refusal"](refusal) == table()[triple]
    if refusal is not None:
        assert len(refusal) < 400
        assert "\n" not in refusal


def test_the_page_lists_every_triple() -> None:
    assert set(table()) == set(TRIPLES)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_sample_of_the_triples_does_what_the_page_says(problem: str) -> None:
    for triple in spread([triple for triple in TRIPLES if triple[1] == problem]):
        agrees(triple)


@pytest.mark.slow
@pytest.mark.parametrize("problem", PROBLEMS)
def test_every_triple_does_what_the_page_says(problem: str) -> None:
    for triple in TRIPLES:
        if triple[1] == problem:
            agrees(triple)
