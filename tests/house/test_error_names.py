"""What an error text recommends can be had: names in it that look like code are public."""

import ast
import re
from pathlib import Path

import tacit

SOURCE = Path(tacit.__file__).parent
# two capitals as in DiagonalNet, or a call as in Steps(100)
CODE = re.compile(r"\b([A-Z][a-z0-9]+[A-Z]\w*)\b|\b([A-Z]\w+)\(")
OTHERS = {"PyTorch", "NumPy", "SciPy", "TensorBoard", "NaN"}  # names of other people's things


def texts(tree):
    """(line, text) of everything that is raised, or is the sentence of an Outcome."""
    for node in ast.walk(tree):
        called = node.exc if isinstance(node, ast.Raise) else node
        is_outcome = isinstance(called, ast.Call) and getattr(called.func, "id", "") == "Outcome"
        if called is not None and (isinstance(node, ast.Raise) or is_outcome):
            for part in ast.walk(called):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.lineno, part.value


def named(text):
    """Names that look like code, without the one that complains, as in 'Name.method: must be'."""
    told = re.sub(r"^[A-Z]\w+(\.\w+)?: ", "", text)
    return {one or other for one, other in CODE.findall(told)} - OTHERS


def test_error_texts_recommend_public_names_only():
    hidden = []
    for file in sorted(SOURCE.rglob("*.py")):
        for line, text in texts(ast.parse(file.read_text())):
            hidden += [f"{file.name}:{line} {name}" for name in named(text) - set(tacit.__all__)]
    assert not hidden, "\n".join(hidden)


def test_the_search_can_fail():
    source = 'raise ValueError(f"{who}: must be TokenPairs, got {x}; give Steps(3) or a Model")'
    found = [name for _, text in texts(ast.parse(source)) for name in named(text)]
    assert sorted(found) == ["Steps", "TokenPairs"]
    sentence = 'Outcome(Kind.STALLED, "use ParameterFlow")'
    assert [named(text) for _, text in texts(ast.parse(sentence))] == [{"ParameterFlow"}]
