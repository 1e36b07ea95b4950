"""From the central path of the nuclear norm to the exact low-rank minimiser, with its proof.

Where there are as many measurements as the matrices of that rank have dimensions, the fit
itself determines the minimiser, and a dual vector can be made exact on its tangent space.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tacit.arguments import Array
from tacit.solvers.matrices.measurements import Measurements
from tacit.solvers.matrices.state import State

Mask = NDArray[np.bool_]

STRICT = 1e-6  # room below 1 that the other singular values of S must leave for uniqueness


def active(state: State) -> int:
    """The number of singular values whose size has outgrown their slack: the rank, at the end."""
    sizes = state.spectrum.values
    return int(np.sum(sizes > (1 - state.factors[1]) * sizes[0]))


def low_rank(state: State) -> tuple[Array, Array] | None:
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
        step = tangent_fit(at, U, Vt.T, rank, misfit)
        if step is None or np.abs(step).max() > sizes[0]:
            return None
        matrix = matrix + step
    return matrix if np.abs(misfit).max() <= 1e-12 * sizes[0] else None


def tangent_rows(at: Measurements, U: Array, V: Array, rank: int) -> tuple[Array, Mask]:
    """X_n in the tangent space of the matrices of this rank, and the mask of that space."""
    mask = np.ones(at.shape, dtype=bool)
    mask[rank:, rank:] = False
    return at.rotated(U, V)[:, mask], mask


def tangent_fit(at: Measurements, U: Array, V: Array, rank: int, misfit: Array) -> Array | None:
    """The tangent vector that takes up the misfit, or None where it is not determined."""
    rows, mask = tangent_rows(at, U, V, rank)
    found, _, independent, _ = np.linalg.lstsq(rows, misfit, rcond=1e-7)
    if independent < rows.shape[1]:
        return None
    turned = np.zeros(at.shape)
    turned[mask] = found
    return U @ turned @ V.T


def certified(at: Measurements, matrix: Array, rank: int, nu: Array) -> tuple[Array, Array] | None:
    """The matrix with a dual S = U V^T + W, |W| < 1, or None.

    With A injective on the tangent space such a W proves that no other fit has this norm.
    """
    U, _, Vt = np.linalg.svd(matrix)
    rows, mask = tangent_rows(at, U, Vt.T, rank)
    wanted = np.eye(*at.shape)[mask]
    for _ in range(2):
        nu = nu + np.linalg.lstsq(rows.T, wanted - nu @ rows, rcond=None)[0]
    rest = (U.T @ at.adjoint(nu) @ Vt.T)[rank:, rank:]
    if rest.size and np.linalg.norm(rest, 2) > 1 - STRICT:
        return None
    return matrix, nu / max(1.0, float(np.linalg.norm(at.adjoint(nu), 2)))
