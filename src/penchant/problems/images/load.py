"""Image sets as arrays, from the cache folder or from scikit-learn, never from the network."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from penchant.arguments import integer, one_of
from penchant.description import with_recipe
from penchant.door import Invalid, door, door_as
from penchant.problems.images import cache
from penchant.problems.images.catalogue import Arrays, ImageSet, find
from penchant.records import Record

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

    Examples
    --------
    >>> import penchant
    >>> images = penchant.problems.load_images("digits", train=20, test=10)
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

    def __post_init__(self) -> None:
        for field in ("train_images", "train_labels", "test_images", "test_labels"):
            object.__setattr__(self, field, np.asarray(getattr(self, field)))
            getattr(self, field).setflags(write=False)
        object.__setattr__(self, "classes", tuple(self.classes))


WHO = "load_images"
Part = tuple[Pixels, Labels]


@with_recipe
@door
def load_images(
    name: str,
    train: int | None = None,
    test: int | None = None,
    classes: Sequence[int | str] | None = None,
    seed: int = 0,
    flat: bool = False,
    channels_first: bool = False,
) -> Images:
    """The images `mnist`, `fashion-mnist`, `cifar10` or `digits`, between 0 and 1 as float32.

    Nothing is downloaded: if the set is missing, the error names the command that gets it.

    Parameters
    ----------
    name
        The name of the set.
    train
        The number of training images, drawn with `seed`. With the same seed, a smaller draw is
        the beginning of a larger one. None takes all images in the published order.
    test
        The same for testing.
    classes
        Keeps only these classes, given by number or name, and renumbers them in this order.
    seed
        The seed of all random numbers.
    flat
        Turns each image into one vector.
    channels_first
        Puts the channels before height and width, as PyTorch wants them; else they come last.

    Returns
    -------
    Images
        The images and their classes.

    Examples
    --------
    >>> import penchant
    >>> part = {"train": 20, "test": 10, "classes": [3, 8]}
    >>> images = penchant.problems.load_images("digits", flat=True, **part)
    >>> images.train_images.shape, images.classes
    ((20, 64), ('3', '8'))
    """
    images = find(name)
    chosen = _classes(images, classes)
    seed = integer("seed", seed, least=0)
    arrays = cache.read(images)
    parts = {
        which: _part(images, arrays, which, count, chosen, seed)
        for which, count in (("train", train), ("test", test))
    }
    if channels_first:
        if flat:
            raise Invalid("flat images have no channels; leave out flat or channels_first")
        parts = {which: (np.moveaxis(x, -1, 1), y) for which, (x, y) in parts.items()}
    if flat:
        parts = {which: (x.reshape(len(x), -1), y) for which, (x, y) in parts.items()}
    names = tuple(images.classes[label] for label in chosen)
    description = _description(images, arrays, parts, len(chosen), seed)
    return Images(images.name, *parts["train"], *parts["test"], names, description)


def _classes(images: ImageSet, classes: Sequence[int | str] | None) -> list[int]:
    """The numbers of the chosen classes, in their order."""
    if classes is None:
        return list(range(len(images.classes)))
    chosen = [_class(images, label) for label in classes]
    if len(chosen) < 2 or len(set(chosen)) < len(chosen):
        raise ValueError(f"{WHO}: classes must be two or more different ones, got {classes!r}")
    return chosen


@door_as(WHO)
def _class(images: ImageSet, label: int | str) -> int:
    if isinstance(label, str):
        return images.classes.index(one_of(f"class of {images.name}", label, images.classes))
    number = integer("a class", label, least=0)
    if number >= len(images.classes):
        raise Invalid(
            f"a class of {images.name} must be at most {len(images.classes) - 1}, got {number}"
        )
    return number


def _part(
    images: ImageSet, arrays: Arrays, which: str, count: int | None, chosen: list[int], seed: int
) -> Part:
    """The training or test half: pixels between 0 and 1, and labels by their index in `chosen`."""
    labels = arrays[f"{which}_labels"]
    class_index = np.full(256, -1)
    class_index[chosen] = np.arange(len(chosen))
    rows = _rows(which, np.flatnonzero(class_index[labels] >= 0), count, seed)
    pixels = np.divide(arrays[f"{which}_images"][rows], np.float32(images.white), dtype=np.float32)
    return pixels, class_index[labels[rows]]


@door_as(WHO)
def _rows(which: str, rows: NDArray[np.intp], count: int | None, seed: int) -> NDArray[np.intp]:
    """`count` of the rows in an order drawn by `seed`, or all as they are."""
    if count is None:
        return rows
    count = integer(which, count, least=1)
    if count > len(rows):
        raise Invalid(f"{which} must be at most {len(rows)}, the number of images, got {count}")
    stream = np.random.default_rng([seed, ("train", "test").index(which)])
    return stream.permutation(rows)[:count]


def _description(
    images: ImageSet, arrays: Arrays, parts: dict[str, Part], classes: int, seed: int
) -> str:
    size = "x".join(map(str, images.shape))
    train, test = (f"{len(parts[which][1])} of {len(arrays[f'{which}_labels'])}" for which in parts)
    return (
        f"{images.title} ({images.credit}), {size}: {train} training and {test} test images, "
        f"{classes} classes, seed {seed}"
    )
