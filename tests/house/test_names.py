"""A class name stands once, a module name once in the laboratory; a value is named by a noun."""

import ast
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"


def classes(file):
    """The classes of a module, also those within functions; a leading _ makes no other name."""
    nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
    return [node.name.lstrip("_") for node in nodes if isinstance(node, ast.ClassDef)]


def repeated(pairs):
    """Name -> its places, of the names with several."""
    places = defaultdict(list)
    for name, place in pairs:
        places[name].append(str(place))
    return {name: files for name, files in places.items() if len(files) > 1}


def assigned(text, name):
    """The lines of a module at which a local or a parameter is called `name`."""
    nodes = list(ast.walk(ast.parse(text)))
    stored = [n for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    parameters = [n for n in nodes if isinstance(n, ast.arg)]
    lines = [n.lineno for n in stored if n.id == name]
    return sorted(lines + [n.lineno for n in parameters if n.arg == name])


def test_a_class_name_stands_once():
    files = [
        file for room in ("penchant", "penchant_papers") for file in SOURCE.glob(f"{room}/**/*.py")
    ]
    twice = repeated((name, file.relative_to(SOURCE)) for file in files for name in classes(file))
    assert len(files) > 300
    assert not twice, twice


def test_a_module_name_stands_once_in_the_laboratory():
    files = [file for file in SOURCE.glob("penchant/lab/**/*.py") if file.stem != "__init__"]
    twice = repeated((file.stem, file.relative_to(SOURCE)) for file in files)
    assert not twice, twice


def test_a_repeated_name_is_noticed(tmp_path):
    file = tmp_path / "two.py"
    file.write_text("class One: ...\ndef f():\n    class _One: ...\n")
    assert repeated((name, "two.py") for name in classes(file)) == {"One": ["two.py", "two.py"]}


def test_no_value_is_called_found():
    """A noun says what a value is; that it was found, every value can say."""
    texts = {file: file.read_text(encoding="utf-8") for file in SOURCE.glob("**/*.py")}
    vague = [
        f"{file.relative_to(SOURCE)}:{line}"
        for file, text in texts.items()
        for line in assigned(text, "found")
    ]
    assert len(texts) > 300
    assert not vague, vague


def test_a_value_called_found_is_noticed():
    text = """
found = 1
def f(found, *, g=lambda found: 0):
    if (found := g()) and [0 for _, found in found]:
        for found in ():
            return object.found
def found(): ...
"""
    assert assigned(text, "found") == [2, 3, 3, 4, 4, 5]
