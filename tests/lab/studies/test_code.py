"""The version of a study's code: it changes with every file that its cells depend on."""

import _io
import builtins
import importlib
import io
import json
import subprocess
import sys

import numpy as np
import pytest

import penchant
from child_processes import PATH
from penchant import Study
from penchant.lab import read_study
from penchant.lab.studies.code import disk, modules, version
from penchant.lab.studies.code import inputs as data_files
from penchant.lab.studies.code.modules import EDGES, dependencies, own_files
from penchant.lab.studies.code.version import code_of, roots_of
from recorder import Recorder

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
    "stranger.py": "def f(a):\n    return -a\n",
}
OWN = ("cells", "helper", "package", "bare", "stranger", "patch", "plugins", "registry")


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder with the user's modules; each test imports them anew."""
    for name, text in FILES.items():
        write(tmp_path / name, text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in [m for m in sys.modules if m.split(".")[0] in OWN]:
        del sys.modules[name]
    forget()


def write(file, text):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def forget():
    """What this process knows of files, as a new one would begin."""
    version._SEEN.clear()
    version._INPUTS.clear()
    modules._is_installed.cache_clear()
    data_files._at_import.clear()
    data_files._written.clear()


def study(**more):
    return Study(name="s", function="cells:cell", grid={"a": [1.0]}, **more)


def edited(project, file, old, new, study=study):
    """The version before and after an edit, as two processes would see it."""
    before = code_of(study()).version
    text = (project / file).read_text()
    assert old in text
    (project / file).write_text(text.replace(old, new))
    forget()
    return before, code_of(study()).version


@pytest.mark.parametrize(
    ("file", "old", "new", "same"),
    [
        ("cells.py", "helper.f(a)", "helper.f(a) + 0", False),
        ("helper.py", "SCALE = 2", "SCALE = 3", False),
        ("package/inner/deep.py", "a + ", "a - ", False),
        ("package/inner/table.py", "1", "2", False),
        ("package/__init__.py", "", "import helper\nhelper.SCALE = 5\n", False),
        ("cells.py", "a picture", "another picture", False),  # a file is the unit
        ("stranger.py", "-a", "+a", True),  # nothing imports it
        ("bare/helper.py", "2 * a", "3 * a", True),
    ],
)
def test_every_imported_file_changes_the_version_and_no_other_does(project, file, old, new, same):
    before, after = edited(project, file, old, new)
    assert (before == after) is same


def test_a_folder_without_init_is_the_user_s_too(project):
    def bare():
        return Study(name="s", function="bare.cells:cell", grid={"a": [1.0]})

    before, after = edited(project, "bare/helper.py", "2 * a", "3 * a", bare)
    assert before != after


def test_a_name_made_at_run_time_counts_with_its_folder(project):
    write(
        project / "cells.py",
        "import importlib\ndef cell(a):\n    "
        "return {'value': importlib.import_module('hel' + 'per').f(a)}\n",
    )
    before, after = edited(project, "helper.py", "SCALE * a", "SCALE + a")
    assert before != after
    before, after = edited(project, "package/inner/table.py", "1", "2")
    assert before != after


def test_an_import_for_its_effect_counts(project):
    write(project / "patch.py", "import helper\nhelper.SCALE = 7\n")
    write(project / "cells.py", "import patch\n" + CELL)
    before, after = edited(project, "patch.py", "7", "8")
    assert before != after


REGISTRY = "ALL = {}\ndef register(f):\n    ALL[f.__name__] = f\n    return f\n"
PLUGINS = "from registry import register\n@register\ndef f(a):\n    return 2 * a\n"
REGISTERED = "from registry import ALL\ndef cell(a):\n    return {'v': ALL['f'](a)}\n"


@pytest.mark.parametrize("line", ["import plugins", "from plugins import *", "import plugins as p"])
def test_a_registry_that_a_decorator_fills_counts(project, tmp_path, line):
    write(project / "registry.py", REGISTRY)
    write(project / "plugins.py", PLUGINS)
    write(project / "cells.py", f"{line}\n{REGISTERED}")
    assert penchant.run(study(), tmp_path / "out", "processes", 1).v == 2
    write(project / "plugins.py", PLUGINS.replace("2 * a", "3 * a"))
    for name in ("plugins", "registry", "cells"):
        sys.modules.pop(name, None)
    assert penchant.run(study(), tmp_path / "out", "processes", 1).v == 3


def test_installed_packages_count_by_version(project, monkeypatch):
    write(project / "cells.py", "def cell(a):\n    import pytest, os\n    return {'value': a}\n")
    used = dependencies(["cells"])
    assert used.packages == {"pytest"}
    assert set(used.files) == {"cells"}
    before = code_of(study())
    assert before.libraries["pytest"] == pytest.__version__
    monkeypatch.setattr(version, "package_version", lambda name: "0.0")
    assert code_of(study()).version != before.version


def test_a_shared_site_packages_is_no_code_of_the_user(project, monkeypatch):
    shared = project / "shared" / "site-packages"
    write(shared / "stranger.py", "def f(a):\n    return a\n")
    monkeypatch.syspath_prepend(shared)
    write(project / "cells.py", "import stranger\ndef cell(a):\n    return {'value': a}\n")
    assert dependencies(["cells"]).packages == {"stranger"}
    assert modules.package_version("stranger") == "unknown"


def test_what_pip_has_recorded_in_any_folder_is_no_code_of_the_user(project, monkeypatch):
    """`pip install --target libs`, with libs on PYTHONPATH and a module of the user in it."""
    libs = project / "libs"
    write(libs / "settler.py", "import lost\ndef f(a):\n    return a\n")
    write(libs / "mine.py", "def g(a):\n    return a\n")
    write(libs / "settler-1.5.dist-info" / "METADATA", "Name: settler\nVersion: 1.5\n")
    write(libs / "settler-1.5.dist-info" / "RECORD", "../bin/mine.py,,\nsettler.py,,\n")
    monkeypatch.syspath_prepend(libs)
    write(project / "cells.py", "import mine, settler\ndef cell(a):\n    return {'value': a}\n")
    known = dependencies(["cells"])
    assert known.packages == {"settler"}
    assert set(known.files) == {"cells", "mine"}
    assert modules.package_version("settler") == "1.5"


def test_a_changed_helper_is_computed_again(project, tmp_path):
    out = tmp_path / "out"
    assert penchant.run(study(), out, "processes", 1).value == 3
    text = (project / "helper.py").read_text()
    (project / "helper.py").write_text(text.replace("SCALE = 2", "SCALE = 3"))
    with pytest.raises(ValueError, match=r"helper\.py was changed after it was imported here"):
        penchant.run(study(), out, "here")
    importlib.reload(sys.modules["helper"])
    assert penchant.run(study(), out, "processes", 1).value == 4
    assert penchant.run(study(), out, "here").value == 4


AT_IMPORT = """
import pathlib
TABLE = float((pathlib.Path(__file__).parent / "data.txt").read_text())
def cell(a):
    return {"value": a * TABLE}
"""
LATER = """
import os, functools
@functools.cache
def table():
    return float(open("data.txt").read()) if os.path.exists("data.txt") else 0.5
def cell(a):
    return {"value": a * table()}
"""


@pytest.mark.parametrize("text", [AT_IMPORT, LATER], ids=["at import", "in the cell"])
def test_a_changed_input_is_computed_again(project, tmp_path, text):
    write(project / "cells.py", text)
    write(project / "data.txt", "2")
    named = study(inputs=["data.txt"])
    out = tmp_path / "out"
    assert penchant.run(named, out, "processes", 1).value == 2
    write(project / "data.txt", "5")
    with pytest.raises(ValueError, match=r"data\.txt was changed after this process saw it first"):
        penchant.run(named, out, "here")  # the module in this process holds the old table
    assert penchant.run(named, out, "processes", 1).value == 5
    recorder = Recorder()
    write(project / "data.txt", "2")
    assert penchant.run(named, out, "processes", 1, recorder).value == 2
    assert recorder.ended == recorder.messages == []  # as before: the cell is there


def test_an_input_that_is_absent_at_first_is_computed_again(project, tmp_path):
    write(project / "cells.py", LATER)
    named, recorder = study(inputs=["data.txt"]), Recorder()
    assert penchant.run(named, tmp_path / "out", "processes", 1, recorder).value == 0.5
    assert recorder.messages == [
        f"study: inputs names {project / 'data.txt'}, which does not exist"
    ]
    write(project / "data.txt", "5")
    assert penchant.run(named, tmp_path / "out", "processes", 1).value == 5


def test_a_folder_of_inputs_is_all_that_is_in_it(project):
    write(project / "data" / "deep" / "a.txt", "1")
    named = study(inputs=[project / "data"])
    assert named.describe()["inputs"] == [str(project / "data")]
    versions = {code_of(named).version}
    for file, text in (("deep/a.txt", "2"), ("b.txt", "1"), ("c.txt", "1")):
        write(project / "data" / file, text)
        versions.add(code_of(named).version)
    assert len(versions) == 4


OPENERS = {
    "open": "open('data.txt').close()",
    "pathlib": "__import__('pathlib').Path('data.txt').read_bytes()",
    "numpy": "__import__('numpy').load('data.txt')",
    "bytes": "open(b'data.txt', 'rb').close()",
}


@pytest.mark.parametrize(
    ("how", "engine"),
    [("open", "here"), ("pathlib", "here"), ("bytes", "here"), ("numpy", "processes")],
)
def test_an_opened_file_that_is_not_named_is_reported(project, tmp_path, how, engine):
    write(project / "cells.py", f"def cell(a):\n    {OPENERS[how]}\n    return {{'value': a}}\n")
    with open(project / "data.txt", "wb") as stream:
        np.save(stream, np.zeros(2))
    recorder = Recorder()
    penchant.run(study(), tmp_path / "out", engine, 1, recorder)
    (sentence,) = recorder.messages
    assert f"cells opened {project / 'data.txt'}, which the study does not name" in sentence
    named = Recorder()
    penchant.run(study(inputs=["data.txt"]), tmp_path / "out", engine, 1, named)
    assert named.messages == []
    assert builtins.open is io.open is _io.open  # Python's own again


def test_a_file_that_is_read_at_import_and_not_named_is_reported(project, tmp_path):
    write(project / "cells.py", AT_IMPORT)
    write(project / "data.txt", "2")
    with pytest.warns(
        UserWarning, match=r"cells opened .*data\.txt, which the study does not name"
    ):
        penchant.run(study(), tmp_path / "out")


def test_what_a_cell_wrote_itself_is_no_input(project, tmp_path):
    text = "def cell(a):\n    open('own.txt', 'w').close()\n    open('own.txt').close()\n    "
    write(project / "cells.py", text + "return {'value': a}\n")
    recorder = Recorder()
    penchant.run(study(), tmp_path / "out", "here", 1, recorder)
    assert recorder.messages == []


LATE = """
import json, sys
from penchant.lab.studies.study import Study
from penchant.lab.studies.code.version import code_of
print(json.dumps(code_of(Study(name="s", function="cells:cell", grid={"a": [1.0]})).version))
"""


def test_two_processes_agree_on_the_version(project):
    command = [sys.executable, "-c", LATE]
    environment = {"PYTHONPATH": f"{PATH}:{project}", "PATH": "/usr/bin:/bin"}
    found = subprocess.run(command, capture_output=True, check=True, env=environment)
    assert json.loads(found.stdout) == code_of(study()).version


TABLES = {
    "problem": {"is": "sparse_regression", "samples": 6, "dimension": 12, "sparsity": 2},
    "model": {"is": "DiagonalNet", "alpha": 0.1},
    "method": {"is": "DualFlow"},
    "final": ["test_error"],
}


def test_any_file_of_the_library_changes_every_version_and_an_edge_changes_none(monkeypatch):
    plain = Study(name="s", **TABLES)
    before = code_of(plain).version
    real = disk.content

    def changed(module):
        return lambda file: "other" if file.endswith(module) else real(file)

    for module, same in (("solvers/interpolate.py", False), ("plotting/style.py", True)):
        monkeypatch.setattr(modules, "content", changed(module))
        version._SEEN.clear()
        assert (code_of(plain).version == before) is same
    monkeypatch.undo()
    version._SEEN.clear()


def test_the_unit_of_the_library_is_all_that_computes():
    modules = set(own_files())
    assert {"penchant", "penchant.solvers.interpolate", "penchant.lab.studies.compute"} <= modules
    left_out = set(own_files(edges=True)) - modules
    assert left_out == {name for name in own_files(edges=True) if name.startswith(EDGES)}


def test_cells_of_a_paper_depend_on_the_files_of_their_paper_alone():
    used = dependencies(roots_of(read_study("W-F5")))
    assert "penchant_papers.woodworth2020.figures.completion" in used.files
    assert not [name for name in used.files if "notsawo" in name or "figure_5" in name]


@pytest.mark.parametrize("name", ["phase-scale-width", "phase-step-beta", "N-LU"])
def test_all_that_runs_in_a_cell_is_in_its_version(name):
    """The files of the functions that the interpreter sees; a second route to the dependencies."""
    from penchant.lab.studies.cells import cells_of
    from penchant.lab.studies.compute import compute

    chosen = read_study(name)
    cells = list(cells_of(chosen, "any"))
    ran = set()
    sys.setprofile(lambda frame, event, _: ran.add(frame.f_globals.get("__name__", "")))
    try:
        result = compute(cells[len(cells) // 2].spec)
    finally:
        sys.setprofile(None)
    assert result.status != "error", result.sentence
    own = {module for module in ran if module.split(".")[0] == "penchant"}
    known = set(own_files()) | set(dependencies(roots_of(chosen)).files)
    assert len(own) > 3
    assert own <= known, sorted(own - known)


NOTEBOOK = """
SCALE = 2
def helper(a):
    return (lambda b: SCALE * b)(a)
def cell(a):
    return {'value': helper(a)}
def other():
    return 7
"""


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("SCALE = 2", "SCALE = 3", False),
        ("SCALE * b", "SCALE + b", False),
        ("helper(a)}", "helper(a) + 1}", False),
        ("SCALE * b", "SCALE * b * 2", False),
        ("return 7", "return 8", True),  # the control: the cell does not use it
    ],
)
def test_what_a_function_of_a_notebook_uses_counts(monkeypatch, old, new, same):
    import __main__ as main

    monkeypatch.delattr(main, "__file__", raising=False)  # a notebook has none
    versions = []
    for text in (NOTEBOOK, NOTEBOOK.replace(old, new)):
        space = {"__name__": "__main__"}
        exec(text, space)
        monkeypatch.setattr(main, "cell", space["cell"], raising=False)
        versions.append(code_of(Study(name="n", function=space["cell"], grid={"a": [1.0]})).version)
    assert (versions[0] == versions[1]) is same
