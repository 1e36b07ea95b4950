"""Inputs of a model in several arrays, a mapping or a tuple of them.

A sample is then the number of its row in all of them (Table), or for functions of JAX, which are
compiled, one row with the numbers of all (Packed).
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from tacit.arguments import Array, finite_array

WHOLE = 2**24  # integers up to here are numbers of single precision


def several(given: Any) -> bool:
    """Whether inputs are a mapping or a tuple of arrays, and not one array."""
    return isinstance(given, Mapping | tuple)


class Table:
    """A tree of mappings and tuples; its arrays have a row per sample, the rest is constant."""

    def __init__(self, who: str, name: str, tree: Any):
        self.tree = mapped(tree, lambda leaf: leaf)
        sizes = {len(leaf) for leaf in leaves(self.tree) if _has_rows(leaf)}
        if len(sizes) != 1 or not min(sizes):
            seen = f"arrays of {', '.join(map(str, sorted(sizes)))} rows" if sizes else "no array"
            raise ValueError(
                f"{who}: the arrays of {name} must have one row per sample each, got {seen}"
            )
        (self.rows,) = sizes

    def __len__(self) -> int:
        return self.rows

    def at(self, numbers: Any) -> Any:
        """The tree with the rows `numbers` of every array, which are copies."""
        return mapped(self.tree, lambda leaf: leaf[numbers] if _has_rows(leaf) else leaf)


class Packed:
    """f(params, x) for a `function` of several arrays, whose rows are one row of x together.

    `tree` says how they are built; what is no array in it is constant.
    """

    def __init__(self, who: str, function: Callable[[Any, Any], Any], tree: Any):
        self.who, self.function, self.tree = who, function, mapped(tree, _row)

    def __call__(self, params: Any, x: Any) -> Any:
        return self.function(params, self.unpacked(x))

    def packed(self, name: str, tree: Any) -> Array:
        """One row of numbers per sample."""
        given = Table(self.who, name, tree)
        if mapped(given.tree, _row) != self.tree:
            raise ValueError(f"{self.who}: {name} must be built like the first inputs")
        parts = [self._numbers(name, leaf) for leaf in leaves(given.tree) if _has_rows(leaf)]
        return np.concatenate([part.reshape(len(given), -1) for part in parts], axis=1)

    def unpacked(self, x: Any) -> Any:
        """The arrays again, integers as integers."""
        at = iter(np.cumsum([0, *(row.size for row in leaves(self.tree) if _is_row(row))]).tolist())

        def cut(row: Any) -> Any:
            if not _is_row(row):
                return row
            begin = next(at)
            found = x[:, begin : begin + row.size].reshape(len(x), *row.shape)
            return found if row.kind == "f" else found.astype(row.dtype)

        return mapped(self.tree, cut)

    def _numbers(self, name: str, leaf: Any) -> Array:
        array = np.asarray(leaf)
        if array.dtype.kind in "iu" and array.size and np.abs(array).max() > WHOLE:
            raise ValueError(
                f"{self.who}: integers of {name} must not exceed {WHOLE}, got {np.abs(array).max()}"
            )
        return finite_array(self.who, name, array.astype(np.float64), ndim=array.ndim)


def spread(tree: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """(args, kwargs) of a model that is called with a mapping as names, with a tuple as places."""
    return ((), dict(tree)) if isinstance(tree, Mapping) else (tuple(tree), {})


def mapped(tree: Any, change: Callable[[Any], Any]) -> Any:
    """The tree in plain dicts and tuples, with `change` of every leaf."""
    if isinstance(tree, Mapping):
        return {name: mapped(part, change) for name, part in tree.items()}
    if isinstance(tree, tuple):
        return tuple(mapped(part, change) for part in tree)
    return change(tree)


def leaves(tree: Any) -> Iterator[Any]:
    """The leaves of a tree in their order."""
    found: list[Any] = []
    mapped(tree, found.append)
    return iter(found)


def digest(tree: Any) -> str:
    """A short text that is the same for the same inputs alone."""
    found = hashlib.sha256()
    for leaf in leaves(tree):
        array = np.asarray(leaf.detach().cpu().double() if hasattr(leaf, "detach") else leaf)
        found.update(f"{array.shape}".encode())
        text = array.dtype.kind not in "biuf"
        found.update(str(leaf).encode() if text else array.astype(np.float64).tobytes())
    return found.hexdigest()[:16]


@dataclasses.dataclass(frozen=True)
class Row:
    """The shape and the kind of numbers of one sample in one array."""

    shape: tuple[int, ...]
    dtype: str
    kind: str

    @property
    def size(self) -> int:
        return math.prod(self.shape)


def _is_row(leaf: Any) -> bool:
    return isinstance(leaf, Row)


def _row(leaf: Any) -> Any:
    if not _has_rows(leaf):
        return leaf
    dtype = np.asarray(leaf).dtype
    kind = dtype.kind if dtype.kind in "iub" else "f"  # bfloat16 has a kind of its own
    return Row(tuple(leaf.shape[1:]), "" if kind == "f" else str(dtype), kind)


def _has_rows(leaf: Any) -> bool:
    return len(getattr(leaf, "shape", ())) > 0
