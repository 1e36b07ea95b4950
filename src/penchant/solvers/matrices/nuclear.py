"""The fit of least nuclear norm: the infinite-depth path, and the low-rank minimiser at its end.

How it works. As the depth grows, p = D/(D-2) tends to 1 and the dual of Schatten-Q (docs/theory
section 17) becomes the barrier y.nu + mu log det(1 - S^T S): the central path of the nuclear norm.
`path.descend` follows it down in mu. At every stop the rank is guessed from the singular values
that have outgrown their slack 1 - s. A matrix of that rank that fits y is then computed by
Gauss-Newton steps on the manifold of this rank, and a dual S = U V^T + W with |W| < 1 proves that
it is the only minimiser. This ends the path early, with an answer that is exact to rounding.

The end of the path alone would be right only to its duality gap, which is mu per singular value.

Pitfalls. A guess of the rank can be wrong on the way, so a fit counts only with its dual, and a
step that y does not determine ends the attempt. The minimisers may fill a face: a direction
U H V^T that no measurement sees is tried, and only if it really gives another matrix of the same
value, clearly apart, is the answer called not unique. Otherwise nothing about uniqueness is
claimed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lstsq

from penchant.arguments import Array
from penchant.records import Kind, Outcome
from penchant.solvers.continuation import Failed
from penchant.solvers.matrices.measurements import Measurements
from penchant.solvers.matrices.path import WalkPoint, corrected, descend
from penchant.solvers.matrices.state import DualState, Power

GAP = 5e-11  # relative duality gap at the end of the path
ALONE = Outcome(Kind.SOLVED, "the only minimiser, to the accuracy of the duality gap")
CLOSED = Outcome(Kind.SOLVED, "the duality gap is closed")
UNIQUE = Outcome(Kind.SOLVED, "the only minimiser, of low rank, certified by its dual")
Mask = NDArray[np.bool_]
QR = "gelsy"  # the default driver, by divide and conquer, gives up on some finite matrices
STRICT = 1e-6  # room below 1 that the other singular values of S must leave for uniqueness


def solve(at: Measurements) -> tuple[Array, Array, int, Outcome]:
    stop: WalkPoint | None = None
    try:
        for stop in descend(at, Power(1.0), last_level(at), close=1e-4):
            if (fit := low_rank(stop.state)) is not None:
                return *fit, stop.spent, UNIQUE
    except Failed as reason:
        if stop is None:
            raise
        outcome = Outcome(Kind.SOLVED, f"the path ended early: {reason}")
        return corrected(stop.state, stop.hessian), stop.state.nu, stop.spent, outcome
    assert stop is not None
    matrix = corrected(stop.state, stop.hessian)
    return matrix, stop.state.nu, stop.spent, how_many(stop.state, matrix)


def last_level(at: Measurements) -> float:
    """log mu at which the gap, at most mu per singular value, is small."""
    nu = at.least(at.y)
    least = float(at.y @ nu) / float(np.linalg.norm(at.adjoint(nu), 2))
    return float(np.log(GAP * least / min(at.shape)))


def how_many(state: DualState, matrix: Array) -> Outcome:
    """Whether the end of the path is the only minimiser, one of many, or nothing is proved."""
    rank = active(state)
    if (state.factors[1][rank:] > 1 - STRICT).any():
        return CLOSED
    free = free_directions(state, rank)
    if not len(free):
        return ALONE
    largest = float(np.linalg.norm(matrix, 2))
    smallest = float(state.spectrum.values[rank - 1])
    other = matrix + 0.5 * smallest * free[0]
    value = float(np.linalg.norm(other, "nuc"))
    misfit = float(np.abs(state.at.apply(other) - state.at.y).max() / np.abs(state.at.y).max())
    apart = 0.5 * smallest * float(np.linalg.norm(free[0], 2)) / largest
    # a unique minimiser has neighbours as good as the gap can tell, but not as far as this
    if apart < 1e-3 or misfit > 1e-12 or value > (1 + 10 * GAP) * float(state.at.y @ state.nu):
        return CLOSED
    text = f"the minimisers fill a face of dimension {len(free)}; this is near its analytic centre"
    return Outcome(Kind.NOT_UNIQUE, text)


def free_directions(state: DualState, rank: int) -> list[Array]:
    """An orthonormal basis of the U H V^T with H symmetric that no measurement sees."""
    U, _, V = state.factors
    block = state.at.rotated(U, V)[:, :rank, :rank]
    i, j = np.triu_indices(rank)
    weight = np.where(i == j, 0.5, np.sqrt(0.5))
    rows = weight * (block + block.transpose(0, 2, 1))[:, i, j]
    _, sizes, basis = np.linalg.svd(rows)
    seen = int(np.sum(sizes > 1e-7 * sizes[0]))
    directions = []
    for coordinates in basis[seen:]:
        H = np.zeros((rank, rank))
        H[i, j] = weight * coordinates
        directions.append(U[:, :rank] @ (H + H.T) @ V[:, :rank].T)
    return directions


def active(state: DualState) -> int:
    """The number of singular values whose size has outgrown their slack: the rank, at the end."""
    sizes = state.spectrum.values
    return int(np.sum(sizes > (1 - state.factors[1]) * sizes[0]))


def low_rank(state: DualState) -> tuple[Array, Array] | None:
    """An exact fit of low rank with a dual that proves it the unique minimiser, or None."""
    rank = active(state)
    d1, d2 = state.at.shape
    if not 0 < rank * (d1 + d2 - rank) <= len(state.at.y):
        return None
    matrix = fitted(state.at, state.matrix, rank)
    return None if matrix is None else certified(state.at, matrix, rank, state.nu)


def fitted(at: Measurements, matrix: Array, rank: int) -> Array | None:
    """The matrix of this rank with A(M) = y near `matrix`, by Gauss-Newton steps, or None."""
    for _ in range(12):
        U, sizes, Vt = np.linalg.svd(matrix)
        sizes[rank:] = 0
        matrix = (U[:, : len(sizes)] * sizes) @ Vt[: len(sizes)]
        misfit = at.y - at.apply(matrix)
        if np.abs(misfit).max() <= 4e-15 * sizes[0]:
            return matrix
        rows, mask = tangent_rows(at, U, Vt.T, rank)
        solution, _, independent, _ = lstsq(rows, misfit, cond=1e-7, lapack_driver=QR)
        if independent < rows.shape[1]:  # the misfit does not determine the step
            return None
        turned = np.zeros(at.shape)
        turned[mask] = solution
        step = U @ turned @ Vt
        if np.abs(step).max() > sizes[0]:
            return None
        matrix = matrix + step
    return matrix if np.abs(misfit).max() <= 1e-12 * sizes[0] else None


def tangent_rows(at: Measurements, U: Array, V: Array, rank: int) -> tuple[Array, Mask]:
    """X_n in the tangent space of the matrices of this rank, and the mask of that space."""
    mask = np.ones(at.shape, dtype=bool)
    mask[rank:, rank:] = False
    return at.rotated(U, V)[:, mask], mask


def certified(at: Measurements, matrix: Array, rank: int, nu: Array) -> tuple[Array, Array] | None:
    """The matrix with a dual S = U V^T + W, |W| < 1, or None."""
    U, _, Vt = np.linalg.svd(matrix)
    rows, mask = tangent_rows(at, U, Vt.T, rank)
    wanted = np.eye(*at.shape)[mask]
    for _ in range(2):
        nu = nu + lstsq(rows.T, wanted - nu @ rows, lapack_driver=QR)[0]
    rest = (U.T @ at.adjoint(nu) @ Vt.T)[rank:, rank:]
    if rest.size and np.linalg.norm(rest, 2) > 1 - STRICT:
        return None
    return matrix, nu / max(1.0, float(np.linalg.norm(at.adjoint(nu), 2)))
