"""The rules of the house: imports point one way, numerics are silent, the tools are content."""

import ast
import functools
import graphlib
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from penchant.namespaces import NAMESPACES, _homes, public_names

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "penchant"

# a room may import rooms above it in this list, itself, and the files beside the rooms
ROOMS = [
    "regularizers",
    "problems",
    "solvers",
    "models",
    "measures",
    "training",
    "forecasts",
    "bounds",
    "sklearn",
    "lab.studies",
    "lab.evidence",
    "plotting",
    "watch",
    "lab",
    "lab.report",
    "explore",
    "cli",
]
PAPERS = "penchant_papers"
SPACES = ("penchant", *(f"penchant.{name}" for name in NAMESPACES))
SILENT = [*ROOMS[: ROOMS.index("lab.evidence")], "watch"]
EDGE_LIBRARIES = {"typer", "rich", "matplotlib", "bokeh"}


@functools.cache
def homes():
    """The module of every public name."""
    return {name: _homes(path.rpartition(".")[0])[name] for name, path in public_names().items()}


def exists(module):
    target = SOURCE.parent.joinpath(*module.split("."))
    return target.with_suffix(".py").is_file() or (target / "__init__.py").is_file()


def package_of(file):
    """The package that a relative import of `file` starts from."""
    parts = file.with_suffix("").relative_to(SOURCE.parent).parts if SOURCE in file.parents else ()
    return list(parts[:-1])


def from_names(node, file):
    """The modules of one `from ... import ...`: relative ones resolved, public names at home."""
    if node.level:
        base = package_of(file)
        base = base[: len(base) - node.level + 1]
        module = ".".join([*base, *([node.module] if node.module else [])])
    else:
        module = node.module
    for alias in node.names:
        if module in SPACES and alias.name in homes():
            yield homes()[alias.name]
        elif exists(f"{module}.{alias.name}"):
            yield f"{module}.{alias.name}"
        else:
            yield module


NAME = r"penchant(?:_papers)?(?:\.[a-z_][a-z_0-9]*)+"


def in_text(text):
    """The module that a text is the name of, alone or as `module:name`."""
    found = re.fullmatch(rf"({NAME})(?::\w+)?", text)
    return [found[1]] if found and exists(found[1]) else []


def in_table(text):
    """The modules that a TOML file names."""
    return [name for name in re.findall(rf"[\"']({NAME})(?::\w+)?[\"']", text) if exists(name)]


@functools.cache
def imports(file):
    """The modules that a file imports or names in a text, docstrings and type checking aside."""
    text = file.read_text()
    return tuple(in_table(text) if file.suffix == ".toml" else in_code(text, file))


def in_code(text, file):
    tree = ast.parse(text)
    skipped = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.unparse(block.test)
        for node in ast.walk(block)
    }
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if id(node) in skipped or id(node) in docs:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from from_names(node, file)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id == "penchant" and node.attr in homes():
                yield homes()[node.attr]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from in_text(node.value)


def files(*rooms):
    return [
        file
        for room in rooms
        for kind in ("*.py", "*.toml")
        for file in sorted(SOURCE.joinpath(*room.split(".")).rglob(kind))
        if room_of(module_of(file)) == room
    ]


def room_of(module):
    """The room of a module, the innermost one; papers are above all rooms."""
    if module.partition(".")[0] == "penchant_papers":
        return PAPERS
    parts = module.split(".")[1:] if module.startswith("penchant.") else []
    names = (".".join(parts[:n]) for n in range(len(parts), 0, -1))
    return next((name for name in names if name in ROOMS), None)


def height(room):
    return len(ROOMS) if room == PAPERS else ROOMS.index(room)


def backwards(file, room):
    return [m for m in imports(file) if (r := room_of(m)) and height(r) > height(room)]


def test_imports_point_one_way():
    wrong = {str(f): b for room in ROOMS for f in files(room) if (b := backwards(f, room))}
    assert not wrong


@pytest.mark.parametrize(
    "text",
    [
        "from penchant.cli import run",
        "from penchant import verify",
        "import penchant.cli",
        "def f():\n    import penchant\n    penchant.verify('W')",
        "HOME = 'penchant.cli.run:main'",
    ],
)
def test_the_import_test_can_fail(tmp_path, text):
    file = tmp_path / "wrong.py"
    file.write_text(f"{text}\n")
    assert backwards(file, "regularizers")


def test_a_table_and_a_relative_import_count(tmp_path):
    table = tmp_path / "wrong.toml"
    table.write_text('function = "penchant.cli.run:main"\n')
    assert backwards(table, "regularizers")
    node = ast.parse("from ..cli import run").body[0]
    assert list(from_names(node, SOURCE / "regularizers" / "norms.py")) == ["penchant.cli.run"]


def cycle(graph):
    """The modules of one cycle, or None."""
    try:
        tuple(graphlib.TopologicalSorter(graph).static_order())
    except graphlib.CycleError as error:
        return error.args[1]
    return None


def module_of(file):
    parts = file.with_suffix("").relative_to(SOURCE.parent).parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.parametrize("room", ROOMS)
def test_no_module_imports_itself_through_another(room):
    python = [file for file in files(room) if file.suffix == ".py"]
    graph = {
        module_of(file): {m for m in imports(file) if room_of(m) == room and m != module_of(file)}
        for file in python
    }
    assert cycle(graph) is None


def test_the_cycle_test_can_fail():
    assert cycle({"a": {"b"}, "b": {"a"}})


def test_numerics_do_not_print_or_plot():
    for file in files(*SILENT):
        text = file.read_text()
        assert not re.search(r"^\s*print\(", text, re.M), file
        assert not {m.split(".")[0] for m in imports(file)} & EDGE_LIBRARIES, file


def test_importing_penchant_loads_no_room_and_no_large_library():
    lazy = {"jax", "xarray", "sympy", "matplotlib", "pandas", "torch", "typer", "rich"}
    probe = (
        "import sys, penchant; "
        f"print([m for m in sys.modules if m in {lazy!r} or m.startswith('penchant.')])"
    )
    found = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "['penchant.namespaces']"


def test_the_ci_calls_the_readme_s_test_command():
    script = (ROOT / ".ci" / "run").read_text().splitlines()
    command = next(line for line in script if line.startswith("python3 -m venv"))
    assert command in (ROOT / "README.md").read_text().splitlines()


def test_ci_and_pre_commit_run_the_linter_and_the_type_checker():
    ci, hooks = (ROOT / ".ci" / "run").read_text(), (ROOT / ".pre-commit-config.yaml").read_text()
    for command in ("ruff check", "ruff format", "mypy"):
        assert f".venv/bin/{command}" in ci
        assert f"entry: {command}" in hooks


def test_every_public_name_of_the_stubs_is_there():
    for module in ("penchant", *(f"penchant.{name}" for name in NAMESPACES)):
        space = importlib.import_module(module)
        stub = Path(space.__file__).with_suffix(".pyi")
        listed = ast.parse(stub.read_text()).body
        names = next(node.value for node in listed if isinstance(node, ast.Assign))
        assert sorted(ast.literal_eval(names)) == sorted(space.__all__), module
        for name in space.__all__:
            getattr(space, name)
        with pytest.raises(AttributeError, match="no attribute 'nothing'"):
            space.nothing  # noqa: B018


def test_papers_import_public_names_alone():
    wrong = [
        f"{file.name}: {line}"
        for file in sorted((ROOT / "src" / PAPERS).rglob("*.py"))
        for line in re.findall(
            r"^ *from penchant\.\w+\.[\w.]+ import .*|^ *import penchant\..*",
            file.read_text(),
            re.M,
        )
    ]
    assert not wrong, wrong


# ids of claims, and papers called by their letters; W, M, L and N are also matrices and counts
CLAIM = re.compile(r"(?<![\w-])[WMLN]-(?:[A-Z]\w*\d|T\d|L\d|F\d|[a-z]+\b)")
PLACES = r"\b(?:eq|section|appendix|theorem|lemma|figure|footnote|definition|condition)"
PARTS = r"\b(?:source|assumption|notation|trick|task|net|MLP|panel)"
LETTER = re.compile(
    r"(?<![\w)'])\([WMLN]\)"
    rf"|\b[WMLN],? (?i:{PLACES})"
    rf"|(?i:{PLACES}|{PARTS})s?( [\d.()a-z]+)? of [WMLN]\b"
    r"|(?i:source) [WMLN]\b"
    r"|\b[WMLN]'s\b"
    r"|\b[WMLN] (?:itself |theory )?(?:prints|gives|expects|calls|puts|predicts|says|shows)\b"
    r"|\b(?:as in|see) [WMLN]\b"
    r'|"""[WMLN], \w+:'
)


def test_the_library_names_no_claim():
    wrong = [
        f"{file.relative_to(SOURCE)}: {match[0]}"
        for file in sorted(SOURCE.rglob("*.py*"))
        if file.suffix in (".py", ".pyi")
        for pattern in (CLAIM, LETTER)
        for match in pattern.finditer(file.read_text())
    ]
    assert not wrong, wrong


@pytest.mark.parametrize(
    "text",
    [
        "the MLP of N on pairs",
        "with ReLUs (L).",
        "W eq. (20) for depth 2",
        "M appendix H.5",
        "data of W, Figure 6",
        "Figure 8(a) of M",
        "source N, with",
        "N's dense teacher",
        "L expects its proofs",
        "chosen as in W.",
        '"""L, grokking: x uniform',
    ],
)
def test_a_paper_called_by_its_letter_is_seen(text):
    assert LETTER.search(text)


@pytest.mark.parametrize(
    "text",
    [
        "entries of M = part(W W^T)",
        "the rows of W, from N(0, 1)",
        "model.lift(M), np.zeros(N)",
        "R(c M) = c^degree R'(M)",
        "a mean of B out of N, over those of one",
    ],
)
def test_a_matrix_is_not_taken_for_a_paper(text):
    assert not LETTER.search(text)


def test_the_sections_of_the_theory_that_are_named_exist():
    theory = "".join(page.read_text() for page in (ROOT / "docs" / "theory").glob("*.md"))
    headings = re.findall(r"^## (\d+)\. ", theory, re.M)
    assert sorted(map(int, headings)) == [*range(1, len(headings) + 1)]  # none is there twice
    named = [
        (file.relative_to(SOURCE), number)
        for file in sorted(SOURCE.rglob("*.py"))
        for numbers in re.findall(
            r"docs/theory,?\s+sections?\s+(\d+(?:\s+and\s+\d+)?)", file.read_text()
        )
        for number in re.findall(r"\d+", numbers)
    ]
    assert named
    assert not [pair for pair in named if pair[1] not in headings]
