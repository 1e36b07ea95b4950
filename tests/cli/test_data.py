"""`penchant data`: the list, the way to a set, the import and the download, told in clear words."""

from __future__ import annotations

import dataclasses
import functools
import http.server
import importlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import image_packages as fake
from child_processes import HEED_CTRL_C, PATH
from commands import penchant_command
from penchant.problems.images import cache
from penchant.problems.images.catalogue import CATALOGUE
from penchant.problems.images.download import downloaded


@pytest.fixture(autouse=True)
def little_world(monkeypatch, tmp_path):
    """Fake sets, an own cache folder, and mirrors that nobody serves unless a test does."""
    for name, images in fake.SETS.items():
        monkeypatch.setitem(CATALOGUE, name, dataclasses.replace(images, mirrors=(NOBODY,)))
    monkeypatch.setenv("PENCHANT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("COLUMNS", "140")
    monkeypatch.chdir(tmp_path)


NOBODY = "http://127.0.0.1:9/"  # the port of `discard`, where nothing listens
command = functools.partial(penchant_command, "data")


def archive(name):
    """An archive of a set as a file."""
    file, data = fake.ARCHIVES[name]
    Path(file).write_bytes(data)
    return file


def test_the_list_shows_what_is_there(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    command("cifar10", "--from", archive("cifar10"))
    command("mnist", "--from", archive("mnist"))
    (cache.folder() / "mnist.npz").write_bytes(b"half")
    code, printed = command()
    assert code == 0
    assert re.search(r"mnist +damaged +40 \+ 20 +0\.0 +mnist\.npz", printed)
    assert re.search(r"fashion-mnist +absent +40 \+ 20 +fashion-mnist\.npz", printed)
    assert re.search(r"cifar10 +verified +15 \+ 3 +0\.1 +cifar10\.npz", printed)
    assert re.search(r"digits +absent +1437 \+ 360 +inside scikit-learn", printed)
    assert f"cache folder: {cache.folder()}" in printed


@pytest.mark.parametrize("name", sorted(fake.SETS))
def test_an_absent_set_comes_with_the_ways_to_get_it(name):
    code, printed = command(name)
    assert code == 1
    assert f"absent: there is no file {cache.folder() / name}.npz" in printed
    lines = [f"  penchant data {name} --fetch", f"  penchant data {name} --from FILE_OR_FOLDER"]
    lines += [f"  {NOBODY}{file}" for file in fake.PUBLISHED[name]]
    assert set(lines) < set(printed.splitlines())
    assert not cache.folder().exists()


def test_a_stored_set_says_how_to_load_it():
    file = archive("mnist")
    stored = (0, f"mnist: verified and stored in {_stored('mnist')}\n")
    assert command("mnist", "--from", file) == stored
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
    ],
)
def test_wrong_input_is_one_line(words, message):
    code, printed = command(*words)
    assert code == 2
    assert printed.startswith(message)
    assert printed.count("\n") == 1
    assert not cache.folder().exists()


def test_a_missing_pooch_is_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    code, printed = command("cifar10", "--fetch")
    assert code == 2
    assert "a download needs pooch, which is not installed; pip install 'penchant[data]'" in printed
    assert printed.count("\n") == 1
    assert command("cifar10", "--from", archive("cifar10"))[0] == 0  # which needs no pooch


# --- fetch, from a server on this machine ---------------------------------------------------


class Mirror(http.server.BaseHTTPRequestHandler):
    """Sends `files[path]`: bytes, or a function that writes the answer itself."""

    def do_GET(self):
        self.server.asked.append(self.path)
        content = self.server.files.get(self.path)
        if content is None:
            self.send_error(404)
        elif isinstance(content, bytes):
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
        else:
            content(self)

    def log_message(self, *args):
        pass


@pytest.fixture
def mirror(monkeypatch):
    """A server of two mirrors, /first/ and /second/; the sets name both."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Mirror)
    server.files, server.asked = {}, []
    address = f"http://127.0.0.1:{server.server_port}"
    for name, images in fake.SETS.items():
        both = (f"{address}/first/", f"{address}/second/")
        monkeypatch.setitem(CATALOGUE, name, dataclasses.replace(images, mirrors=both))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def serve(mirror, which, name, **changed):
    for file, data in fake.PUBLISHED[name].items():
        mirror.files[f"/{which}/{file}"] = changed.get("data", data)


def left():
    """What is in the cache folder, hidden or not."""
    return sorted(path.name for path in cache.folder().iterdir())


@pytest.mark.parametrize("name", sorted(fake.SETS))
def test_fetch_downloads_checks_and_stores(mirror, name):
    serve(mirror, "first", name)
    assert command(name, "--fetch") == (0, f"{name}: verified and stored in {_stored(name)}\n")
    assert left() == [f"{name}.npz"]
    assert mirror.asked == [f"/first/{file}" for file in fake.PUBLISHED[name]]
    assert command(name, "--fetch")[0] == 0  # it is there: nothing is downloaded again
    assert len(mirror.asked) == len(fake.PUBLISHED[name])


def test_the_progress_is_in_bytes_of_all_files(mirror):
    serve(mirror, "first", "mnist")
    total = sum(map(len, fake.PUBLISHED["mnist"].values()))
    seen = []
    with downloaded(CATALOGUE["mnist"], lambda *at: seen.append(at)) as folder:
        assert {file.name for file in folder.iterdir()} == set(fake.PUBLISHED["mnist"])
    assert not folder.exists()
    assert seen[-1] == (total, total)
    assert all(0 < done <= all_files == total for done, all_files in seen)


def test_the_second_mirror_is_asked_where_the_first_one_fails(mirror):
    serve(mirror, "first", "mnist")
    serve(mirror, "second", "mnist")
    lost, changed = list(fake.PUBLISHED["mnist"])[1:3]
    del mirror.files[f"/first/{lost}"]
    mirror.files[f"/first/{changed}"] = fake.PUBLISHED["fashion-mnist"][changed]
    assert command("mnist", "--fetch")[0] == 0
    again = [path for path in mirror.asked if path.startswith("/second/")]
    assert again == [f"/second/{lost}", f"/second/{changed}"]


def _endless(answer):
    answer.send_response(200)
    answer.end_headers()
    try:
        for _ in range(10_000):
            answer.wfile.write(bytes(2**16))
    except OSError:
        answer.server.asked.append("hung up")


def _cut_short(answer):
    answer.send_response(200)
    answer.send_header("Content-Length", "5000")
    answer.end_headers()
    answer.wfile.write(bytes(100))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "404 Client Error: Not Found"),
        (b"another file", "does not match the known hash"),
        (_endless, "it sends more than"),
        (_cut_short, "Connection broken|does not match the known hash"),
    ],
)
def test_a_download_that_fails_is_one_line_and_leaves_nothing(mirror, data, message):
    serve(mirror, "first", "mnist", data=data)
    serve(mirror, "second", "mnist", data=data)
    code, printed = command("mnist", "--fetch")
    assert code == 2
    assert printed.startswith("error: data: train-images-idx3-ubyte.gz could not be downloaded (")
    assert len(re.findall(message, printed)) == 2  # once for each mirror
    assert printed.endswith("or get the files elsewhere and pass them with --from\n")
    assert printed.count("\n") == 1
    assert left() == []


def test_a_machine_without_a_network_is_told_so():
    code, printed = command("mnist", "--fetch")
    assert code == 2
    assert "could not be downloaded" in printed
    assert printed.count("\n") == 1
    assert left() == []


def test_published_files_of_another_set_are_not_stored(mirror):
    """The md5 of the files can be right and the images wrong; the sha256 of the arrays decides."""
    serve(mirror, "first", "fashion-mnist")
    swapped = CATALOGUE["fashion-mnist"]
    CATALOGUE["mnist"] = dataclasses.replace(
        CATALOGUE["mnist"], files=swapped.files, mirrors=swapped.mirrors
    )
    code, printed = command("mnist", "--fetch")
    assert code == 2
    assert "these are the images of fashion-mnist; nothing was stored" in printed
    assert left() == []


def test_a_cache_folder_without_permission_is_an_error_before_the_download(monkeypatch, mirror):
    download = importlib.import_module("penchant.problems.images.download")

    def denied(**kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(download.tempfile, "mkdtemp", denied)
    code, printed = command("mnist", "--fetch")
    assert code == 2
    assert "(Permission denied); free it, or set PENCHANT_CACHE to another folder" in printed
    assert mirror.asked == []


FETCH = """
import dataclasses, sys
from penchant.problems.images.catalogue import CATALOGUE
CATALOGUE["mnist"] = dataclasses.replace(CATALOGUE["mnist"], mirrors=(sys.argv.pop(),))
from penchant.cli import app
app()
"""


@pytest.mark.skipif(os.name != "posix", reason="interrupts the Unix way")
def test_an_interrupted_fetch_leaves_nothing(mirror):
    ended = threading.Event()

    def hang(answer):
        answer.send_response(200)
        answer.end_headers()
        answer.wfile.write(bytes(2**17))
        ended.wait(30)

    serve(mirror, "first", "mnist", data=hang)
    address = CATALOGUE["mnist"].mirrors[0]
    words = [sys.executable, "-c", HEED_CTRL_C + FETCH, "data", "mnist", "--fetch", address]
    env = os.environ | {"PYTHONPATH": os.pathsep.join([PATH, os.environ.get("PYTHONPATH", "")])}
    running = subprocess.Popen(words, env=env, stderr=subprocess.PIPE, text=True)
    while not mirror.asked:
        assert running.poll() is None
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    _, printed = running.communicate(timeout=30)
    ended.set()
    assert running.returncode == 130
    assert "interrupted; unfinished work was not written" in printed
    assert left() == []


def test_the_help_teaches():
    _, printed = command("--help")
    for line in ("penchant data mnist --fetch", "PENCHANT_CACHE", "Only --fetch uses the network"):
        assert line in printed
