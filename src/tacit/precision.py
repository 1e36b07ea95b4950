"""Single and double precision, without touching the global setting of JAX."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

#: what a net may start in, and with that is trained in
DTYPES: dict[str, Any] = {"single": np.float32, "double": np.float64}


def double_precision() -> contextlib.AbstractContextManager[Any]:
    """A context in which JAX computes in float64, whatever the global setting is."""
    import jax

    return jax.enable_x64(True)
