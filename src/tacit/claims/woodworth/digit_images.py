"""The small handwritten digits, split anew: many test images, as many splits as one likes."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from tacit.arguments import integer
from tacit.problems.images.arrays import Images
from tacit.problems.images.load import load_images

WHO = "digits"
LEAST = 10  # images on either side of a split


def digits(seed: int, *, train: int = 500, enlarged: int = 1) -> Images:
    """All digits of scikit-learn, `train` of them for training and the rest for testing.

    They are shuffled by `seed`. Every pixel is repeated `enlarged` times along both axes.
    """
    seed = integer(WHO, "seed", seed, least=0)
    enlarged = integer(WHO, "enlarged", enlarged, least=1)
    known = load_images("digits")
    pixels = np.concatenate([known.train_images, known.test_images])
    labels = np.concatenate([known.train_labels, known.test_labels])
    order = np.random.default_rng([seed, len(labels)]).permutation(len(labels))
    count = _train(train, len(labels))
    first, rest = order[:count], order[count:]
    return dataclasses.replace(
        known,
        train_images=larger(pixels[first], enlarged), train_labels=labels[first],
        test_images=larger(pixels[rest], enlarged), test_labels=labels[rest],
        description=f"{known.description}; split anew into {count} and {len(rest)}, each pixel"
        f" {enlarged} x {enlarged} times",
        recipe={**known.recipe, "split seed": seed, "train": count, "enlarged": enlarged},
    )  # fmt: skip


def larger(pixels: NDArray[np.float32], times: int) -> NDArray[np.float32]:
    """Every pixel `times` times along height and width."""
    return np.repeat(np.repeat(pixels, times, axis=1), times, axis=2)


def _train(given: object, count: int) -> int:
    train = integer(WHO, "train", given, least=LEAST)
    if train > count - LEAST:
        raise ValueError(
            f"{WHO}: train must leave {LEAST} of the {count} images for testing, got {train}"
        )
    return train
