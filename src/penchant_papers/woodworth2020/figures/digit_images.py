"""The small handwritten digits in random splits, with many test images."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
from numpy.typing import NDArray

from penchant.lab import door_as, integer
from penchant.problems import Images, has_images, load_images

WHO = "digits"
LEAST = 10  # images on either side of a split
MOST = 1000  # how many of the 1797 digits to train on in place of a larger set


@door_as("digits")
def digits(seed: int, *, train: int = 500, enlarged: int = 1) -> Images:
    """All digits of scikit-learn, `train` of them for training and the rest for testing.

    They are shuffled by `seed`. Every pixel is repeated `enlarged` times along both axes.
    """
    seed = integer("seed", seed, least=0)
    enlarged = integer("enlarged", enlarged, least=1)
    known = _read()
    pixels = np.concatenate([known.train_images, known.test_images])
    labels = np.concatenate([known.train_labels, known.test_labels])
    order = np.random.default_rng([seed, len(labels)]).permutation(len(labels))
    count = integer("train", train, least=LEAST)
    if count > len(labels) - LEAST:
        left = f"train must leave {LEAST} of the {len(labels)} images for testing"
        raise ValueError(f"{WHO}: {left}, got {train}")
    first, rest = order[:count], order[count:]
    return dataclasses.replace(
        known,
        train_images=larger(pixels[first], enlarged),
        train_labels=labels[first],
        test_images=larger(pixels[rest], enlarged),
        test_labels=labels[rest],
        description=f"{known.description}; split anew into {count} and {len(rest)}, each pixel"
        f" {enlarged} x {enlarged} times",
    )


@functools.cache
def _read() -> Images:
    return load_images("digits")


def present(images: str, otherwise: str) -> tuple[str, str]:
    """The images to use, and a sentence if they replace the requested ones.

    `otherwise` replaces images that are not on this machine; an empty name allows no replacement.
    """
    if not otherwise or has_images(images):
        return images, ""
    sentence = f"{images} is not on this machine: the small digits of scikit-learn stand in for it"
    return otherwise, f"{sentence} (see `penchant data {images}`)."


def larger(pixels: NDArray[np.float32], times: int) -> NDArray[np.float32]:
    """The images with every pixel repeated `times` times along height and width."""
    return np.repeat(np.repeat(pixels, times, axis=1), times, axis=2)
