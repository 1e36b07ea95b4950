"""Parameters as a pytree of NumPy or JAX arrays: its leaves, and the functions of their library."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np


def space_of(array: Any) -> Any:
    """NumPy for its own arrays and numbers, jax.numpy for all others."""
    if isinstance(array, np.ndarray | np.generic | float | int):
        return np
    import jax.numpy

    return jax.numpy


def leaves(theta: Any) -> list[Any]:
    """The arrays of a pytree; an array is a pytree with one leaf."""
    if _is_leaf(theta):
        return [theta]
    import jax

    return [_array(leaf) for leaf in jax.tree.leaves(theta)]


def mapped(function: Callable[..., Any], theta: Any, *others: Any) -> Any:
    """The pytree with `function` of every leaf, and of those of `others` in the same place."""
    if _is_leaf(theta):
        return function(theta, *others)
    import jax

    return jax.tree.map(lambda *those: function(*map(_array, those)), theta, *others)


def _array(leaf: Any) -> Any:
    return leaf if _is_leaf(leaf) else np.asarray(leaf)


def _is_leaf(theta: Any) -> bool:
    return hasattr(theta, "dtype") and hasattr(theta, "reshape")


def as_floats(values: Any, like: Any) -> Any:
    """`values` in the precision of the array `like`, where that holds floating-point numbers."""
    return values.astype(like.dtype) if like.dtype.kind not in "biu" else values


def length(theta: Any) -> Any:
    """The Euclidean norm of all leaves, also where its square would overflow or underflow."""
    arrays = [leaf for leaf in leaves(theta) if leaf.size]
    if not arrays:
        return 0.0
    space = space_of(arrays[0])
    largest = functools.reduce(space.maximum, [abs(leaf).max() for leaf in arrays])
    unit = space.where(largest > 0, largest, 1.0)
    squares = [((leaf / unit) * (leaf / unit)).sum() for leaf in arrays]
    return largest * space.sqrt(sum(squares))


def repeated(step: Callable[[Any], Any], state: Any, times: int) -> Any:
    """`step` applied `times` times to an array, as a compiled loop in JAX."""
    if space_of(state) is np:
        for _ in range(times):
            state = step(state)
        return state
    import jax

    return jax.lax.fori_loop(0, times, lambda _, value: step(value), state)
