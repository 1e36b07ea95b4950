"""The floors of pyproject.toml: each has one, and the names that the sources use exist.

Whether the floors are true is seen by running the tests at them; CONTRIBUTING.md has the command.
There the last tests also reach the lines that no other test runs.
"""

import ast
import importlib.metadata
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from lowest_versions import PROJECT, floor, requirements

ROOT = Path(__file__).parents[2]
TABLE = tomllib.loads(PROJECT.read_text())["project"]
EXTRAS = TABLE["optional-dependencies"]
LIBRARIES = {"jax", "matplotlib", "numpy", "scipy", "sympy", "xarray"}


def test_the_pins_cover_every_requirement():
    listed = {Requirement(line).name for line in sum(EXTRAS.values(), TABLE["dependencies"])}
    command = [sys.executable, ROOT / "tests" / "lowest_versions.py"]
    every = subprocess.run([*command, *EXTRAS], capture_output=True, text=True, check=True)
    pins = [Requirement(line) for line in every.stdout.splitlines()]
    assert {pin.name for pin in pins} == listed - {"penchant"}
    assert all(str(pin.specifier).startswith("==") for pin in pins)
    default = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "cvxpy==" in default.stdout  # an extra that dev names
    assert set(default.stdout.splitlines()) < set(every.stdout.splitlines())


def test_every_pin_satisfies_its_requirement_and_no_floor_is_above_what_is_installed():
    for line in requirements(EXTRAS):
        name, lowest = floor(line)
        requirement = Requirement(line)
        assert requirement.name == Requirement(name).name
        assert lowest in requirement.specifier, line
        try:
            installed = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            continue  # an extra that is not installed here
        assert Version(lowest) <= Version(installed), line


@pytest.mark.parametrize("line", ["numpy", "numpy<3", "numpy==2.0", "numpy>2.0"])
def test_a_requirement_without_a_lowest_version_is_refused(line):
    with pytest.raises(ValueError, match=re.escape(f"not {line!r}; give it a lowest version")):
        floor(line)


def test_the_conda_recipe_asks_for_the_same_versions():
    """Under the names of conda-forge, of which one differs; nobody has built the recipe yet."""
    recipe = (ROOT / "conda" / "meta.yaml").read_text()
    assert f'set version = "{TABLE["version"]}"' in recipe
    run = recipe.partition("  run:\n")[2].partition("\n\n")[0].splitlines()
    python, *asked = [line.removeprefix("    - ").replace(" ", "") for line in run]
    assert python == f"python{TABLE['requires-python']}"
    assert [Requirement(line.replace("matplotlib-base", "matplotlib")) for line in asked] == [
        Requirement(line) for line in TABLE["dependencies"]
    ]


def test_contributing_has_the_command():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    assert "pip install -q $(python3 tests/lowest_versions.py) -e . && .lowest/bin/pytest" in text


def imported(node):
    """The short names that an import binds, each with its full name."""
    if isinstance(node, ast.Import):
        for one in node.names:
            top = one.name.split(".")[0]
            yield one.asname or top, one.name if one.asname else top
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        for one in node.names:
            yield one.asname or one.name, f"{node.module}.{one.name}"


def names_used(tree):
    """Dotted names that a module takes from the libraries, as `numpy.linalg.norm`."""
    nodes = list(ast.walk(tree))
    bound = dict(pair for node in nodes for pair in imported(node))
    bound = {short: full for short, full in bound.items() if full.split(".")[0] in LIBRARIES}
    return {full for node in nodes if (full := full_name(node, bound))} | set(bound.values())


def full_name(node, bound):
    """The dotted name that `a.b.c` stands for, if `a` is one that an import has bound."""
    if isinstance(node, ast.Name):
        return bound.get(node.id)
    before = isinstance(node, ast.Attribute) and full_name(node.value, bound)
    return f"{before}.{node.attr}" if before else None


def exists(name):
    """Whether a dotted name is a module, or what a module holds."""
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


def test_every_name_that_the_sources_take_from_a_library_exists():
    trees = [ast.parse(file.read_text()) for file in (ROOT / "src").rglob("*.py")]
    used = set().union(*map(names_used, trees))
    assert len(used) > 300  # 441 when this was written
    assert sorted(name for name in used if not exists(name)) == []


def test_a_name_of_another_version_is_noticed():
    code = "import numpy as np\nfrom scipy import linalg\nnp.trapz_new(linalg.norm(x).y)"
    used = names_used(ast.parse(code))
    assert used == {"numpy", "numpy.trapz_new", "scipy.linalg", "scipy.linalg.norm"}
    assert [name for name in sorted(used) if not exists(name)] == ["numpy.trapz_new"]
