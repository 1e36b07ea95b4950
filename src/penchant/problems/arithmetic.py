"""Pairs of tokens with a class each, and test pairs implied by training pairs."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import ArrayLike, NDArray

from penchant.arguments import integer
from penchant.door import Invalid, door
from penchant.records import Record

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

WHO = "TokenPairs"


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class TokenPairs(Record):
    """Pairs (a, b) of tokens 0 .. tokens-1 with a class each; `train` marks the training pairs.

    `pairs` is an (N, 2) array without repeats, `labels` holds classes 0 .. classes-1. All pairs
    outside training are test pairs.
    """

    tokens: int
    classes: int
    pairs: Integers
    labels: Integers
    train: Mask
    description: str = "pairs of tokens given as arrays"

    @door
    def __post_init__(self) -> None:
        integer("tokens", self.tokens, least=1)
        integer("classes", self.classes, least=2)
        pairs = _whole("pairs", self.pairs, 2, self.tokens)
        if pairs.shape[1] != 2:
            raise Invalid(f"pairs must have two columns, got shape {pairs.shape}")
        labels = _whole("labels", self.labels, 1, self.classes)
        train = _mask(self.train)
        if not len(pairs) == len(labels) == len(train):
            raise Invalid(
                f"pairs, labels and train must have one length, got {len(pairs)}, "
                f"{len(labels)} and {len(train)}"
            )
        for name, array in (("pairs", pairs), ("labels", labels), ("train", train)):
            array.setflags(write=False)  # all three are copies of what was given
            object.__setattr__(self, name, array)
        self._no_repeats()

    @property
    def samples(self) -> int:
        """The number of training pairs."""
        return int(self.train.sum())

    @property
    def test(self) -> Mask:
        return ~self.train

    @property
    def twins(self) -> Mask:
        """Test pairs (a, b) whose mirror (b, a) is a training pair with the same label.

        A model that cannot distinguish a from b gets them right as soon as training is solved.
        """
        answers = dict(zip(self._keys[self.train].tolist(), self.labels[self.train], strict=True))
        mirrors = (self.pairs[:, 1] * self.tokens + self.pairs[:, 0]).tolist()
        same = [answers.get(m) == label for m, label in zip(mirrors, self.labels, strict=True)]
        return self.test & np.array(same)

    @property
    def novel(self) -> Mask:
        """Test pairs that are not twins: only these show that the rule was found."""
        return self.test & ~self.twins

    @property
    def _keys(self) -> Integers:
        return self.pairs[:, 0] * self.tokens + self.pairs[:, 1]

    def _no_repeats(self) -> None:
        keys, counts = np.unique(self._keys, return_counts=True)
        if (counts > 1).any():
            a, b = divmod(int(keys[int(np.argmax(counts > 1))]), self.tokens)
            raise ValueError(f"{WHO}: every pair may occur once, but ({a}, {b}) is repeated")


def all_pairs(tokens: int) -> Integers:
    """Every pair of two tokens, (0, 0), (0, 1) and so on."""
    return np.stack(np.divmod(np.arange(tokens * tokens), tokens), axis=1)


def split(total: int, fraction: float, seed: int) -> Mask:
    """A random mask that marks a `fraction` of `total` pairs for training."""
    samples = round(fraction * total)
    if not 0 < samples < total:
        raise Invalid(
            f"fraction must leave training and test pairs among {total}, got {fraction:g}"
        )
    train = np.zeros(total, dtype=bool)
    train[np.random.default_rng(seed).permutation(total)[:samples]] = True
    return train


def _whole(name: str, value: ArrayLike, ndim: int, count: int) -> Integers:
    """`value` as an array of integers 0 .. count-1."""
    array = np.asarray(value)
    if array.dtype.kind not in "iu" or array.ndim != ndim or array.size == 0:
        raise ValueError(
            f"{WHO}: {name} must be a non-empty integer array of {ndim} dimension(s), "
            f"got {array.dtype} of shape {array.shape}"
        )
    outside = array[(array < 0) | (array >= count)]
    if outside.size:
        raise ValueError(f"{WHO}: {name} must lie in 0 .. {count - 1}, got {outside[0]}")
    return array.astype(np.int64)


def _mask(value: ArrayLike) -> Mask:
    mask = np.array(value)
    if mask.dtype != bool or mask.ndim != 1:
        raise ValueError(
            f"{WHO}: train must be a list of booleans, got {mask.dtype} of shape {mask.shape}"
        )
    if mask.all() or not mask.any():
        raise ValueError(
            f"{WHO}: train must leave training and test pairs, got {mask.sum()} of {len(mask)}"
        )
    return mask
