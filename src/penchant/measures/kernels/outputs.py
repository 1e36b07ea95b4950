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

    A number is the place in a tuple; it says nothing about an array. All axes after the first
    become one, unless a projection replaces them by random sums. The samples are on the axis
    `axis`, which becomes the first, unless `wanted` is a function.
    """

    def __init__(self, wanted: str | int | Callable[[Any], Any] | None = None, axis: int = 0):
        self.wanted, self.axis = wanted, 0 if callable(wanted) else axis
        self.parted = False  # whether the model returns a tuple, of which a number picks a part
        self.shape: tuple[int, ...] = ()  # of the outputs of one sample
        self.projection: Projection | None = None
        self.untouched = False  # whether the model's return value is used unchanged

    def __call__(self, answer: Any) -> Any:
        read = self._read(answer)
        self.untouched = read is answer
        return read

    def _read(self, answer: Any) -> Any:
        answer = self.pick(answer)
        if not hasattr(answer, "shape") or not hasattr(answer, "reshape"):
            return answer
        if 0 < self.axis < len(answer.shape):
            order = [self.axis, *(n for n in range(len(answer.shape)) if n != self.axis)]
            answer = (
                answer.permute(order) if hasattr(answer, "permute") else answer.transpose(order)
            )
        self.shape = tuple(answer.shape[1:])
        if self.projection is not None:
            return self.projection(answer)
        return answer if len(answer.shape) < 3 else answer.reshape(answer.shape[0], -1)

    def pick(self, answer: Any) -> Any:
        """The wanted part, with all its axes."""
        if isinstance(self.wanted, int):
            self.parted = isinstance(answer, tuple | list)
            if self.parted and self.wanted >= len(answer):
                raise Invalid(
                    f"the model returns {len(answer)} parts, and output={self.wanted} counts from 0"
                )
            return answer[self.wanted] if self.parted else _with_logits(answer)
        if self.wanted is None:
            return _with_logits(answer)
        if not isinstance(self.wanted, str):
            return self.wanted(answer)
        if not _holds(answer, self.wanted):
            names = ", ".join(answer) if hasattr(answer, "keys") else type(answer).__name__
            raise Invalid(
                f"the model returns no {self.wanted!r} (but {names}); output= must be "
                "one of its names, or a function of what it returns"
            )
        return _part(answer, self.wanted)


class Projection:
    """`count` random sums of the outputs of a sample; `convert` makes an array of the library."""

    def __init__(self, shape: tuple[int, ...], count: int, convert: Callable[[Any], Any]):
        random = np.random.default_rng(0)
        self.signs = [convert(random.choice([-1.0, 1.0], (size, count))) for size in shape]
        self.scale = 1 / math.sqrt(math.prod(shape))

    def __call__(self, outputs: Any) -> Any:
        *others, last = self.signs
        outputs = outputs @ last * self.scale
        for signs in reversed(others):
            outputs = (outputs * signs).sum(-2)
        return outputs


def projection_error(each: Array) -> float:
    """The relative standard error of the mean kernel, from the kernels (C, N, N) of single sums."""
    spread = each.std(axis=0, ddof=1) / math.sqrt(len(each))
    return float(np.linalg.norm(spread) / np.linalg.norm(each.mean(axis=0)))


def _with_logits(answer: Any) -> Any:
    bare = hasattr(answer, "shape") or not _holds(answer, "logits")
    return answer if bare else _part(answer, "logits")


def _holds(answer: Any, name: str) -> bool:
    return name in answer if hasattr(answer, "keys") else hasattr(answer, name)


def _part(answer: Any, name: str) -> Any:
    return answer[name] if hasattr(answer, "keys") else getattr(answer, name)
