"""Small fake image sets and the files that hold them, written byte by byte."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import io
import struct
import tarfile
import zipfile

import numpy as np

from penchant.problems.images.catalogue import CIFAR10, FASHION, MNIST, Published

BATCH = 3  # images a file


def fake_arrays(images, train, test, seed):
    """Random bytes in the shapes of a set; every class occurs."""
    rng = np.random.default_rng(seed)

    def half(count):
        pixels = rng.integers(0, 256, (count, *images.shape), dtype=np.uint8)
        return pixels, rng.permutation(np.arange(count) % 10).astype(np.uint8)

    return (*half(train), *half(test))


def fake_set(images, arrays, files):
    """The entry of the catalogue that these arrays and published files would have."""
    sums = tuple(hashlib.sha256(array.tobytes()).hexdigest() for array in arrays)
    listed = tuple(
        Published(name, hashlib.md5(data).hexdigest(), len(data)) for name, data in files.items()
    )
    counts = (len(arrays[0]), len(arrays[2]))
    return dataclasses.replace(images, counts=counts, checksums=sums, files=listed)


DIGITS_LIKE = fake_arrays(MNIST, 40, 20, seed=1)
CLOTHES_LIKE = fake_arrays(FASHION, 40, 20, seed=2)
PHOTOS = fake_arrays(CIFAR10, 5 * BATCH, BATCH, seed=3)
ARRAYS = {"mnist": DIGITS_LIKE, "fashion-mnist": CLOTHES_LIKE, "cifar10": PHOTOS}


def idx_files(arrays):
    """The four files as LeCun's site had them."""
    names = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
             "t10k-labels-idx1-ubyte")  # fmt: skip
    shapes = [array.shape[:3] for array in arrays]  # no axis for the one channel
    heads = [struct.pack(f">I{len(s)}I", 0x800 + len(s), *s) for s in shapes]
    return {n: h + a.tobytes() for n, h, a in zip(names, heads, arrays, strict=True)}


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
    """A .tar.gz archive."""
    return gzip.compress(tar(files, folder), mtime=0)


def packed(files):
    """The files, each compressed with gzip, as they are published."""
    return {f"{name}.gz": gzip.compress(data, mtime=0) for name, data in files.items()}


def zipped(files, folder="data/"):
    """A .zip archive."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(folder + name, data)
    return stream.getvalue()


def npz(arrays, names=("x_train", "y_train", "x_test", "y_test")):
    """An .npz file as Keras publishes it: grey images without an axis for the channel."""
    plain = [array[..., 0] if array.shape[-1] == 1 else array for array in arrays]
    stream = io.BytesIO()
    np.savez(stream, **dict(zip(names, plain, strict=True)))
    return stream.getvalue()


def write_folder(folder, files):
    """The files in a folder."""
    folder.mkdir(parents=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


PUBLISHED = {
    "mnist": packed(idx_files(DIGITS_LIKE)),
    "fashion-mnist": packed(idx_files(CLOTHES_LIKE)),
    "cifar10": {"cifar-10-binary.tar.gz": tgz(record_files(PHOTOS), "cifar-10-batches-bin/")},
}
SETS = {
    known.name: fake_set(known, ARRAYS[known.name], PUBLISHED[known.name])
    for known in (MNIST, FASHION, CIFAR10)
}
ARCHIVES = {  # of every kind one
    "mnist": ("mnist.tgz", tgz(idx_files(DIGITS_LIKE), "package/data/")),
    "fashion-mnist": ("fashion.zip", zipped(packed(idx_files(CLOTHES_LIKE)))),
    "cifar10": ("cifar-10-binary.tar.gz", PUBLISHED["cifar10"]["cifar-10-binary.tar.gz"]),
}
