"""The bytes of published files as arrays: idx files, sheets of pictures, binary records."""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Files = Mapping[str, bytes]


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
    expected, found = int(np.prod(shape, dtype=np.int64)), len(data) - 4 - 4 * data[3]
    if found != expected:
        raise ValueError(f"{name} announces {expected} bytes, but holds {found}")
    return np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(tuple(shape))


def _idx_arrays(files: Files) -> dict[str, Bytes]:
    read = {part: idx(name, files[name]) for part, name in _IDX_FILES.items()}
    for part in ("train_images", "test_images"):
        read[part] = read[part][..., None]  # grey is one channel
    return read


def sheet(name: str, data: bytes) -> Bytes:
    """The colour images of a PNG whose rows are one image of 32 x 32 pixels each."""
    image = _opened(name, data)
    if image.mode != "RGB" or image.width != 32 * 32:
        raise ValueError(
            f"{name} must be an RGB picture 1024 pixels wide, got {image.mode}, {image.width}"
        )
    try:
        return np.asarray(image).reshape(-1, 32, 32, 3)
    except (OSError, SyntaxError) as reason:  # Pillow says a broken PNG with either
        raise ValueError(f"{name} is a damaged PNG ({reason})") from None


def _opened(name: str, data: bytes) -> Any:
    """The picture, its pixels not read yet."""
    try:
        from PIL import Image
    except ImportError:
        raise ImportError(
            f"{name} is a PNG and needs Pillow: pip install 'penchant[data]'"
        ) from None
    try:
        return Image.open(io.BytesIO(data), formats=("PNG",))
    except (OSError, SyntaxError, Image.DecompressionBombError):
        raise ValueError(f"{name} is no PNG picture, or one that is far too large") from None


def _label_list(name: str, data: bytes) -> Bytes:
    """The labels of a JSON list of classes."""
    try:
        labels = json.loads(data)
    except ValueError as reason:
        raise ValueError(f"{name} is no JSON file ({reason})") from None
    if not isinstance(labels, list) or any(label not in range(10) for label in labels):
        raise ValueError(f"{name} must be a list of classes 0 to 9")
    return np.array(labels, dtype=np.uint8)


def _sheet_arrays(files: Files) -> dict[str, Bytes]:
    *batches, test, train_labels, test_labels = SHEETS.names
    return {
        "train_images": np.concatenate([sheet(name, files[name]) for name in batches]),
        "train_labels": _label_list(train_labels, files[train_labels]),
        "test_images": sheet(test, files[test]),
        "test_labels": _label_list(test_labels, files[test_labels]),
    }


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
SHEETS = Layout(  # `lables` is how the package spells it
    (*(f"{name}.png" for name in _BATCHES), "train_lables.json", "test_lables.json"), _sheet_arrays
)
RECORDS = Layout(tuple(f"{name}.bin" for name in _BATCHES), _record_arrays)
