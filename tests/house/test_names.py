"""A class name stands once in the tree, and a module name once in the laboratory."""

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
    return {name: found for name, found in places.items() if len(found) > 1}


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
