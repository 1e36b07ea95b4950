"""The version of a study's code: it changes with what a cell calls, and with nothing else."""

import gc
import importlib
import sys

import pytest

import tacit
from tacit.papers.reading import read_study
from tacit.studies.code import version as code
from tacit.studies.code.definitions import reached
from tacit.studies.code.version import code_of, roots_of
from tacit.studies.run import run_study
from tacit.studies.study import Study

CELL = "import helper\ndef cell(a):\n    return {'value': helper.f(a)}\n"
FILES = {
    "cells.py": "from package.inner import g\nimport helper\n"
    "def cell(a):\n    return {'value': g(helper.f(a))}\n"
    "def caption():\n    return 'a picture'\n",
    "helper.py": "SCALE = 2\ndef f(a):\n    return SCALE * a\ndef unused(a):\n    return a\n",
    "package/__init__.py": "",
    "package/inner/__init__.py": "from .deep import g\n",
    "package/inner/deep.py": "def g(a):\n    from . import table\n    return a + table.SHIFT\n",
    "package/inner/table.py": "SHIFT = 1\n",
    "bare/cells.py": "from bare import helper\ndef cell(a):\n    return {'b': helper.f(a)}\n",
    "bare/helper.py": "def f(a):\n    return 2 * a\n",  # in a folder without __init__.py
}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder with the user's modules; each test imports them anew."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [
        m for m in sys.modules if m.split(".")[0] in ("cells", "helper", "package", "bare")
    ]:
        del sys.modules[name]
    code._SEEN.clear()


def study(**more):
    return Study(name="s", function="cells:cell", grid={"a": [1.0]}, **more)


def edited(project, file, old, new, study=study):
    """The version before and after an edit, as two processes would see it."""
    before = code_of(study()).version
    text = (project / file).read_text()
    assert old in text
    (project / file).write_text(text.replace(old, new))
    code._SEEN.clear()
    return before, code_of(study()).version


@pytest.mark.parametrize(
    ("file", "old", "new", "same"),
    [
        ("cells.py", "helper.f(a)", "helper.f(a) + 0", False),
        ("helper.py", "SCALE * a", "SCALE + a", False),
        ("helper.py", "SCALE = 2", "SCALE = 3", False),
        ("package/inner/deep.py", "a + ", "a - ", False),
        ("package/inner/table.py", "1", "2", False),
        ("package/__init__.py", "", "import helper\nhelper.SCALE = 5\n", False),
        ("cells.py", "a picture", "another picture", True),
        ("cells.py", "    return", "    # a comment\n    return", True),
        ("helper.py", "def f(a):\n", "def f(a):\n    'twice'\n", True),
        ("helper.py", "    return a\n", "    return -a\n", True),
    ],
)
def test_what_a_cell_calls_changes_its_version_and_nothing_else_does(project, file, old, new, same):
    before, after = edited(project, file, old, new)
    assert (before == after) is same


def test_a_folder_without_init_is_the_user_s_too(project):
    def bare():
        return Study(name="s", function="bare.cells:cell", grid={"a": [1.0]})

    before, after = edited(project, "bare/helper.py", "2 * a", "3 * a", bare)
    assert before != after


def test_a_name_made_at_run_time_counts_with_its_folder(project):
    (project / "cells.py").write_text(
        "import importlib\ndef cell(a):\n    "
        "return {'value': importlib.import_module('hel' + 'per').f(a)}\n"
    )
    before, after = edited(project, "helper.py", "SCALE * a", "SCALE + a")
    assert before != after


def test_an_import_for_its_effect_counts(project):
    (project / "patch.py").write_text("import helper\nhelper.SCALE = 7\n")
    (project / "cells.py").write_text("import patch\n" + CELL)
    before, after = edited(project, "patch.py", "7", "8")
    assert before != after


def test_a_changed_helper_is_computed_again(project, tmp_path):
    out = tmp_path / "out"
    assert run_study(study(), out, "processes", 1).value == 3
    text = (project / "helper.py").read_text()
    (project / "helper.py").write_text(text.replace("SCALE = 2", "SCALE = 3"))
    with pytest.raises(ValueError, match=r"helper\.py was changed after it was imported here"):
        run_study(study(), out, "here")
    importlib.reload(sys.modules["helper"])
    assert run_study(study(), out, "processes", 1).value == 4
    assert run_study(study(), out, "here").value == 4


READING = """
import functools, pathlib
HERE = pathlib.Path(__file__).parent
@functools.cache
def table():
    return float((HERE / "data.txt").read_text())
def cell(a):
    return {"value": a * table()}
"""


@pytest.mark.parametrize("engine", ["here", "processes"])
def test_a_changed_data_file_is_computed_again(project, tmp_path, engine):
    (project / "cells.py").write_text(READING)
    (project / "data.txt").write_text("2")
    both = Study(name="s", function="cells:cell", grid={"a": [1.0, 3.0]})
    out = tmp_path / "out"
    assert list(run_study(both, out, engine, 1).value) == [2, 6]
    (project / "data.txt").write_text("5")
    getattr(sys.modules.get("cells"), "table", READING) and sys.modules["cells"].table.cache_clear()
    assert list(run_study(both, out, engine, 1).value) == [5, 15]
    (project / "data.txt").unlink()  # nothing contradicts the cells now
    assert list(run_study(both, out, engine, 1).value) == [5, 15]


TABLES = {
    "problem": {"is": "sparse_regression", "samples": 6, "dimension": 12, "sparsity": 2},
    "model": {"is": "DiagonalNet", "alpha": 0.1},
    "method": {"is": "DualFlow"},
    "stop": {"is": "Interpolated", "relative": 1e-4},
    "final": ["test_error"],
}


def test_a_study_of_tables_depends_on_the_names_in_it():
    plain = Study(name="s", **TABLES)
    other = Study(name="s", **{**TABLES, "stop": [TABLES["stop"], {"is": "Time", "t": 1.0}]})
    over = {**TABLES, "method": {}, "grid": {"method.is": ["DualFlow", "ParameterFlow"]}}
    assert ("tacit", "Interpolated") in roots_of(plain)
    assert ("tacit", "Time") in roots_of(other)
    assert ("tacit", "ParameterFlow") in roots_of(Study(name="s", **over))
    product = Study(name="s", **{**TABLES, "method": {"is": "ParameterFlow"}})
    assert len({code_of(plain).version, code_of(product).version}) == 2


class Calls:
    """The top-level definitions of tacit that run, seen by the interpreter."""

    def __enter__(self):
        self.seen = set()
        gc.collect()  # or generators that earlier tests left behind are closed while we listen
        sys.setprofile(self.note)
        return self.seen

    def note(self, frame, event, _):
        module = frame.f_globals.get("__name__", "")
        name = frame.f_code.co_qualname.split(".")[0].replace("__create_fn__", "<dataclass>")
        if event == "call" and module.split(".")[0] == "tacit" and name.isidentifier():
            self.seen.add((module, name))

    def __exit__(self, *_):
        sys.setprofile(None)


#: what runs around a cell, and what registers classes and names
AROUND = ("tacit.studies", "tacit.threads", "tacit.versions", "tacit")


@pytest.mark.parametrize(
    "name",
    ["phase-scale-width", "phase-scale-accuracy", "phase-step-beta", "W-F1", "N-LU"],
)
def test_all_that_runs_in_a_cell_is_in_its_version(name):
    from tacit.studies.cells import cells_of
    from tacit.studies.compute import compute

    chosen = read_study(name)
    cells = list(cells_of(chosen, "any"))
    with Calls() as seen:
        result = compute(cells[len(cells) // 2].spec)
    assert result.status != "error", result.sentence
    known = set(reached(roots_of(chosen)).definitions)
    ran = {call for call in seen if not call[0].startswith(AROUND[:3]) and call[0] != "tacit"}
    ran.discard(("tacit.training.path", "noted_outcomes"))  # around a cell, too
    assert len(ran) > 3
    assert ran <= known, sorted(ran - known)


def test_captions_and_claims_are_in_no_version_of_a_figure_s_cells():
    known = set(reached(roots_of(read_study("W-F5"))).definitions)
    assert ("tacit.papers.woodworth2020.figures.completion", "cell") in known
    assert ("tacit.papers.woodworth2020.figures.figure_5", "check") not in known
    assert not [module for module, _ in known if module.startswith("tacit.cli")]
    assert tacit.__name__ in {module for module, _ in known}
