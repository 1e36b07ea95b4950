"""The linear constraints X beta = y brought to full row rank and unit scale."""

from __future__ import annotations

import dataclasses

import numpy as np
import scipy

from tacit.arguments import Array

CONSISTENT = 1e-9  # relative distance of y from the range of X that still counts as rounding


@dataclasses.dataclass(frozen=True)
class Constraints:
    """An equivalent system `X beta/scale = y` with independent rows of comparable size.

    `back` maps a dual vector of this system to one of the original rows (a vector of row factors,
    or a matrix where rows had to be combined).
    """

    X: Array
    y: Array
    scale: float
    back: Array

    def original_dual(self, dual: Array) -> Array:
        return self.back * dual if self.back.ndim == 1 else self.back @ dual


def reduce(who: str, X: Array, y: Array) -> Constraints:
    """The equivalent full-rank system, or a ValueError when no predictor fits y."""
    # dividing twice keeps rows of size 1e-200 and their squares representable
    factors = unit(np.abs(X).max(axis=1))
    X, y = X * factors[:, None], y * factors
    more = unit(np.linalg.norm(X, axis=1))
    X, y, factors = X * more[:, None], y * more, factors * more
    scale = float(np.abs(y).max())
    if scale == 0:
        scale = 1.0
    y = y / scale
    if len(X) <= X.shape[1] and well_conditioned(X):
        return Constraints(X, y, scale, factors)
    return combined_rows(who, X, y, scale, factors)


def unit(sizes: Array) -> Array:
    """Powers of two that bring `sizes` to order one: exact, so that column relations survive."""
    return np.ldexp(1.0, -np.frexp(np.where(sizes > 0, sizes, 1.0))[1])


def well_conditioned(X: Array) -> bool:
    """Whether the rows are independent far beyond rounding (condition of X below about 1e4)."""
    gram = X @ X.T
    factor, failed = scipy.linalg.lapack.dpotrf(gram, lower=True)
    if failed:
        return False
    reciprocal, _ = scipy.linalg.lapack.dpocon(factor, np.abs(gram).sum(axis=0).max(), uplo="L")
    return bool(reciprocal > 1e-8)


def combined_rows(who: str, X: Array, y: Array, scale: float, factors: Array) -> Constraints:
    """Orthonormal rows spanning the row space, by the singular value decomposition."""
    U, sizes, Vt = np.linalg.svd(X, full_matrices=False)
    rank = int(np.sum(sizes > max(X.shape) * np.finfo(float).eps * sizes[0]))
    U, sizes, Vt = U[:, :rank], sizes[:rank], Vt[:rank]
    misfit = float(np.linalg.norm(y - U @ (U.T @ y))) / max(float(np.linalg.norm(y)), 1e-300)
    if misfit > CONSISTENT:
        raise ValueError(
            f"{who}: y must lie in the range of X, but no beta fits it: {misfit:.2g} of y's norm"
            " cannot be reached; drop or mend contradicting rows"
        )
    back = factors[:, None] * (U / sizes)
    target = (U.T @ y) / sizes
    # the combined targets may have left unit scale
    size = float(np.abs(target).max()) if rank else 0.0
    size = size if size > 0 else 1.0
    return Constraints(np.ascontiguousarray(Vt), target / size, scale * size, back)
