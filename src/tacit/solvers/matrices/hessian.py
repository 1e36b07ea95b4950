"""The Hessian of the dual over matrices, A DM A^T, factorized."""

from __future__ import annotations

import numpy as np
import scipy

from tacit.arguments import Array
from tacit.solvers.matrices.law import Power
from tacit.solvers.matrices.measurements import Entries
from tacit.solvers.matrices.state import State

SQUARED = 1e-10  # relative size of Cholesky pivots above which the Gram matrix is good enough


class Hessian:
    """A factor R of A DM A^T = R^T R, by Cholesky where that is accurate, else by QR.

    Slopes differ by many orders of magnitude between large and vanished singular values. QR of
    the rows sorted by slope keeps the small ones, which the Gram matrix would lose.
    """

    def __init__(self, state: State):
        gram = barrier_gram(state)
        if gram is not None and self.cholesky(gram):
            return
        rows, slopes = weighted(state)
        rows *= np.sqrt(slopes)
        gram = scipy.linalg.blas.dsyrk(1.0, rows.T, trans=1, lower=0)
        if not self.cholesky(gram):
            self.triangular(gram, rows[:, np.argsort(-slopes, kind="stable")])

    def cholesky(self, gram: Array) -> bool:
        """Whether the Cholesky factor will do."""
        self.order = np.arange(len(gram))
        self.R, failed = scipy.linalg.lapack.dpotrf(gram, lower=0)
        sizes = self.R.diagonal()
        return not failed and bool(sizes.min() ** 2 > SQUARED * sizes.max() ** 2)

    def triangular(self, gram: Array, rows: Array) -> None:
        """The factor by QR, its columns in the order of a pivoted Cholesky factorization."""
        _, order, _, _ = scipy.linalg.lapack.dpstrf(gram, lower=0)
        self.order = order - 1
        (R,) = scipy.linalg.qr(rows[self.order].T, mode="r", check_finite=False)
        self.R = R[: len(rows)]

    def solve(self, right: Array) -> Array:
        triangular = scipy.linalg.solve_triangular
        inner = triangular(self.R, right[self.order], trans=1, check_finite=False)
        solution = np.empty_like(right)
        solution[self.order] = triangular(self.R, inner, check_finite=False)
        return solution


def barrier_gram(state: State) -> Array | None:
    """The Hessian for single entries and b(s) = 2 mu s/(1 - s^2), where two small matrices do.

    DM along dS is 2 mu (P dS R + K dS^T K) with P = (1 - S S^T)^-1, R = (1 - S^T S)^-1, K = S R.
    """
    at = state.at
    if not isinstance(at, Entries) or state.law != Power(1.0):
        return None
    U, s, V = state.factors
    grown = 1 / ((1 - s) * (1 + s))
    P, R = ((W * np.concatenate([grown, np.ones(len(W) - len(s))])) @ W.T for W in (U, V))
    K = (U[:, : len(s)] * (s * grown)) @ V[:, : len(s)].T
    crossed = K[np.ix_(at.row, at.column)]
    gram = P[np.ix_(at.row, at.row)] * R[np.ix_(at.column, at.column)] + crossed * crossed.T
    gram *= 2 * np.exp(state.m)
    gram[np.diag_indices_from(gram)] += state.floor()
    return gram


def weighted(state: State) -> tuple[Array, Array]:
    """Coordinates of all X_n in which the derivative of M is diagonal, and that diagonal.

    Slopes below the floor are raised to it.
    """
    U, s, V = state.factors
    k, spectrum = len(s), state.spectrum
    turned = state.at.rotated(U, V)
    i, j = np.triu_indices(k, 1)
    upper, lower = turned[:, i, j], turned[:, j, i]
    parts = [
        np.diagonal(turned, axis1=1, axis2=2),
        (upper + lower) / np.sqrt(2),
        (upper - lower) / np.sqrt(2),
        turned[:, k:, :k].reshape(len(turned), -1),
        turned[:, :k, k:].reshape(len(turned), -1),
    ]
    slopes = [
        spectrum.differences.diagonal(),
        spectrum.differences[i, j],
        spectrum.sums[i, j],
        np.tile(spectrum.ratios, len(U) - k),
        np.repeat(spectrum.ratios, len(V) - k),
    ]
    return np.hstack(parts), np.maximum(np.concatenate(slopes), state.floor())
