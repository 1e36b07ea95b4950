"""What the token nets share to work on NumPy and on JAX arrays alike."""

from __future__ import annotations

from typing import Any

import numpy as np

#: what a net may start in, and with that is trained in
DTYPES: dict[str, Any] = {"single": np.float32, "double": np.float64}


def library(array: Any) -> Any:
    """numpy for NumPy arrays, and jax.numpy for those of JAX."""
    if isinstance(array, np.ndarray):
        return np
    import jax.numpy

    return jax.numpy


def rows(table: Any, numbers: Any) -> Any:
    """table[numbers] for a vector of row numbers.

    JAX gets a product with one-hot codes: the derivative of an indexed read adds up rows one by
    one, that of a product is a product.
    """
    if isinstance(table, np.ndarray):
        return table[np.asarray(numbers)]
    return (numbers[:, None] == np.arange(len(table))).astype(table.dtype) @ table
