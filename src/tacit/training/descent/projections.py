"""The nearest point of given norm: on the Euclidean sphere, on the l1 sphere, in the l1 ball.

All of them are written in JAX, so that they can be compiled and mapped over many sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tacit.lazy import jnp

Projection = Callable[[Any, Any], Any]


def onto_l2_sphere(point: Any, size: Any) -> Any:
    """The nearest a with |a|_2 = size; nan for the origin, which has no nearest one."""
    return point * (size / jnp.linalg.norm(point))


def onto_l1_ball(point: Any, size: Any) -> Any:
    """The nearest a with |a|_1 <= size: the entries shrunk by one threshold.

    The threshold makes the entries that survive it sum to `size`; they are the largest ones, so
    sorting finds them (Duchi, Shalev-Shwartz, Singer and Chandra 2008).
    """
    entries = jnp.abs(point)
    falling = jnp.sort(entries)[::-1]
    surplus = jnp.cumsum(falling) - size
    survivors = jnp.sum(falling * jnp.arange(1, point.size + 1) > surplus)
    threshold = jnp.maximum(surplus[survivors - 1] / survivors, 0.0)
    return jnp.sign(point) * jnp.maximum(entries - threshold, 0.0)


def onto_l1_sphere(point: Any, size: Any) -> Any:
    """A nearest a with |a|_1 = size; from inside, every entry grows by the same amount.

    |a_i - p_i| is at least ||a_i| - |p_i||, and these sum to size - |p|_1 or more, so that equal
    shares have the least sum of squares. A zero may grow either way; here it grows upwards.
    """
    missing = jnp.maximum(size - jnp.abs(point).sum(), 0.0) / point.size
    return onto_l1_ball(point, size) + jnp.where(point < 0, -missing, missing)


SPHERES: dict[str, Projection] = {"l1": onto_l1_sphere, "l2": onto_l2_sphere}


def length(norm: str, point: Any) -> Any:
    """|point| in the norm "l1" or "l2", on NumPy and on JAX arrays."""
    return abs(point).sum() if norm == "l1" else (point**2).sum() ** 0.5
