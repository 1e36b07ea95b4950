"""Labelled images for training and testing."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.records import Record

Pixels = NDArray[np.float32]
Labels = NDArray[np.int64]


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Images(Record):
    """Images between 0 and 1 with a class 0 .. len(classes)-1 each, for training and for testing.

    Images have the axes sample, height, width and channel, or sample and pixel when they are
    flat. `classes` names the classes. The arrays are read-only.
    """

    name: str
    train_images: Pixels
    train_labels: Labels
    test_images: Pixels
    test_labels: Labels
    classes: tuple[str, ...]
    description: str
    recipe: dict[str, Any]

    def __post_init__(self) -> None:
        for field in ("train_images", "train_labels", "test_images", "test_labels"):
            getattr(self, field).setflags(write=False)
