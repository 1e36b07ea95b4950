"""Which outputs of a model are used: chosen by name, by a function, or as a few random sums.

The mean kernel (1/C) sum_c <grad f_c(x), grad f_c(x')> of many outputs is the expectation of that
of random sums f·r / sqrt(C) with signs r; for outputs on several axes r is a product of signs for
each axis, so that no array is as large as the outputs times the sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from penchant.arguments import Array
from penchant.door import Invalid

MANY = 512  # for more outputs, random sums estimate the mean kernel
SAMPLES = 16  # the number of samples on which the error of the sums is measured


class Output:
    """Reads an array with a row per sample from what a model returns: `wanted`, or its logits.

    All axes after the first become one, unless a projection replaces them by random sums.
    """

    def __init__(self, wanted: str | Callable[[Any], Any] | None = None):
        self.wanted = wanted
        self.shape: tuple[int, ...] = ()  # of the outputs of one sample
        self.projection: Projection | None = None
        self.untouched = False  # whether the model's return value is used unchanged

    def __call__(self, found: Any) -> Any:
        read = self._read(found)
        self.untouched = read is found
        return read

    def _read(self, found: Any) -> Any:
        found = self.pick(found)
        if not hasattr(found, "shape") or not hasattr(found, "reshape"):
            return found
        self.shape = tuple(found.shape[1:])
        if self.projection is not None:
            return self.projection(found)
        return found if len(found.shape) < 3 else found.reshape(found.shape[0], -1)

    def pick(self, found: Any) -> Any:
        """The wanted part, with all its axes."""
        if self.wanted is None:
            bare = hasattr(found, "shape") or not _holds(found, "logits")
            return found if bare else _part(found, "logits")
        if not isinstance(self.wanted, str):
            return self.wanted(found)
        if not _holds(found, self.wanted):
            names = ", ".join(found) if hasattr(found, "keys") else type(found).__name__
            raise Invalid(
                f"the model returns no {self.wanted!r} (but {names}); output= must be "
                "one of its names, or a function of what it returns"
            )
        return _part(found, self.wanted)


class Projection:
    """`count` random sums of the outputs of a sample; `convert` makes an array of the library."""

    def __init__(self, shape: tuple[int, ...], count: int, convert: Callable[[Any], Any]):
        random = np.random.default_rng(0)
        self.signs = [convert(random.choice([-1.0, 1.0], (size, count))) for size in shape]
        self.scale = 1 / math.sqrt(math.prod(shape))

    def __call__(self, found: Any) -> Any:
        *others, last = self.signs
        found = found @ last * self.scale
        for signs in reversed(others):
            found = (found * signs).sum(-2)
        return found


def projection_error(each: Array) -> float:
    """The relative standard error of the mean kernel, from the kernels (C, N, N) of single sums."""
    spread = each.std(axis=0, ddof=1) / math.sqrt(len(each))
    return float(np.linalg.norm(spread) / np.linalg.norm(each.mean(axis=0)))


def _holds(found: Any, name: str) -> bool:
    return name in found if hasattr(found, "keys") else hasattr(found, name)


def _part(found: Any, name: str) -> Any:
    return found[name] if hasattr(found, "keys") else getattr(found, name)
