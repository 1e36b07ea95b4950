"""Formulas of statements as MathML: well-formed, complete, and harmless for texts of strangers."""

import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penchant.lab.report.mathml import mathematics


@pytest.mark.parametrize(
    ("plain", "seen"),
    [
        ("alpha^2 k = 1", "α2k = 1"),
        ("|a_hat - a*|_inf", "|a^−a*|∞"),
        ("w+^2 - w-^2", "w+2 - w−2"),
        ("below 1e-05", "below 10−5"),
        ("sigma_max(X^T X)", "σmax(XTX)"),
        ("no formula, 5 $ and <b>", "no formula, 5 $ and <b>"),
    ],
)
def test_a_formula_shows_its_symbols(plain, seen):
    tree = ElementTree.fromstring(f"<p>{mathematics(plain)}</p>")
    assert "".join(tree.itertext()) == seen
    assert (tree.find("math") is not None) == (plain != seen)


def test_powers_and_indices_stand_above_and_below():
    tree = ElementTree.fromstring(f"<p>{mathematics('Q_mu and alpha^2')}</p>")
    assert tree.find(".//msub/mi").text == "Q"
    assert tree.find(".//msup/mi").text == "α"
    assert tree.find(".//msup/mrow/mn").text == "2"


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.text(alphabet="ab1_^{}|$\\ *<>&lalpha", max_size=20))
def test_texts_of_strangers_stay_well_formed(text):
    ElementTree.fromstring(f"<p>{mathematics(text)}</p>")
