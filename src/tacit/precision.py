"""JAX in double precision, without touching its global setting."""

from __future__ import annotations

import contextlib
from typing import Any


def double_precision() -> contextlib.AbstractContextManager[Any]:
    """A context in which JAX computes in float64, whatever the global setting is."""
    import jax

    return jax.enable_x64(True)
