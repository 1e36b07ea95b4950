"""Experiments draw from seeds that a study gives out, so that all of them can be shifted."""

import ast
import re
from pathlib import Path

import penchant_papers

FILES = sorted(Path(penchant_papers.__file__).parent.glob("*/**/*.py"))
GENERATORS = {"default_rng", "PRNGKey", "RandomState", "SeedSequence"}


def calls(file):
    return [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)]


def called(node):
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def place(file, node):
    return f"{file.parent.name}/{file.name}:{node.lineno}: {ast.unparse(node):.80}"


def names(node):
    """The names and texts in an expression, as in `one["seed"]`."""
    parts = [getattr(n, word, "") for n in ast.walk(node) for word in ("id", "attr", "value")]
    return [part for part in parts if isinstance(part, str)]


def test_every_generator_is_made_from_a_seed():
    wrong = [
        place(file, node)
        for file in FILES
        for node in calls(file)
        if called(node) in GENERATORS
        and not any("seed" in name for part in node.args for name in names(part))
    ]
    assert not wrong, wrong


def test_no_part_of_a_cell_has_a_seed_of_its_own():
    wrong = [
        place(file, node)
        for file in FILES
        for node in calls(file)
        for word in node.keywords
        if word.arg == "seed"
        and called(node) not in ("isel", "study_of")
        and isinstance(word.value, ast.Constant)
    ]
    assert not wrong, wrong


def test_no_seed_hides_in_a_text_or_is_picked_by_its_number():
    texts = {file: file.read_text() for file in FILES}
    hidden = re.compile(r"""["']seed \d|\.sel\([^)]*\bseed=\d|startswith\("seed"\)""")
    wrong = {str(file.name): hidden.findall(text) for file, text in texts.items()}
    assert not {name: seen for name, seen in wrong.items() if seen}
