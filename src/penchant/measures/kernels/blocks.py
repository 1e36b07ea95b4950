"""Tangent kernels in blocks of samples, within a given number of bytes.

This number includes the kernel, the parameters, the gradients (or their factors) held at a time,
and the working memory of the compiled gradient and of the products of two blocks. It does not
include the inputs, the program with its libraries and compiler, the working memory of a Model's
own `jacobian`, and freed memory that the C library keeps for later (with glibc some tens of MB).
"""

from __future__ import annotations

import abc
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from penchant.arguments import Array, finite_array
from penchant.door import Invalid, door_as
from penchant.limits import Turns
from penchant.measures.kernels.factors import Factors
from penchant.measures.kernels.infinite import InfiniteKernel
from penchant.measures.kernels.products import product
from penchant.models.model import Model
from penchant.records import Kind, Outcome, Unsolved

LARGEST = 128  # samples in one block; larger blocks are not faster
LARGE = 0.25  # share of the memory above which gradients are computed output by output
ROOM = 0.85  # the planned share of the memory; Python and JAX need the rest


class Reformed(Exception):
    """The gradients have another form from now on, so that those held before do not fit."""


class Gradients(abc.ABC):
    """Gradients of blocks of samples, and the bytes that they need."""

    form = 0  # grows when the gradients are computed in another way, as factors or whole

    outputs: int  # outputs per sample
    held: int  # bytes of the gradients of one sample
    fixed: int  # bytes held throughout, such as the parameters
    times: int  # the largest number of vectors of one sample in one layer
    names: dict[Any, str]  # names of the parameters, by their keys in Factors

    @abc.abstractmethod
    def work(self, size: int) -> int:
        """Bytes of working memory for the gradients of `size` samples, without the result."""

    @abc.abstractmethod
    def block(self, x: Any, size: int) -> Factors:
        """The gradients of the samples `x`, at most `size` of them."""

    @abc.abstractmethod
    def values(self, x: Any) -> Array:
        """The outputs of the samples `x`, (samples, outputs)."""

    @abc.abstractmethod
    def move(self, params: Any) -> None:
        """Sets the parameters at which gradients are computed from now on; same structure."""

    def measure(self) -> None:
        """Set the numbers of bytes again, after a change of the form."""
        raise NotImplementedError  # of those that never change it

    def singles(self) -> Iterator[Gradients]:
        """Gradients of one output after the other; empty if that would need more time."""
        return iter(())


class ModelGradients(Gradients):
    """The rows of a Model's own Jacobian."""

    def __init__(self, model: Model, params: Array):
        self.model, self.outputs, self.times = model, 1, 1
        self.held = self.fixed = params.nbytes
        self.names = {0: "parameters"}
        self.move(params)

    def work(self, size: int) -> int:
        return 0

    def block(self, x: Any, size: int) -> Factors:
        return Factors({0: self.model.jacobian(self.params, x)[:, None, :]}, {})

    def values(self, x: Any) -> Array:
        return self.model.predict(self.params, x)[:, None]

    @door_as("Gradients")
    def move(self, params: Any) -> None:
        self.params = finite_array("params", params, ndim=1)


class BlockSizes(NamedTuple):
    """The samples in one block, and how many of the first inputs are held at a time."""

    size: int
    held: int


def blocked_kernel(
    gradients: Gradients | InfiniteKernel, x: Any, x2: Any | None, full: bool, memory: float
) -> Array:
    """K (N, N2), the mean over the outputs, or with `full` K (N, C, N2, C) of all pairs of them."""
    if isinstance(gradients, InfiniteKernel):
        K = gradients(x, x2)
        return K[:, None, :, None] if full else K
    everything = dict.fromkeys(gradients.names, 0)
    return grouped_kernels(gradients, x, x2, full, memory, everything)[0]


def grouped_kernels(
    gradients: Gradients,
    x: Any,
    x2: Any | None,
    full: bool,
    memory: float,
    groups: Mapping[Any, int],
) -> Array:
    """The kernel of every group of parameters; their sum is the whole kernel.

    `groups` maps the keys of `gradients.names` to numbers from 0 on, which are the first axis.
    """
    outputs = gradients.outputs
    if not full and outputs > 1 and gradients.held * len(x) > memory * LARGE:
        parts = gradients.singles()  # all outputs at once would need several passes
        if (kernels := _summed(parts, x, x2, memory, groups)) is not None:
            return kernels / outputs
    columns = x if x2 is None else x2
    kept, count = outputs if full else 1, max(groups.values()) + 1
    blocks = plan(gradients, len(x), len(columns), kept, memory, count)
    kernels = np.zeros((count, len(x), kept, len(columns), kept))
    try:
        for rows, others, part in _parts(gradients, x, x2, blocks, full, groups):
            _require_finite(part, rows, others)
            kernels[:, rows, :, others] = part
            if x2 is None:
                kernels[:, others, :, rows] = part.transpose(0, 3, 4, 1, 2)
    except Reformed:  # each time fewer parameters have factors, so that this ends
        gradients.measure()
        return grouped_kernels(gradients, x, x2, full, memory, groups)
    if not full:
        kernels /= outputs
    return kernels if full else kernels[:, :, 0, :, 0]


def _summed(
    parts: Iterator[Gradients],
    x: Any,
    x2: Any | None,
    memory: float,
    groups: Mapping[Any, int],
) -> Array | None:
    """The sum of the kernels of single outputs; None if `parts` is empty."""
    total = None
    for single in parts:
        part = grouped_kernels(single, x, x2, False, memory, groups)
        total = part if total is None else total + part
    return total


def output_kernels(gradients: Gradients, x: Any, memory: float) -> Array:
    """The kernel of every output alone, (C, N, N)."""
    kernels = [blocked_kernel(single, x, None, False, memory) for single in gradients.singles()]
    if kernels:
        return np.stack(kernels)
    full = blocked_kernel(gradients, x, None, True, memory)
    return np.einsum("ncmc->cnm", full)


def plan(
    gradients: Gradients,
    rows: int,
    columns: int,
    kept: int,
    memory: float,
    groups: int = 1,
) -> BlockSizes:
    """The blocks that fit into `memory` bytes; otherwise the error says how many are enough."""
    result = 8 * rows * columns * kept**2 * groups
    free = ROOM * memory - gradients.fixed - result
    size = int(max(1, min(max(rows, columns), LARGEST, free // (4 * gradients.held))))
    turns = Turns(64, "the plan of the blocks of a kernel")
    while sum(needs := _needs(gradients, size, kept)) > free:
        turns.take()
        if size == 1:
            enough = math.ceil((gradients.fixed + result + sum(needs)) / ROOM)
            raise Invalid(
                f"memory={memory:.3g} bytes are too few: the kernel takes {result:.3g}, the "
                f"parameters {gradients.fixed:.3g} and the least block {sum(needs):.3g}; "
                f"memory={enough} is enough"
            )
        size = int(max(1, min(size // 2, size * free / sum(needs))))
    return BlockSizes(size, int(min(rows, size * ((free - needs[0]) // needs[1]))))


def _needs(gradients: Gradients, size: int, kept: int) -> tuple[int, int]:
    """Bytes to compute one block, and bytes for every block that is held and multiplied with it."""
    tile = 40 * (size * gradients.times * kept) ** 2  # sums, parts and products of two blocks
    held = size * gradients.held
    return held + gradients.work(size), held + tile


def _parts(
    gradients: Gradients,
    x: Any,
    x2: Any | None,
    blocks: BlockSizes,
    full: bool,
    groups: Mapping[Any, int],
) -> Iterator[tuple[slice, slice, Array]]:
    """Every part of the kernel with its place; of a symmetric kernel only the upper parts."""
    columns, form = x if x2 is None else x2, gradients.form
    for first in range(0, len(x), blocks.held):
        group = slice(first, min(first + blocks.held, len(x)))
        left = _joined(gradients, x[group], blocks.size, form)
        for at in range(0 if x2 is not None else first, len(columns), blocks.size):
            other = slice(at, min(at + blocks.size, len(columns)))
            if x2 is None and other.stop <= group.stop:  # among those held
                near, far = slice(0, other.stop - first), slice(at - first, other.stop - first)
                # no names here: they would hold these gradients while the next are computed
                part = product(_cut(left, near), _cut(left, far), full, groups)
                square = part[:, far]
                part[:, far] = (square + square.transpose(0, 3, 4, 1, 2)) / 2  # to the last bit
                yield slice(first, other.stop), other, part
            else:
                right = _block(gradients, columns[other], blocks.size, form)
                yield group, other, product(left, right, full, groups)
                del right
        del left


def _block(gradients: Gradients, x: Any, size: int, form: int) -> Factors:
    """The gradients of the samples `x` in this form."""
    block = gradients.block(x, size)
    if gradients.form != form:
        raise Reformed
    return block


def _joined(gradients: Gradients, x: Any, size: int, form: int) -> Factors:
    """The gradients of all samples `x`, computed in blocks and written into one set of arrays."""
    whole = None
    for at in range(0, len(x), size):
        part = _block(gradients, x[at : at + size], size, form)
        if len(x) <= size:
            return part
        whole = whole or _changed(part, lambda a: np.empty((len(x), *a.shape[1:]), a.dtype))
        for into, array in zip(_arrays(whole), _arrays(part), strict=True):
            into[at : at + size] = array
        del part, array  # frees their memory before the next block
    assert whole is not None
    return whole


def _arrays(factors: Factors) -> list[Any]:
    return [
        *factors.rows.values(),
        *(array for layer in factors.layers.values() for array in layer),
    ]


def _changed(factors: Factors, change: Callable[[Any], Any]) -> Factors:
    layers = {key: (change(h), change(slopes)) for key, (h, slopes) in factors.layers.items()}
    return Factors({key: change(row) for key, row in factors.rows.items()}, layers)


def _cut(factors: Factors, samples: slice) -> Factors:
    return _changed(factors, operator.itemgetter(samples))


def _require_finite(part: Array, rows: slice, others: slice) -> None:
    if np.isfinite(part).all():
        return
    _, n, _, m, _ = np.argwhere(~np.isfinite(part))[0]
    text = (
        f"the kernel of samples {rows.start + n} and {others.start + m} is not finite; the "
        "gradient of one of them overflows (precision='double' reaches further) or is undefined"
    )
    raise Unsolved(Outcome(Kind.DIVERGED, text))
