"""The semidefinite complementarity problem of a sharpness that may not pass its bound.

Wanted is the symmetric $S$ with $S >= 0$, $M = A + B[S] >= 0$ and $<S, M> = 0$, where $B$ is
symmetric and positive semidefinite. It is the minimiser of $<A, S> + <S, B[S]>/2$ over the cone,
found by projected gradients with momentum that starts again where the objective would rise.
"""

from __future__ import annotations

import numpy as np

from penchant.arguments import Array

MOST = 500  # projected gradients
ACCURACY = 1e-9  # change of S in one of them, relative to S


def complementary(A: Array, B: Array, guess: Array | None = None) -> Array:
    """S; `B` has four axes, (B[S])_ij = sum_pq B_ijpq S_pq."""
    size = len(A)
    matrix = B.reshape(size * size, -1)
    if size == 1:
        a, b = float(A[0, 0]), float(matrix[0, 0])
        return np.array([[max(-a / b, 0.0) if b > 0 else 0.0]])
    steepest = float(np.linalg.norm(matrix, 2))
    S = np.zeros_like(A)
    if steepest == 0 or np.linalg.eigvalsh(A)[0] >= 0:
        return S
    S = ahead = S if guess is None else _projected(guess)
    momentum = 1.0
    for _ in range(MOST):
        slope = A + (matrix @ ahead.ravel()).reshape(size, size)
        new = _projected(ahead - slope / steepest)
        change = new - S
        if float(np.vdot(ahead - new, change)) > 0:  # uphill: without momentum from here
            momentum, ahead = 1.0, S
            slope = A + (matrix @ S.ravel()).reshape(size, size)
            new = _projected(S - slope / steepest)
            change = new - S
        faster = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = new + (momentum - 1) / faster * change
        S, momentum = new, faster
        if np.abs(change).max() <= ACCURACY * np.abs(S).max():
            break
    return S


def _projected(S: Array) -> Array:
    """The nearest positive semidefinite matrix."""
    values, vectors = np.linalg.eigh((S + S.T) / 2)
    return (vectors * np.maximum(values, 0.0)) @ vectors.T
