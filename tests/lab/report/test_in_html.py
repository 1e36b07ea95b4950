"""Texts in the report: formulas as MathML, everything else escaped, strangers' texts harmless."""

import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penchant.lab.report.markup import in_html


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        (r"near $\alpha^2 k = 1$", "near α2k=1"),
        (r"$|\hat{a} - a^*|_\infty$", "|a^−a*|∞"),
        ("$w_+^2 - w_-^2$", "w+2−w−2"),
        ("below $10^{-5}$", "below 10−5"),
        (r"$\sigma_{\max}(X^T X)$", "σmax(XTX)"),
        (r"no formula, 5 $ and <b>, \$5", "no formula, 5 $ and <b>, $5"),
        ("$x^2^3$ cannot be read", "$x^2^3$ cannot be read"),
    ],
)
def test_a_formula_shows_its_symbols(text, seen):
    tree = ElementTree.fromstring(f"<p>{in_html(text)}</p>")
    assert "".join(tree.itertext()) == seen
    assert (tree.find("math") is None) == (" " in seen and "$" in seen)


def test_the_name_of_a_function_stands_apart_from_letters():
    thin = '<mspace width="0.167em" />'
    assert str(in_html(r"$N \log d$")).count(thin) == 2
    assert str(in_html(r"$\log^2 d$")).count(thin) == 1
    assert str(in_html(r"$x < 2\exp x$")).count(thin) == 2
    assert str(in_html(r"$\frac{1}{\log d}$")).count(thin) == 1
    for tight in (r"$\log(1/x)$", r"$e^{\log}$", r"$a = \log$", "$N d$"):
        assert "mspace" not in in_html(tight)


def test_powers_and_indices_stand_above_and_below():
    shown = in_html(r"$Q_\mu$ and $\alpha^2$")
    tree = ElementTree.fromstring(f"<p>{shown}</p>")
    assert tree.find(".//msub/mi").text == "Q"
    assert tree.find(".//msup/mi").text == "α"
    assert tree.find(".//msup/mn").text == "2"


@pytest.mark.parametrize(
    "inside", [r"\text{<img src=x>}", r"\href{javascript:alert(1)}{x}", r"\style{top:0}{x}", "&lt;"]
)
def test_a_formula_brings_no_element_link_or_style(inside):
    tree = ElementTree.fromstring(f"<p>{in_html(f'${inside}$')}</p>")
    assert not {"href", "style"} & {key for element in tree.iter() for key in element.attrib}
    assert all(element.tag.startswith("m") or element is tree for element in tree.iter())


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.text(alphabet="ab1_^{}|$\\ *<>&lalpha", max_size=20))
def test_texts_of_strangers_stay_well_formed(text):
    ElementTree.fromstring(f"<p>{in_html(text)}</p>")
