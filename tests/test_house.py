"""The rules of the house: imports point one way, numerics are silent, the tools are content."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "tacit"

# a room may import rooms above it in this list, itself, and the files beside the rooms
ROOMS = [
    "regularizers",
    "problems",
    "solvers",
    "models",
    "flows",
    "measures",
    "studies",
    "claims",
    "figures",
    "watch",
    "report",
    "explore",
    "cli",
]
SILENT = [*ROOMS[: ROOMS.index("claims")], "watch"]
EDGE_LIBRARIES = {"typer", "rich", "matplotlib", "bokeh"}


def imports(file):
    """(module, at module level?) of every import of a file."""
    tree = ast.parse(file.read_text())
    top = set(ast.walk(ast.Module([n for n in tree.body if not isinstance(n, ast.FunctionDef
              | ast.ClassDef)], [])))  # fmt: skip
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node in top) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, node in top


def files(*rooms):
    return [file for room in rooms for file in sorted((SOURCE / room).rglob("*.py"))]


def room_of(module):
    parts = module.split(".")
    return parts[1] if parts[0] == "tacit" and len(parts) > 1 and parts[1] in ROOMS else None


def backwards(file, room):
    return [m for m, _ in imports(file) if (r := room_of(m)) and ROOMS.index(r) > ROOMS.index(room)]


def test_imports_point_one_way():
    wrong = {str(f): b for room in ROOMS for f in files(room) if (b := backwards(f, room))}
    assert not wrong


def test_the_import_test_can_fail(tmp_path):
    file = tmp_path / "wrong.py"
    file.write_text("from tacit.cli import app\n")
    assert backwards(file, "regularizers")


def test_numerics_do_not_print_or_plot():
    for file in files(*SILENT):
        text = file.read_text()
        assert not re.search(r"^\s*print\(", text, re.M), file
        assert not {m.split(".")[0] for m, _ in imports(file)} & EDGE_LIBRARIES, file


def test_jax_and_friends_are_imported_only_when_needed():
    lazy = {"jax", "xarray", "sympy", "matplotlib", "pandas", "torch", "typer", "rich"}
    probe = f"import sys, tacit; print(sorted({lazy!r} & set(sys.modules)))"
    found = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"


def test_the_ci_calls_the_readme_s_test_command():
    script = (ROOT / ".ci" / "run").read_text().splitlines()
    command = next(line for line in script if line.startswith("python3 -m venv"))
    assert command in (ROOT / "README.md").read_text().splitlines()


@pytest.mark.parametrize(
    "tool", [["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"]]
)
def test_the_tools_are_content(tool):
    run = subprocess.run([sys.executable, "-m", *tool], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


def test_every_public_name_of_the_stub_is_there():
    import tacit

    listed = ast.parse((SOURCE / "__init__.pyi").read_text()).body
    names = next(node.value for node in listed if isinstance(node, ast.Assign))
    assert sorted(ast.literal_eval(names)) == tacit.__all__
    for name in tacit.__all__:
        assert getattr(tacit, name).__module__.startswith("tacit."), name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        tacit.nothing  # noqa: B018
    assert tacit.store.load is tacit.load


def test_importing_tacit_loads_no_room():
    probe = "import sys, tacit; print([m for m in sys.modules if m.startswith('tacit.')])"
    found = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"
