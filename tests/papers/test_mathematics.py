"""Every formula of the papers, wherever it stands in them, can be drawn, printed and read."""

import functools
import json
import re
import tomllib
from html import unescape
from pathlib import Path

import pytest
from matplotlib.mathtext import MathTextParser

import penchant_papers
from formula_font import covered
from penchant.lab import all_claims
from penchant.mathematics import FORMULA, mathml
from penchant.plotting import in_terminal

HOME = Path(penchant_papers.__file__).parent
RECORDS = sorted(HOME.glob("*/record/*.json"))
PRINTED = sorted(HOME.glob("*/statements.toml"))
FLOAT = "$float"  # how a record writes the name of a number that JSON does not have


def texts_in(value):
    """Every text within nested lists and tables, names too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, entry in value.items():
            yield from (*texts_in(name), *texts_in(entry))
    elif isinstance(value, list | tuple):
        for entry in value:
            yield from texts_in(entry)


def told_by(experiment):
    """What a claim says of itself and of its studies, at every size."""
    sizes = [size for study in experiment.studies for size in (study.quick, *study.others.values())]
    shown = [(size.get("title", ""), dict(size.get("labels", {}))) for size in sizes]
    own = (experiment.statement, experiment.place, experiment.title, experiment.ours)
    return texts_in([*own, dict(experiment.scope), shown])


def assert_shown(text):
    """No dollar is left over, and every formula is drawn, written in letters, and MathML."""
    parts = FORMULA.split(text)
    assert "$" not in "".join(parts[::2]), text
    for formula in parts[1::2]:
        assert_formula_shown(formula)


@functools.cache  # a record repeats the formulas of its checks for every size and finding
def assert_formula_shown(formula):
    MathTextParser("path").parse(f"${formula}$")
    assert "\\" not in mathml(formula), formula  # a command that is not known stays as it is
    assert set(unescape(re.sub("<[^>]*>", "", mathml(formula)))) <= covered(), formula
    assert not set("\\{}$") & set(in_terminal(f"${formula}$")), formula


@pytest.mark.parametrize("id", all_claims().ids)
def test_formulas_of_a_claim(id):
    for text in told_by(all_claims()[id]):
        assert_shown(text)


@pytest.mark.parametrize("file", RECORDS, ids=lambda file: file.stem)
def test_formulas_on_record(file):
    for text in texts_in(json.loads(file.read_text(encoding="utf-8"))):
        if text != FLOAT:
            assert_shown(text)


@pytest.mark.parametrize("file", PRINTED, ids=lambda file: file.parent.name)
def test_formulas_of_what_is_printed(file):
    for text in texts_in(tomllib.loads(file.read_text(encoding="utf-8"))):
        assert_shown(text)


def test_a_wrong_formula_would_be_found():
    for wrong in ("$x^2^3$", r"$\unknown x$", r"$\frac{1}{$", "it costs 5 $", r"$\le(x$"):
        with pytest.raises((ValueError, AssertionError)):
            assert_shown(wrong)
