"""Inputs of a model in several arrays: a sample is then the number of its row in all of them."""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np


def several(given: Any) -> bool:
    """Whether inputs are a mapping or a tuple of arrays, and not one array."""
    return isinstance(given, Mapping | tuple)


class Table:
    """A tree of mappings and tuples; its arrays have a row per sample, the rest is constant."""

    def __init__(
        self, who: str, name: str, tree: Any, take: Callable[[Any, Any], Any] = operator.getitem
    ):
        self.tree, self.take = mapped(tree, lambda leaf: leaf), take
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
        return mapped(self.tree, lambda leaf: self.take(leaf, numbers) if _has_rows(leaf) else leaf)


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


def _has_rows(leaf: Any) -> bool:
    return len(getattr(leaf, "shape", ())) > 0
