"""A control is a number that was computed or trained: a constant misses whatever the run does."""

import ast
from pathlib import Path

import pytest

import penchant_papers

FILES = sorted(Path(penchant_papers.__file__).parent.glob("*/**/*.py"))
FUNCTIONS = {"np", "math", "float", "abs", "max", "min"}


def is_constant(node):
    """Whether the expression has no name but those of functions and of constants of the file."""
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    return all(name in FUNCTIONS or name.isupper() for name in names)


def constants(text):
    """The measured values of controls in a source that no run has measured."""
    given = []
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        if getattr(node.func, "attr", "") == "control":
            given += node.args[:1]
        tables = [word.value for word in node.keywords if word.arg == "controls"]
        given += [v for t in tables if isinstance(t, ast.Dict) for v in t.values]
    return [ast.unparse(node) for node in given if is_constant(node)]


@pytest.mark.parametrize("wrong", ["1.0", "np.log(1.01)", "-math.log(LIMIT)"])
def test_a_constant_is_found(wrong):
    for text in (f"law.control({wrong})", f'Evidence("", controls={{"theory": {wrong}}})'):
        assert constants(text) == [ast.unparse(ast.parse(wrong, mode="eval"))]
    assert not constants("law.control(predicted=2.0); law.control(other.max())")


def test_no_control_is_a_constant():
    wrong = {file.name: constants(file.read_text()) for file in FILES}
    assert not {name: given for name, given in wrong.items() if given}
