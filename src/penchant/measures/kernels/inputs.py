"""Inputs of a model as several arrays, in a mapping or a tuple.

A sample is then its row number in all arrays (Table); for a JAX function, which is compiled, it is
one row with the numbers of all arrays (Packed).
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from penchant.arguments import Array, finite_array
from penchant.door import Invalid

WHOLE = 2**24  # single precision represents integers up to here exactly


def several(given: Any) -> bool:
    """True if the inputs are a mapping or a tuple of arrays, not one array."""
    return isinstance(given, Mapping | tuple)


class InputTree:
    """A tree of mappings and tuples; its arrays have a row per sample, the rest is constant."""

    def __init__(self, name: str, tree: Any):
        self.tree = mapped(tree, lambda leaf: leaf)
        sizes = {len(leaf) for leaf in leaves(self.tree) if _has_rows(leaf)}
        if len(sizes) != 1 or not min(sizes):
            seen = f"arrays of {', '.join(map(str, sorted(sizes)))} rows" if sizes else "no array"
            raise Invalid(f"the arrays of {name} must have one row per sample each, got {seen}")
        (self.rows,) = sizes

    def __len__(self) -> int:
        return self.rows

    def at(self, numbers: Any) -> Any:
        """The tree with copies of the rows `numbers` of every array."""
        return mapped(self.tree, lambda leaf: leaf[numbers] if _has_rows(leaf) else leaf)


class Packed:
    """f(params, x) for a `function` of several arrays, whose rows are concatenated in a row of x.

    `tree` gives the structure; leaves that are not arrays are constants.
    """

    def __init__(self, function: Callable[[Any, Any], Any], tree: Any):
        self.function, self.tree = function, mapped(tree, _row)

    def __call__(self, params: Any, x: Any) -> Any:
        return self.function(params, self.unpacked(x))

    def packed(self, name: str, tree: Any) -> Array:
        """One row of numbers per sample."""
        given = InputTree(name, tree)
        if mapped(given.tree, _row) != self.tree:
            raise Invalid(f"{name} must have the structure of the first inputs")
        parts = [self._numbers(name, leaf) for leaf in leaves(given.tree) if _has_rows(leaf)]
        return np.concatenate([part.reshape(len(given), -1) for part in parts], axis=1)

    def unpacked(self, x: Any) -> Any:
        """The separate arrays; integers are integers again."""
        at = iter(np.cumsum([0, *(row.size for row in leaves(self.tree) if _is_row(row))]).tolist())

        def cut(row: Any) -> Any:
            if not _is_row(row):
                return row
            begin = next(at)
            part = x[:, begin : begin + row.size].reshape(len(x), *row.shape)
            return part if row.kind == "f" else part.astype(row.dtype)

        return mapped(self.tree, cut)

    def _numbers(self, name: str, leaf: Any) -> Array:
        array = np.asarray(leaf)
        if array.dtype.kind in "iu" and array.size and np.abs(array).max() > WHOLE:
            raise Invalid(f"integers of {name} must not exceed {WHOLE}, got {np.abs(array).max()}")
        return finite_array(name, array.astype(np.float64), ndim=array.ndim)


def spread(tree: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """(args, kwargs) of the call of a model: a mapping gives names, a tuple gives positions."""
    return ((), dict(tree)) if isinstance(tree, Mapping) else (tuple(tree), {})


def mapped(tree: Any, change: Callable[[Any], Any]) -> Any:
    """The tree as plain dicts and tuples, with `change` applied to every leaf."""
    if isinstance(tree, Mapping):
        return {name: mapped(part, change) for name, part in tree.items()}
    if isinstance(tree, tuple):
        return tuple(mapped(part, change) for part in tree)
    return change(tree)


def leaves(tree: Any) -> Iterator[Any]:
    """The leaves of a tree in their order."""
    collected: list[Any] = []
    mapped(tree, collected.append)
    return iter(collected)


def digest(tree: Any) -> str:
    """A short text that identifies the inputs: different inputs have different texts."""
    checksum = hashlib.sha256()
    for leaf in leaves(tree):
        array = np.asarray(leaf.detach().cpu().double() if hasattr(leaf, "detach") else leaf)
        checksum.update(f"{array.shape}".encode())
        text = array.dtype.kind not in "biuf"
        checksum.update(str(leaf).encode() if text else array.astype(np.float64).tobytes())
    return checksum.hexdigest()[:16]


@dataclasses.dataclass(frozen=True)
class SampleRow:
    """The shape and dtype of one sample in one array."""

    shape: tuple[int, ...]
    dtype: str
    kind: str

    @property
    def size(self) -> int:
        return math.prod(self.shape)


def _is_row(leaf: Any) -> bool:
    return isinstance(leaf, SampleRow)


def _row(leaf: Any) -> Any:
    if not _has_rows(leaf):
        return leaf
    dtype = np.asarray(leaf).dtype
    kind = dtype.kind if dtype.kind in "iub" else "f"  # bfloat16 has another kind
    return SampleRow(tuple(leaf.shape[1:]), "" if kind == "f" else str(dtype), kind)


def _has_rows(leaf: Any) -> bool:
    return len(getattr(leaf, "shape", ())) > 0
