"""Files that hold far more than they should: refused by a sentence, quickly, in little memory.

The sizes are real, the files are not: sparse ones, and zeros that pack to a thousandth.
"""

import gzip
import io
import sys
import tarfile
import time
import zipfile

import numpy as np
import pytest

import penchant
from commands import penchant_command
from penchant.problems.images import importing
from penchant.problems.images.catalogue import PARTS

resource = pytest.importorskip("resource")  # limits memory the Unix way

GIGABYTE = 10**9
SOON = 20.0  # seconds, on a busy machine; reading or unpacking these files takes minutes
STARTS = {
    "result.nc": b"\x89HDF\r\n\x1a\n",
    "verdicts.json": b'{"format": "penchant verdicts 3",\n',
    "study.toml": b'name = "study"\n',
}


def sparse(file, start, size=40 * GIGABYTE):
    """A file of this size that takes a block on the disk."""
    with open(file, "wb") as stream:
        stream.write(start)
        stream.truncate(size)
    return file


@pytest.fixture(autouse=True)
def little_memory():
    """An attempt to read such a file fails here, instead of filling the machine."""
    if not sys.platform.startswith("linux"):
        pytest.skip("limits memory the Linux way")
    with open("/proc/self/status") as status:
        used = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmSize"))
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + 3 * GIGABYTE, before[1]))
    start = time.monotonic()
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)
    assert time.monotonic() - start < SOON


@pytest.mark.parametrize("name", ["result.nc", "verdicts.json"])
def test_show_looks_at_the_size_first(tmp_path, name):
    file = sparse(tmp_path / name, STARTS[name])
    code, text = penchant_command("show", file)
    assert code == 2
    assert text.count("\n") == 1
    assert f"{name} has 40000000000 bytes, more than" in text


def test_every_reader_looks_at_the_size_first(tmp_path):
    readers = {
        "result.nc": penchant.load,
        "path.nc": penchant.load,
        "study.toml": penchant.lab.read_study,
        "record.json": penchant.load,
    }
    for name, read in readers.items():
        file = sparse(tmp_path / name, STARTS.get(name, STARTS["result.nc"]))
        with pytest.raises(ValueError, match=f"{name} has 40000000000 bytes, more than"):
            read(file)


def test_a_result_that_does_not_fit_into_memory_is_one_sentence(tmp_path):
    file = sparse(tmp_path / "result.nc", STARTS["result.nc"], 4 * GIGABYTE)
    with pytest.raises(
        ValueError, match=r"result.nc \(4000000000 bytes\) does not fit into memory"
    ):
        penchant.load(file)


def test_a_study_does_not_read_a_large_stranger_of_its_name(tmp_path):
    study = penchant.Study(name="plain", function="study_cells:plain", grid={"a": [1.0]})
    sparse(tmp_path / "plain.nc", b"", 5 * GIGABYTE)
    penchant.run(study, tmp_path)
    assert len(list(tmp_path.glob("plain-*.nc"))) == 1


class Zeros(io.RawIOBase):
    """Many zeros that are nowhere in memory."""

    def __init__(self, size):
        self.left = size

    def readable(self):
        return True

    def readinto(self, buffer):
        count = min(len(buffer), self.left)
        buffer[:count] = bytes(count)
        self.left -= count
        return count


def bomb(file, name, size=8 * GIGABYTE, kind=tarfile.REGTYPE):
    """A .tgz of some hundred kilobytes whose first member claims `size` bytes; it holds a part."""
    member = tarfile.TarInfo(name)
    member.size, member.type = size, kind
    # a stream of gzip may consist of several, and so the zeros are compressed once
    file.write_bytes(gzip.compress(member.tobuf()) + 300 * gzip.compress(bytes(2**20)))
    return file


@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME])
def test_an_archive_that_unpacks_to_gigabytes_is_refused_at_once(tmp_path, kind):
    file = bomb(tmp_path / "mnist.tgz", "something-else", kind=kind)
    assert file.stat().st_size < 2_000_000
    start = time.monotonic()
    with pytest.raises(ValueError, match=r"mnist.tgz.* unpacks to more than 536870912 bytes"):
        penchant.problems.import_images("mnist", file)
    assert time.monotonic() - start < 5


def test_members_count_together(tmp_path, monkeypatch):
    monkeypatch.setattr(importing, "TOTAL", 10**6)
    file = tmp_path / "mnist.tgz"
    with tarfile.open(file, "w:gz") as archive:
        for number in range(20):
            member = tarfile.TarInfo(f"part-{number}")
            member.size = 10**5
            archive.addfile(member, Zeros(member.size))
    with pytest.raises(ValueError, match="unpacks to more than 1000000 bytes"):
        penchant.problems.import_images("mnist", file)


def test_a_zip_archive_that_unpacks_to_gigabytes_is_refused_at_once(tmp_path):
    file = tmp_path / "mnist.npz"
    with (
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("x_train.npy", "w") as member,
    ):
        for _ in range(300):
            member.write(bytes(2**20))
    with pytest.raises(ValueError, match=r"x_train.npy with more than 268435456 bytes"):
        penchant.problems.import_images("mnist", file)
    sparse(file, b"PK")
    with pytest.raises(ValueError, match=r"mnist.npz' has 40000000000 bytes, more than 536870912"):
        penchant.problems.import_images("mnist", file)


def test_the_arrays_of_a_cached_set_count_together(tmp_path, monkeypatch):
    monkeypatch.setenv("PENCHANT_CACHE", str(tmp_path))
    header = io.BytesIO()
    shape = {"descr": "|u1", "fortran_order": False, "shape": (400_000_000,)}
    np.lib.format.write_array_header_1_0(header, shape)
    with zipfile.ZipFile(tmp_path / "mnist.npz", "w") as archive:
        for part in PARTS:  # each of them is below the limit
            archive.writestr(f"{part}.npy", header.getvalue())
    with pytest.raises(ValueError, match=r"mnist\.npz is damaged \(with test_images it declares"):
        penchant.problems.load_images("mnist")
    sparse(tmp_path / "mnist.npz", b"PK")
    with pytest.raises(ValueError, match=r"mnist\.npz is damaged \(it has 40000000000 bytes"):
        penchant.problems.load_images("mnist")
