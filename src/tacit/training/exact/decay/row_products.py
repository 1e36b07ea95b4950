"""Products with a large table of samples, in single precision where a tolerance allows it.

Sums over the samples have few terms; those over the features are taken in pieces, which are added
in double precision. That leaves an error below 1e-6 of the Euclidean length of the terms, at half
the traffic of memory, which is what such products cost.
"""

from __future__ import annotations

import numpy as np

from tacit.arguments import Array

LARGE = 10**6  # entries of a table for which it matters
SINGLE = 1e-6  # relative tolerance from which on single precision is far more accurate than needed
PIECE = 1024  # features summed in single precision


class RowProducts:
    """Products with the (samples x features) table `rows`, to a relative accuracy of `rtol`."""

    def __init__(self, rows: Array, rtol: float = 0.0) -> None:
        self.rows = rows
        self.single = rows.astype(np.float32) if rtol >= SINGLE and rows.size > LARGE else None

    def pull(self, x: Array) -> Array:
        """x @ rows, one number per feature."""
        if self.single is None:
            return x @ self.rows
        unit = float(np.abs(x).max()) or 1.0  # single precision ends at 1e-38
        found = (x / unit).astype(np.float32) @ self.single
        return np.multiply(found, unit, dtype=np.float64)

    def outputs(self, beta: Array) -> Array:
        """rows @ beta, one number per sample."""
        if self.single is None:
            return self.rows @ beta
        unit = float(np.abs(beta).max()) or 1.0
        scaled, found = (beta / unit).astype(np.float32), np.zeros(len(self.rows))
        for at in range(0, len(beta), PIECE):
            found += self.single[:, at : at + PIECE] @ scaled[at : at + PIECE]
        return unit * found

    def gram(self, weights: Array) -> Array:
        """rows diag(weights) rows^T for weights >= 0."""
        if self.single is None:
            return (self.rows * weights) @ self.rows.T
        unit = float(weights.max()) or 1.0
        root = np.sqrt(weights / unit).astype(np.float32)
        found = np.zeros((len(self.rows), len(self.rows)))
        for at in range(0, len(root), PIECE):
            part = self.single[:, at : at + PIECE] * root[at : at + PIECE]
            found += part @ part.T  # NumPy sees the symmetry and does half the work
        return unit * found
