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
    flat. The arrays are read-only.

    Attributes
    ----------
    name
        The name of the set.
    train_images
        The images for training.
    train_labels
        Their classes.
    test_images
        The images for testing.
    test_labels
        Their classes.
    classes
        The names of the classes.
    description
        One line that says what the data are.
    recipe
        What a maker needs to draw the same data again.

    Examples
    --------
    >>> import tacit
    >>> images = tacit.load_images("digits", train=20, test=10)
    >>> images.train_images.shape, len(images.classes)
    ((20, 8, 8, 1), 10)
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
