"""How fast each dual weight grows when weights may only grow and no margin may fall behind.

With A = Z diag(slope) Z^T the rates x solve A x >= 1, x >= 0, x.(A x - 1) = 0: a weight grows only
where the margin just keeps pace. These are the optimality conditions of the shortest move
v = slope Z^T x, in the norm sum v_i^2/slope_i, that raises every margin by one: an l2 margin
problem.
"""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray

from tacit.arguments import Array
from tacit.solvers.continuation import Failed
from tacit.solvers.margins.least import least_squares
from tacit.solvers.margins.rows import scaled_rows

Marks = NDArray[np.bool_]  # one per sample


def growing(Z: Array, slope: Array, among: Marks) -> Marks:
    """Whose weights grow, of those that may: the rows `among`, which stand at the same margin."""
    rows = np.flatnonzero(among)
    _, found, _ = least_squares(scaled_rows(Z[rows]), slope / slope.max())
    marks = np.zeros(len(Z), dtype=bool)
    marks[rows[found.nu > 0]] = True
    return marks


def keep_pace(G: Array, pace: Array) -> Array:
    """x with G G^T x = pace, by a QR factorization: G G^T itself would square the condition."""
    if len(G) > G.shape[1]:
        raise Failed(f"{len(G)} support vectors in dimension {G.shape[1]}")
    triangle = scipy.linalg.lapack.dgeqrf(G.T)[0][: len(G)]
    sizes = np.abs(triangle.diagonal())
    if sizes.min() < 1e-14 * sizes.max():
        raise Failed("the rows of the support vectors are dependent")
    inner, _ = scipy.linalg.lapack.dtrtrs(triangle, pace, trans=1)
    return np.asarray(scipy.linalg.lapack.dtrtrs(triangle, inner)[0])
