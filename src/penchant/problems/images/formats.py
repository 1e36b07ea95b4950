"""The bytes of published files as arrays: idx files, binary records, .npz files."""

from __future__ import annotations

import dataclasses
import io
import math
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Files = Mapping[str, bytes]
PARTS = ("train_images", "train_labels", "test_images", "test_labels")


@dataclasses.dataclass(frozen=True)
class Layout:
    """The names of the files that hold a set, and how the four arrays are read from them."""

    names: tuple[str, ...]
    decode: Callable[[Files], dict[str, Bytes]]


def idx(name: str, data: bytes) -> Bytes:
    """The array of an idx file of bytes: two zeros, 8, the number of axes, their lengths, data."""
    if data[:3] != b"\0\0\x08" or len(data) < 4 + 4 * data[3]:
        raise ValueError(f"{name} is no idx file of bytes")
    shape = np.frombuffer(data, ">u4", count=data[3], offset=4)
    expected, held = int(np.prod(shape, dtype=np.int64)), len(data) - 4 - 4 * data[3]
    if held != expected:
        raise ValueError(f"{name} announces {expected} bytes, but holds {held}")
    return np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(tuple(shape))


def _idx_arrays(files: Files) -> dict[str, Bytes]:
    return _with_channels({part: idx(name, files[name]) for part, name in _IDX_FILES.items()})


def _with_channels(arrays: dict[str, Bytes]) -> dict[str, Bytes]:
    """The arrays, with an axis for the one channel of grey images."""
    return {part: a[..., None] if a.ndim == 3 else a for part, a in arrays.items()}


def npy_header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """The shape and the type that an .npy file declares; its numbers come next in the stream."""
    older = np.lib.format.read_magic(stream) == (1, 0)
    read = np.lib.format.read_array_header_1_0 if older else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(stream)
    return shape, dtype


def npy(name: str, data: bytes) -> Bytes:
    """The array of an .npy file of bytes."""
    stream = io.BytesIO(data)
    shape, dtype = npy_header(stream)
    expected, held = math.prod(shape), len(data) - stream.tell()
    if dtype != np.uint8 or held != expected:
        raise ValueError(f"{name} announces {expected} numbers {dtype}, but holds {held} bytes")
    return np.frombuffer(data, np.uint8, offset=stream.tell()).reshape(shape)


def _npz(names: Sequence[str]) -> Layout:
    """The layout of an .npz file, which is a zip archive of .npy files."""
    files = {part: f"{name}.npy" for part, name in zip(PARTS, names, strict=True)}

    def decode(contents: Files) -> dict[str, Bytes]:
        return _with_channels({part: npy(file, contents[file]) for part, file in files.items()})

    return Layout(tuple(files.values()), decode)


def records(name: str, data: bytes) -> tuple[Bytes, Bytes]:
    """Images and labels of records of a label byte and the red, green and blue plane."""
    size = 1 + 3 * 32 * 32
    if not data or len(data) % size:
        raise ValueError(f"{name} must hold records of {size} bytes, got {len(data)} bytes")
    rows = np.frombuffer(data, np.uint8).reshape(-1, size)
    return rows[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), rows[:, 0]


def _record_arrays(files: Files) -> dict[str, Bytes]:
    *batches, test = [records(name, files[name]) for name in RECORDS.names]
    images, labels = zip(*batches, strict=True)
    return {
        "train_images": np.concatenate(images),
        "train_labels": np.concatenate(labels),
        "test_images": test[0],
        "test_labels": test[1],
    }


_IDX_FILES = {
    f"{ours}_{what}": f"{theirs}-{what}-idx{axes}-ubyte"
    for ours, theirs in (("train", "train"), ("test", "t10k"))
    for what, axes in (("images", 3), ("labels", 1))
}
_BATCHES = [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]

IDX = Layout(tuple(_IDX_FILES.values()), _idx_arrays)
RECORDS = Layout(tuple(f"{name}.bin" for name in _BATCHES), _record_arrays)
STORED = _npz(PARTS)  # a file of the cache folder
KERAS = _npz(("x_train", "y_train", "x_test", "y_test"))
