"""Everyday circumstances that are not those of the developer's machine, one test each.

Python 3.14 and a real Windows are not among them: CI has neither. What Windows forbids in names is
checked on the names alone.
"""

import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import penchant
from penchant.lab import all_claims
from penchant.lab.report.section import simple

SOURCE = str(Path(penchant.__file__).parents[1])
CELLS = """
import penchant

def cell(alpha):
    problem = penchant.problems.sparse_regression(5, 8, sparsity=1)
    solution = penchant.interpolate(problem, penchant.Q(alpha=alpha))
    return {"error": problem.population_error(solution.beta)}
"""
STUDY = 'function = "own_cells:cell"\n[grid]\nalpha = [0.1, 1.0]\n'
# as root, permissions would not count
PLAIN_USER = ["setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner"]


# several commands in one process, since most of the time of one is that of its imports
IN_TURN = """
import sys
sys.stderr = sys.stdout
from penchant.cli import app
for words in {commands!r}:
    try:
        app(list(words), prog_name="penchant")
    except SystemExit as end:
        print("ended with", end.code)
"""


def in_turn(*commands, before="", **given):
    """What several commands print, each with its exit code behind it."""
    commands = [[str(word) for word in words] for words in commands]
    code, text = python("-c", before + IN_TURN.format(commands=commands), **given)
    assert code == 0, text
    parts = re.split(r"ended with (\d+)\n", text)
    assert len(parts) == 2 * len(commands) + 1, text
    return list(zip(map(int, parts[1::2]), parts[::2], strict=False))


def python(*words, folder, command=(), executable=(sys.executable,), **environment):
    """(exit code, everything printed) of a Python process with a bare environment."""
    plain = {"PATH": os.environ["PATH"], "PYTHONPATH": SOURCE, "OMP_NUM_THREADS": "1"}
    words = [*command, *executable, "-W", "error", *map(str, words)]
    environment = {name: str(value) for name, value in (plain | environment).items()}
    ran = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True,
                         timeout=120)  # fmt: skip
    return ran.returncode, ran.stdout + ran.stderr


def as_plain_user():
    """The words before a command that make permissions count."""
    if os.geteuid():
        return []
    if not shutil.which("setpriv"):
        pytest.skip("root may write everywhere, and setpriv is not there to change that")
    return PLAIN_USER


@pytest.fixture
def study(tmp_path):
    """A folder with a study that runs."""
    (tmp_path / "own_cells.py").write_text(CELLS)
    (tmp_path / "own.toml").write_text(STUDY)
    return tmp_path


RUN = ("run", "own.toml", "--trust", "--jobs", "1")


def assert_ran(code, text, folder):
    assert code == 0, text
    assert "2 cells, 2 computed now, 0 failed" in text
    assert "Traceback" not in text
    assert penchant.load(folder / "penchant-studies" / "own.nc").error.shape == (2,)


def test_python_m_without_a_home(study):
    """The words of the command are read by no process of another test."""
    code, text = python("-m", "penchant", "--help", folder=study)
    assert code == 0
    assert "Usage: penchant" in text or "Usage: python -m penchant" in text
    ran = python("-m", "penchant", *RUN, folder=study, HOME="/nonexistent/home")
    assert_ran(*ran, study)


def test_a_home_that_cannot_be_written(study, tmp_path):
    home = tmp_path / "home"
    home.mkdir(mode=0o555)
    data = ("data", "mnist", "--from", study)
    version, ran, (code, text) = in_turn(
        ("--version",), RUN, data, folder=study, command=as_plain_user(), HOME=home
    )
    assert version == (0, f"penchant {penchant.__version__}\n")
    assert_ran(*ran, study)
    assert list(home.iterdir()) == []
    assert code == 2
    assert "Traceback" not in text


NO_NETWORK = """
import socket
def refuse(*words, **more):
    raise OSError(101, "Network is unreachable")
socket.socket.connect = socket.socket.connect_ex = socket.create_connection = refuse
socket.getaddrinfo = refuse
"""
PROBE = """
import socket
try:
    socket.create_connection(('127.0.0.1', 1))
except OSError as reason:
    assert "Network is unreachable" in str(reason)
"""


def test_no_network_and_a_path_with_spaces_and_other_letters(tmp_path):
    shut, folder = tmp_path / "shut", tmp_path / "my studies (new) é 好 'quoted'"
    shut.mkdir()
    folder.mkdir()
    (shut / "sitecustomize.py").write_text(NO_NETWORK)
    (folder / "own_cells.py").write_text(CELLS)
    (folder / "own.toml").write_text(STUDY)
    ran, shown, (code, text) = in_turn(
        RUN, ("show", "penchant-studies/own.nc"), ("data", "mnist"),
        before=PROBE, folder=folder, PYTHONPATH=os.pathsep.join([str(shut), SOURCE]),
        PYTHONUTF8=1, PENCHANT_CACHE=tmp_path / "none",
    )  # fmt: skip
    assert_ran(*ran, folder)
    assert (shown[0], "own.nc: alpha 2" in shown[1]) == (0, True), shown[1]
    assert code == 1  # it is absent, and the way to get it is shown
    assert "penchant data mnist --fetch" in text


def test_another_user(study, tmp_path):
    """Folders and files that belong to somebody else: one sentence each, nothing half-written."""
    theirs, secret = tmp_path / "theirs", tmp_path / "secret.nc"
    theirs.mkdir()
    secret.write_bytes(b"theirs")
    if not os.geteuid():
        os.chown(theirs, 65534, 65534)
        os.chown(secret, 65534, 65534)
    theirs.chmod(0o555)
    secret.chmod(0)
    load = f"import penchant\ntry: penchant.load({str(secret)!r})\nexcept OSError as no: print(no)"
    (code, text), (again, shown) = in_turn(
        (*RUN, "--out", theirs / "out"), ("show", secret),
        before=load, folder=study, command=as_plain_user(),
    )  # fmt: skip
    assert text.startswith(f"load: no permission to read {secret}\n")
    assert (code, again) == (2, 2)
    assert "no permission to write into" in text
    assert "secret.nc" in shown
    assert "Traceback" not in text + shown
    assert list(theirs.iterdir()) == []
    assert stat.S_IMODE(theirs.stat().st_mode) == 0o555


def test_a_shared_site_packages_on_the_path(study):
    """An interpreter without packages that finds all of them, and penchant, by PYTHONPATH."""
    base = sys._base_executable
    site_packages = Path(pytest.__file__).parents[1]
    if not base or Path(base).resolve() == Path(sys.executable):
        pytest.skip("there is no other interpreter")
    path = os.pathsep.join([SOURCE, str(site_packages)])
    probe = f"import numpy; assert {str(site_packages)!r} in numpy.__file__"
    given = {"folder": study, "executable": (base, "-S"), "PYTHONPATH": path}
    assert_ran(*in_turn(RUN, before=probe, **given)[0], study)


FORBIDDEN = re.compile(r'[<>:"/\\|?*\x00-\x1f]|[. ]$')
DEVICES = re.compile(r"(?i)(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?")


def allowed_by_windows(name):
    return not FORBIDDEN.search(name) and not DEVICES.fullmatch(name)


def test_names_of_files_are_allowed_by_windows():
    claims = all_claims().select()
    written = [f"{simple(claim.id)}.quick.json" for claim in claims]
    each = (sizes for claim in claims for sizes in claim.studies)
    studies = [sizes.at(size).name for sizes in each for size in sizes.sizes]
    for name in (*written, *(f"{study}.nc" for study in studies), *studies):
        assert allowed_by_windows(name), name
    assert len({name.lower() for name in written}) == len(written) > 100
    assert not allowed_by_windows("aux.nc")  # the control


@pytest.mark.parametrize("name", ["con", "AUX", "nul.x", "Com1", "lpt9", "study."])
def test_a_study_that_windows_could_not_store_is_refused_everywhere(name):
    with pytest.raises(ValueError, match=r"Study: name must .* because it names files"):
        penchant.Study(name=name, function="study_cells:plain", grid={"a": [1.0]})
