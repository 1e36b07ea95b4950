"""Margins of a linear predictor and the samples that hold them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tacit.arguments import Array, classification_data, finite_array


def margins(X: ArrayLike, y: ArrayLike, beta: ArrayLike) -> Array:
    """y_n <x_n, beta> for every sample.

    Parameters
    ----------
    X
        The samples, one row each.
    y
        The labels, -1 or +1.
    beta
        The predictor.

    Returns
    -------
    array
        The margins.

    Examples
    --------
    >>> import tacit
    >>> tacit.margins([[1.0, 2.0], [-3.0, 0.0]], [1, -1], [1.0, 1.0])
    array([3., 3.])
    """
    X, y = classification_data("margins", X, y)
    beta = finite_array("margins", "beta", beta, ndim=1)
    if len(beta) != X.shape[1]:
        raise ValueError(
            f"margins: beta must have one entry per feature ({X.shape[1]}), got {len(beta)}"
        )
    return y * (X @ beta)


def support_vectors(margins: ArrayLike, rtol: float = 1e-3) -> Array:
    """True where a margin exceeds the smallest one by at most `rtol` of it (M footnote 4).

    Parameters
    ----------
    margins
        One set of margins or a whole path of them, samples along the last axis.
    rtol
        The relative excess that is allowed.

    Returns
    -------
    array of bool
        One answer per margin.

    Examples
    --------
    >>> import tacit
    >>> tacit.support_vectors([1.0, 1.0005, 2.0])
    array([ True,  True, False])
    """
    values = np.asarray(margins, dtype=np.float64)
    least = values.min(axis=-1, keepdims=True)
    return values <= least + rtol * np.abs(least)
