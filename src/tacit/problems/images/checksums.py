"""Whether arrays are the published ones: sha256 of their bytes against the catalogue."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np

from tacit.problems.images.catalogue import CATALOGUE, PARTS, Bytes, ImageSet


def checksum(array: Bytes) -> str:
    """The sha256 of the bytes of an array, rows first."""
    return hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()


def complaint(images: ImageSet, arrays: Mapping[str, Bytes]) -> str:
    """What is wrong with the arrays of a set, as the end of a sentence; empty if they are right."""
    seen = {part: checksum(arrays[part]) for part in PARTS}
    expected = dict(zip(PARTS, images.checksums, strict=True))
    for part in PARTS:
        if seen[part] != expected[part]:
            return (
                f"{part} have the sha256 {seen[part][:12]}… instead of {expected[part][:12]}…"
                f"{_another(images, seen)}"
            )
        if arrays[part].dtype != np.uint8 or arrays[part].shape != _shapes(images)[part]:
            return f"{part} have the shape {arrays[part].shape}, not {_shapes(images)[part]}"
    return ""


def _shapes(images: ImageSet) -> dict[str, tuple[int, ...]]:
    train, test = images.counts
    shapes = ((train, *images.shape), (train,), (test, *images.shape), (test,))
    return dict(zip(PARTS, shapes, strict=True))


def _another(images: ImageSet, seen: Mapping[str, str]) -> str:
    """A hint if these are the arrays of another set: two of them share their file names."""
    same = [known.name for known in CATALOGUE.values() if known.checksums == tuple(seen.values())]
    return f": these are the images of {same[0]}" if same and same[0] != images.name else ""
