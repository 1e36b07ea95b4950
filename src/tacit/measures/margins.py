"""Margins of a linear predictor and the samples that hold them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tacit.arguments import Array, classification_data, finite_array


def margins(X: ArrayLike, y: ArrayLike, beta: ArrayLike) -> Array:
    """y_n <x_n, beta> for every sample."""
    X, y = classification_data("margins", X, y)
    beta = finite_array("margins", "beta", beta, ndim=1)
    if len(beta) != X.shape[1]:
        raise ValueError(
            f"margins: beta must have one entry per feature ({X.shape[1]}), got {len(beta)}"
        )
    return y * (X @ beta)


def support_vectors(margins: ArrayLike, rtol: float = 1e-3) -> Array:
    """True where a margin exceeds the smallest one by at most `rtol` of it (M footnote 4).

    Works on one set of margins or on a whole path, samples along the last axis.
    """
    values = np.asarray(margins, dtype=np.float64)
    least = values.min(axis=-1, keepdims=True)
    return values <= least + rtol * np.abs(least)
