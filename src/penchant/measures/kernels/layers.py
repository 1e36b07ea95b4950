"""Names of the parameter arrays of a model, and groups of arrays with separate kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penchant.lazy import jax


def readable(path: Any) -> str:
    """The path as text: ['layer']['w'][0] becomes layer.w.0."""
    bare = jax.tree_util.keystr(path)
    for old, new in (("['", "."), ("']", ""), ("[", "."), ("]", ""), (".value", "")):
        bare = bare.replace(old, new)
    return bare.strip(".") or "params"


def layer_groups(names: Sequence[str], most: int) -> list[str]:
    """The group of every array: its name, shortened until there are at most `most` groups.

    The parts of a name are separated by dots, from the outer modules to the inner ones.
    """
    parts = [name.split(".") for name in names]
    for depth in range(max(map(len, parts)), 0, -1):
        groups = [".".join(part[:depth]) for part in parts]
        if len(set(groups)) <= most:
            return groups
    return ["all"] * len(names)
